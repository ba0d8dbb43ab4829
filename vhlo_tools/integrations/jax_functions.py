"""Functions of JAX, and its lowered and compiled stages, as programs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

import numpy as np

from vhlo_tools.aliasing import DROPPED, Alias, Donor, finding_of
from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import provider_of, xla
from vhlo_tools.errors import InvalidInputError, InvalidProgramError
from vhlo_tools.findings import Finding
from vhlo_tools.integrations.exported_model import ExportedModel, serialize_module
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.program import ExportOptions, ProgramSource

# Detect donations that jax dropped
#
# jax donates an argument if an output of its type and shape, or at least of its size, is left for it, and drops the
# donation otherwise; for an argument that the function does not use jax drops the argument too. Source:
# ``_set_up_aliases`` in ``jax/_src/interpreters/mlir.py`` and ``_dce_jaxpr`` in ``jax/_src/interpreters/pxla.py`` of
# jax-ml/jax. Dropped donations are recorded in the ``args_info`` of a stage of the function but not in the program; a
# ``jax.export.Exported`` and its file do not contain them.

_REMEDY: Final = (
    "donate only arguments that an output of the same type and shape can overwrite, or remove it from donate_argnums"
)


def dropped_donations(
    artifact: Artifact, args_info: Any, kept: Collection[int], *, before: int = 0, names: Sequence[str] | None = None
) -> list[Finding]:
    """Return a warning for each argument whose donation jax dropped: ``main`` keeps it without one, or lacks it.

    ``kept`` has the indices into the flattened arguments that ``main`` keeps; ``before`` is the number of indices that
    arguments of jax's own take up first.
    """
    import jax

    program = artifact.declared_aliases()
    declared = program.declared
    entries: tuple[Alias | Donor, ...] = (*declared.aliases, *declared.donors)
    given = {each.parameter_number for each in entries}
    first = len(declared.signature.parameters) - len(kept)
    numbers = {argument: first + place for place, argument in enumerate(sorted(kept))}
    found = []
    for argument, (path, info) in enumerate(jax.tree_util.tree_flatten_with_path(args_info)[0], before):
        number = numbers.get(argument)
        if not info.donated or number in given:
            continue
        why = "no output can overwrite it" if number is not None else "the function does not use it"
        if names is not None:
            called = names[argument - before]
        else:
            # As jax writes it in files: ``args[0]['w']``, ``kwargs['x']``.
            called = f"{'kwargs' if path[0].idx else 'args'}{jax.tree_util.keystr(tuple(path[1:]))}"
        message = f"{called}, {info.dtype}{list(info.shape)}, is donated, but jax dropped the donation: {why}"
        found.append(finding_of(program, DROPPED, number, message, _REMEDY))
    return found


# Functions of JAX as functions of arrays only, with names for their inputs, outputs and weights
#
# Arguments and results may be any pytrees, also with leaves that are no arrays, such as the activation functions in
# modules of Equinox: these are part of the function. Weights are arrays over which a function closes, found by the
# identity of the constants in its jaxpr.

#: The variables of a function that are searched for weights: closures within closures.
_DEEPEST: Final = 8


@dataclass(slots=True)
class ArrayFunction:
    """A function of arrays that returns a list of arrays."""

    function: Callable[..., list[Any]]
    values: list[Any]  # the arguments: arrays, scalars, or ``jax.ShapeDtypeStruct``
    names: tuple[str, ...]  # of the arguments: ``params['w']``
    donated: tuple[int, ...]  # indices
    outputs: list[str] = field(default_factory=list)  # ``result['loss']``; filled when traced
    weights: dict[str, Any] = field(default_factory=dict)  # the last arguments; empty if all are inputs


def exclude_from_locations() -> None:
    """Make jax leave out the frames of this package from source locations, which point into the user's code."""
    from jax.extend import source_info_util

    source_info_util.register_exclusion(str(Path(__file__).parent))


def array_function(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    donate_argnums: Sequence[int] = (),
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
) -> ArrayFunction:
    """Make ``fn``, called with some pytrees, a function of the arrays in them.

    Static arguments are part of the function, as for ``jax.jit``.
    """
    import jax

    def is_static(path: Any) -> bool:
        keyword, first = path[0].idx == 1, path[1]
        return first.key in static_argnames if keyword else first.idx in static

    static = {each % len(args) for each in static_argnums if args}
    donated = {each % len(args) for each in donate_argnums if args}
    paths, tree = jax.tree_util.tree_flatten_with_path((args, dict(kwargs)))
    leaves = [leaf for _, leaf in paths]
    places = [at for at, (path, leaf) in enumerate(paths) if is_array(leaf) and not is_static(path)]
    called = _argument_names(fn, len(args))

    def name_of(path: Any) -> str:
        head = path[1].key if path[0].idx == 1 else called[path[1].idx]
        return f"{head}{jax.tree_util.keystr(tuple(path[2:]))}"

    @functools.wraps(fn, updated=())
    def function(*values: Any) -> list[Any]:
        merged = list(leaves)
        for place, value in zip(places, values, strict=True):
            merged[place] = value
        taken, named = jax.tree_util.tree_unflatten(tree, merged)
        results, _ = jax.tree_util.tree_flatten_with_path(fn(*taken, **named))
        arrays = [(path, leaf) for path, leaf in results if is_array(leaf)]
        found.outputs[:] = [f"result{jax.tree_util.keystr(path)}" for path, _ in arrays]
        return [leaf for _, leaf in arrays]

    # The signature of `fn` is not that of `function`, and jax reads it.
    del function.__wrapped__
    found = ArrayFunction(
        function,
        [leaves[place] for place in places],
        tuple(name_of(paths[place][0]) for place in places),
        tuple(
            at for at, place in enumerate(places) if paths[place][0][0].idx == 0 and paths[place][0][1].idx in donated
        ),
    )
    return found


def is_array(leaf: Any) -> bool:
    """Return whether a leaf of a pytree is an argument or a result of a function of arrays."""
    return isinstance(leaf, bool | int | float | complex | np.generic) or (
        hasattr(leaf, "shape") and hasattr(leaf, "dtype")
    )


def _argument_names(fn: Callable[..., Any], number: int) -> list[str]:
    """Return the names of the parameters, as far as the signature is known."""
    names: list[str] = []
    with suppress(TypeError, ValueError):
        for each in inspect.signature(fn).parameters.values():
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
                names.append(each.name)
            elif each.kind is each.VAR_POSITIONAL:
                names += [f"{each.name}[{at}]" for at in range(number - len(names))]
    return [*names, *(f"args[{at}]" for at in range(len(names), number))]


def with_weights(function: ArrayFunction, fn: Callable[..., Any]) -> ArrayFunction:
    """Make the arrays over which ``fn`` closes the last arguments.

    Names come from ``fn``: a pytree, a method of one, a partial function, or a function with the variables that it
    refers to.
    """
    import jax

    closed = jax.jit(function.function).trace(*function.values).jaxpr
    names = dict(_named_arrays(fn))
    held = {key: np.asarray(value) for key, value in _constants(closed) if key in names}
    weights = {names[key]: value for key, value in held.items()}
    keys = list(held)

    def hoisted(*values: Any) -> list[Any]:
        inputs, given = values[: len(function.values)], values[len(function.values) :]
        return _evaluate(closed, inputs, dict(zip(keys, given, strict=True)))

    hoisted.__name__ = hoisted.__qualname__ = getattr(function.function, "__name__", "function")
    return ArrayFunction(
        hoisted,
        [*function.values, *(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in weights.values())],
        (*function.names, *weights),
        function.donated,
        function.outputs,
        weights,
    )


def _key(array: Any) -> int:
    """Return the identity of an array; jax wraps those of numpy in jaxprs."""
    return id(getattr(array, "base", None) if type(array).__name__ == "TypedNdArray" else array)


def _named_arrays(fn: Any) -> Iterator[tuple[int, str]]:
    """Yield the arrays in the variables of a callable by identity, with their names: ``params.dense.kernel``."""
    import jax

    seen: set[int] = set()
    for root, value in _roots(fn, 0):
        for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]:
            if not hasattr(leaf, "dtype") or id(leaf) in seen:
                continue
            seen.add(id(leaf))
            inner = jax.tree_util.keystr(path, simple=True, separator=".")
            yield id(leaf), ".".join(each for each in (root, inner) if each)


def _roots(fn: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the values that a callable holds, each with the name of the variable; a module itself has none."""
    if depth > _DEEPEST or not callable(fn):
        return
    owner = getattr(fn, "__self__", None)
    if owner is not None and not inspect.ismodule(owner):
        yield "", owner
        fn = fn.__func__ if hasattr(fn, "__func__") else fn
    if isinstance(fn, functools.partial):
        yield from ((f"args.{at}", each) for at, each in enumerate(fn.args))
        yield from fn.keywords.items()
        yield from _roots(fn.func, depth + 1)
        return
    fn = inspect.unwrap(fn)
    if not inspect.isfunction(fn):
        # A module of Flax Linen is no pytree; if it is bound, it has its variables.
        held: Any = None
        with suppress(ValueError):
            held = getattr(fn, "variables", None)
        yield "", held if isinstance(held, Mapping) else fn
        return
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    variables = {name: fn.__globals__[name] for name in _names_in(fn.__code__) if name in fn.__globals__}
    for name, cell in cells:
        # A variable that is not bound yet has an empty cell.
        with suppress(ValueError):
            variables[name] = cell.cell_contents
    for name, value in variables.items():
        yield name, value
        yield from _roots(value, depth + 1)


def _names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that a function refers to, and those of the functions that it defines."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names_in(each)


def _constants(closed: Any) -> Iterator[tuple[int, Any]]:
    """Yield the constants of a jaxpr and of the calls in it, by identity."""
    seen: set[int] = set()
    for value in closed.consts:
        if _key(value) not in seen:
            seen.add(_key(value))
            yield _key(value), value
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive.name in _CALLS:
            yield from ((key, value) for key, value in _constants(eqn.params["jaxpr"]) if key not in seen)


#: Calls of functions that ``jax.jit`` made; constants of other inner jaxprs are operands already.
_CALLS: Final = ("jit", "pjit")


def _evaluate(closed: Any, inputs: Sequence[Any], weights: Mapping[int, Any]) -> list[Any]:
    """Evaluate a jaxpr with other values for some of its constants, and the source locations of its own."""
    import jax
    from jax.extend import source_info_util

    jaxpr = closed.jaxpr
    env = dict(zip(jaxpr.constvars, (weights.get(_key(each), each) for each in closed.consts), strict=True))
    env.update(zip(jaxpr.invars, inputs, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if hasattr(atom, "val") else env[atom]

    for eqn in jaxpr.eqns:
        stack = source_info_util.current_name_stack() + eqn.source_info.name_stack
        operands = [read(each) for each in eqn.invars]
        with source_info_util.user_context(eqn.source_info.traceback, name_stack=stack), eqn.ctx.manager:
            inner = eqn.params.get("jaxpr") if eqn.primitive.name in _CALLS else None
            held = [key for key, _ in _constants(inner) if key in weights] if inner is not None else []
            if held:
                results = jax.jit(_call(inner, held, eqn.params["name"]))([weights[key] for key in held], *operands)
            else:
                bound = eqn.primitive.get_bind_params(eqn.params)
                # Before jax 0.9 with functions beside the parameters.
                functions, params = bound if isinstance(bound, tuple) else ((), bound)
                results = eqn.primitive.bind(*functions, *operands, **params)
        if not eqn.primitive.multiple_results and not held:
            results = [results]
        env.update(zip(eqn.outvars, results, strict=True))
    return [read(each) for each in jaxpr.outvars]


def _call(closed: Any, keys: Sequence[int], name: str) -> Callable[..., list[Any]]:
    def call(weights: Sequence[Any], *operands: Any) -> list[Any]:
        return _evaluate(closed, operands, dict(zip(keys, weights, strict=True)))

    call.__name__ = call.__qualname__ = name
    return call


# Export functions that ``jax.jit`` lowered

#: ``jax.export`` writes this attribute into every module, and artifacts for this window.
_POLYMORPHISM: Final = "jax.uses_shape_polymorphism"
_WINDOW: Final = "WEEK_4"


def open_lowered(
    source: ProgramSource,
    target: str | Version,
    *,
    weights: Literal["arguments", "constants"],
    name: str | None = None,
    **options: Unpack[ExportOptions],
) -> ExportedModel:
    """Export a ``jax.stages.Lowered``, or a ``jax.stages.Traced``, which is lowered.

    The findings list dropped donations. ``weights="arguments"`` is refused: the function itself decides.
    """
    lowered: Any = source.lower() if hasattr(source, "lower") else source
    name = name or "the lowered function"
    if weights == "arguments":
        raise InvalidInputError(f"the weights of {name} are determined by its function: omit weights")
    module = lowered.compiler_ir("stablehlo")
    if module is None:
        raise InvalidProgramError(f"{name} has no form in StableHLO: it was lowered for a backend without it")
    artifact = serialize_module(_as_exported(module), target, name=name, **options)
    program = artifact.declared_aliases()
    inputs = tuple(each.name or f"argument{number}" for number, each in enumerate(program.parameters))
    outputs = tuple(each.name or f"output{number}" for number, each in enumerate(program.results))
    return ExportedModel(artifact.with_findings([*artifact.findings, *_dropped(lowered, artifact)]), inputs, outputs)


def _as_exported(module: Any) -> Any:
    """Return a module as the artifact that ``jax.export`` makes of it, so that both are the same program.

    A module without such a form is returned as it is: its serialization explains why.
    """
    provider = provider_of(module)
    if provider is None:
        return module
    own = provider.clone(module)
    if _POLYMORPHISM not in own.operation.attributes:
        own.operation.attributes[_POLYMORPHISM] = provider.ir.BoolAttr.get(False, own.context)
    version = provider.library.requirements[_WINDOW]
    try:
        data = xla.jax_artifact(provider.as_module(own), str(version))
    except xla.XlaFailure:
        return module
    return Artifact(data, trusted=True)


def _dropped(lowered: Any, artifact: Artifact) -> list[Finding]:
    """Return the dropped donations, if this version of jax reports which arguments it kept."""
    lowering = getattr(lowered, "_lowering", None)
    kept = getattr(lowering, "compile_args", {}).get("kept_var_idx")
    if kept is None:
        return []
    # `const_args` are constants that jax turned into arguments.
    return dropped_donations(artifact, lowered.args_info, kept, before=len(getattr(lowering, "const_args", ())))
