"""Names of TensorFlow variables: their own names, prefixed by the path of the modules that contain them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

# TensorFlow's name for a variable without a name.
_UNNAMED: Final = "Variable"
# The prefix of attributes that TensorFlow itself adds to objects.
_OWN: Final = "_self_"


def owner_of(function: Callable[..., Any]) -> Any:
    """Return ``None`` if the function is not a method."""
    python: Any = getattr(function, "python_function", function)
    # For a method that is a `tf.function`, TensorFlow keeps the bound method and the function that AutoGraph generated.
    methods: tuple[Any, ...] = (
        python,
        *(getattr(python, name, None) for name in ("__original_wrapped__", "__wrapped__")),
    )
    bound = next((each.__self__ for each in methods if hasattr(each, "__self__")), None)
    # The bound object is a proxy, because the object itself refers to the method.
    return getattr(bound, "target", bound)


def variable_names(tf: Any, owner: Any, variables: Iterable[Any]) -> dict[int, str]:
    """Return the names of variables by the identities of their handles.

    A name that already contains a TensorFlow scope, ``dense/kernel``, is complete. Otherwise the path of the modules
    from ``owner`` to the variable is prefixed, ``encoder.layers.0.kernel``; a variable without a name gets the name of
    its attribute.
    """
    paths = dict(_held(tf, owner))
    names = {}
    for variable in variables:
        own, path = variable.name.partition(":")[0], paths.get(id(variable.handle), ())
        if path and "/" not in own:
            own = ".".join(path if own == _UNNAMED else (*path[:-1], own))
        names[id(variable.handle)] = own
    return names


def _held(tf: Any, owner: Any) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the identity of each variable's handle with the shortest path to the variable."""
    pending: deque[tuple[Any, tuple[str, ...]]] = deque([(owner, ())])
    seen = set[int]()
    while pending:
        held, path = pending.popleft()
        if id(held) in seen:
            continue
        seen.add(id(held))
        if isinstance(held, tf.Variable):
            yield id(held.handle), path
        else:
            pending += ((each, (*path, name)) for name, each in _children(tf, held))


def _children(tf: Any, held: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(held, Mapping):
        yield from ((str(key), each) for key, each in held.items())
    elif isinstance(held, list | tuple):
        yield from ((str(number), each) for number, each in enumerate(held))
    # Modules, models, and the objects of a SavedModel.
    elif isinstance(held, tf.__internal__.tracking.AutoTrackable):
        yield from ((name, each) for name, each in vars(held).items() if not name.startswith(_OWN))
