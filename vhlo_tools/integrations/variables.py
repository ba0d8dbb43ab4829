"""What variables of TensorFlow are called: their own names, after the path of the modules that hold them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

__all__ = ["owner_of", "variable_names"]

# What TensorFlow calls a variable without a name.
_UNNAMED: Final = "Variable"
# What TensorFlow itself keeps on objects begins so.
_OWN: Final = "_self_"


def owner_of(function: Callable[..., Any]) -> Any:
    """Return the object whose method a function is; ``None`` if it is none's."""
    python: Any = getattr(function, "python_function", function)
    # Of a method that is a `tf.function`, TensorFlow keeps the bound method, and beside it what AutoGraph made of it.
    methods: tuple[Any, ...] = (
        python,
        *(getattr(python, name, None) for name in ("__original_wrapped__", "__wrapped__")),
    )
    bound = next((each.__self__ for each in methods if hasattr(each, "__self__")), None)
    # It is bound to a stand-in, for the object holds the method.
    return getattr(bound, "target", bound)


def variable_names(tf: Any, owner: Any, variables: Iterable[Any]) -> dict[int, str]:
    """Return the names of variables by the identities of their handles.

    A name in which TensorFlow wrote a scope already, ``dense/kernel``, is complete. Otherwise that of the modules in
    which ``owner`` holds the variable goes before it, ``encoder.layers.0.kernel``; and one without a name is called by
    its attribute.

    Args:
        tf: TensorFlow.
        owner: What holds modules and variables; what it does not hold has its own name.
        variables: The variables.
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
    """Yield the identities of handles of variables with the shortest path to each."""
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
