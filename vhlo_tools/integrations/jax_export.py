"""Functions of JAX as portable artifacts, and as files of ``jax.export``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from os import PathLike
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, Unpack

import numpy as np

from vhlo_tools.artifact import Artifact, JaxContainer, save_artifact
from vhlo_tools.compat import AllowRelaxed, Expand, expansion_policy
from vhlo_tools.errors import InvalidProgramError, UnsupportedFeatureError
from vhlo_tools.findings import Finding, SourceLocation
from vhlo_tools.integrations.exported_model import ExportedModel, serialize_module
from vhlo_tools.integrations.extras import require_extra
from vhlo_tools.integrations.jax import resolved_target, retarget
from vhlo_tools.integrations.jax_functions import (
    ArrayFunction,
    array_function,
    dropped_donations,
    exclude_from_locations,
    is_array,
    with_weights,
)
from vhlo_tools.integrations.proof import verified
from vhlo_tools.records import dataclass
from vhlo_tools.spec import Release
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.program import ExportOptions

_REGISTRATION: Final = re.compile(r"unregistered type `<class '([^']+)'>`")


class _FileOptions(TypedDict, total=False):
    """What expands the artifacts in a jax.export file."""

    expand: Expand
    allow_relaxed: AllowRelaxed
    provider: str | None


@dataclass(frozen=True, slots=True)
class JaxProgram(ExportedModel):
    """A function of JAX as a portable artifact, and as ``jax.export`` keeps it.

    ``save`` writes the artifact and the weights; ``save_jax_export`` a file for ``jax.export.deserialize``.
    """

    #: Exports the function with ``jax.export`` as it was called, at the version that jax chooses.
    jax_export: Callable[[], Any] = field(repr=False, compare=False, default=lambda: None)
    version: Version | None = None  # of the artifacts in a jax.export file; None for jax's choice
    vjp_order: int = 0  # the number of derivatives in such a file
    consumers: tuple[Release, ...] = ()  # the releases that the target names
    expansions: _FileOptions = field(default_factory=_FileOptions)  # of the artifacts in such a file

    @property
    def exported(self) -> Any:
        """The ``jax.export.Exported``, which has the constants as they are in the function."""
        return self.jax_export()

    @property
    def container(self) -> JaxContainer:
        """The jax.export file, with the artifacts at the requested version, expanded as the artifact is.

        Types of arguments never change in it, for the file states them too. Its ``findings`` contain a warning if the
        target names a release of jax that does not read such files.
        """
        require_extra("jax", "writing a jax.export file", "flatbuffers")
        exported = self.exported
        try:
            data = bytes(exported.serialize(vjp_order=self.vjp_order))
        except ValueError as error:
            if found := _REGISTRATION.search(str(error)):
                raise InvalidProgramError(_unregistered(str(exported.fun_name), found[1])) from error
            raise
        container = JaxContainer(data, name=str(exported.fun_name))
        if self.version is not None and self.version != container.version:
            container = retarget(container, self.version, **self.expansions, trusted=True)
        return container.checked_for(self.consumers)

    @property
    def serialized(self) -> bytes:
        return bytes(self.container)

    def save_jax_export(
        self, path: str | PathLike[str], *, force: bool = False, manifest: bool = False
    ) -> JaxContainer:
        """Write a jax.export file, which ``jax.export.deserialize`` reads.

        Args:
            path: The file.
            force: Whether an existing file may be replaced.
            manifest: Whether to write a :class:`vhlo_tools.Manifest` beside it.

        Returns:
            The file, with findings about its consumers.

        Raises:
            FileExistsError: If ``path`` exists and ``force`` is not set.
            MissingExtraError: If flatbuffers is not installed.
            InvalidProgramError: If jax cannot serialize a type in the arguments or results; with what registers it.
            OSError: If the file cannot be written.
        """
        container = self.container
        save_artifact(container, path, force=force, manifest=manifest, made=self.artifact.made)
        return container


def export(
    fn: Callable[..., Any],
    *,
    target: str | Version | None = None,
    weights: Literal["constants", "arguments"] = "constants",
    donate_argnums: int | Sequence[int] = (),
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[Any] = (),
    vjp_order: int = 0,
    verify: bool | None = None,
    **writing: Unpack[ExportOptions],
) -> Callable[..., JaxProgram]:
    """Return a function that exports ``fn`` for the arguments with which it is called, as ``jax.export.export`` does.

    Arguments and results may be any pytrees; their types need no registration. Leaves that are no arrays, such as
    functions in modules of Equinox, are part of the program. Donated arguments are marked in the artifact if an output
    can use their memory; its findings contain the donations that jax dropped. Mistakes in ``fn`` and its arguments are
    reported by jax itself.

    >>> program = export(step, target="1.0.0", donate_argnums=0)(params, batch)  # doctest: +SKIP

    Args:
        fn: The function; one made by ``jax.jit`` keeps its settings.
        target: In the target grammar; by default the version that jax writes.
        weights: Whether arrays over which ``fn`` closes are constants of the artifact, or arguments after the inputs,
            named by their variables and paths in pytrees: ``params.dense.kernel``.
        donate_argnums: The indices of the donated positional arguments.
        static_argnums: The indices of positional arguments that are part of the program, as for ``jax.jit``.
        static_argnames: The same for arguments by name.
        platforms: The platforms to lower it for, by default the one that jax runs on.
        disabled_checks: The ``jax.export.DisabledSafetyCheck`` to omit.
        vjp_order: The number of derivatives in a jax.export file.
        verify: Whether results on the arguments, random ones for ``jax.ShapeDtypeStruct``, are compared with those of
            JAX. By default they are not, for JAX compiles the function then, which costs more than the export.
        writing: See :class:`vhlo_tools.program.ExportOptions`.

    Raises:
        MissingExtraError: If jax is not installed.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If the target looks like a version but is not valid.
        ValueError: If a feature to be expanded is unknown, or has no such expansion.

    The returned function takes the arguments of ``fn``, or ``jax.ShapeDtypeStruct`` instead, also with symbolic
    dimensions, and raises ``DowngradeError`` if the program needs a feature newer than the target, and
    ``UnsupportedFeatureError`` if no artifact can represent it, such as callbacks to Python.
    """
    require_extra("jax", "exporting a function of JAX", "jax")
    as_of, provider = writing.get("as_of"), writing.get("provider")
    resolved = None if target is None else resolved_target(target, as_of, provider)
    in_file: _FileOptions = {
        "expand": writing.get("expand", False),
        "allow_relaxed": writing.get("allow_relaxed", ()),
        "provider": provider,
    }
    # Here, and not when the function is called.
    expansion_policy(in_file["expand"], in_file["allow_relaxed"])
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    numbers = (_numbers(donate_argnums), _numbers(static_argnums))
    options = _JaxOptions(fn, *numbers, names, platforms, tuple(disabled_checks))

    def exporter(*args: Any, **kwargs: Any) -> JaxProgram:
        hoisted, started = weights == "arguments", monotonic()
        model, direct, call = _export_call(options, args, kwargs, target, writing, hoisted=hoisted)
        if verify:
            refusal = None if not platforms or "cpu" in platforms else f"it is for {', '.join(platforms)}"
            model = verified(model, "JAX", call.compute, call.examples, verify=True, started=started, reason=refusal)

        def exported() -> Any:
            if direct is not None:
                return direct
            import jax.export

            made = jax.export.export(_jitted_as_called(options), platforms=platforms, disabled_checks=disabled_checks)
            try:
                return made(*args, **kwargs)
            except TypeError as error:
                said = str(error).partition("\n")[0]
                raise InvalidProgramError(
                    f"{options.name} cannot be in a jax.export file, only in an artifact: {said}"
                ) from error

        parts = (model.artifact, model.inputs, model.outputs, model.weights)
        version, consumers = (model.artifact.version, resolved.consumers) if resolved else (None, ())
        return JaxProgram(*parts, exported, version, vjp_order, consumers, in_file)

    return exporter


def _numbers(numbers: int | Sequence[int]) -> tuple[int, ...]:
    return (numbers,) if isinstance(numbers, int) else tuple(numbers)


def _unregistered(name: str, kind: str) -> str:
    """Name the line that registers a type which jax cannot serialize."""
    short = kind.rpartition(".")[2]
    return (
        f"{name} takes or returns a {kind}, which jax cannot write into a jax.export file: register it first, with "
        f"jax.export.register_namedtuple_serialization({short}, serialized_name={kind!r}) if it is a named tuple, or "
        f"else with jax.export.register_pytree_node_serialization({short}, serialized_name={kind!r}, "
        f"serialize_auxdata=..., deserialize_auxdata=...); the artifact needs no registration"
    )


# Export of a function for the arguments of one call

#: Primitives that run Python or a kernel of their own, by the functions of JAX that users call.
_OPAQUE: Final = {
    "debug_callback": "jax.debug.callback or jax.debug.print",
    "debug_print": "jax.debug.print",
    "io_callback": "jax.experimental.io_callback",
    "pallas_call": "jax.experimental.pallas.pallas_call",
    "pure_callback": "jax.pure_callback",
}
_REMEDIES: Final = {"pallas_call": "export it for the platform of the kernel (platforms=), or with interpret=True"}
_REMEDY: Final = "remove it from what is exported: the artifact cannot contain a function of Python"
_PLACE: Final = re.compile(r"(?P<file>.*?):(?P<line>\d+)(?::(?P<column>\d+))?(?: \(.*\))?")


@dataclass(frozen=True, slots=True)
class _JaxOptions:
    """The options of an export, as of :func:`vhlo_tools.integrations.jax.export`."""

    fn: Callable[..., Any]
    donate_argnums: tuple[int, ...]
    static_argnums: tuple[int, ...]
    static_argnames: tuple[str, ...]
    platforms: Sequence[str] | None
    disabled_checks: tuple[Any, ...]

    @property
    def name(self) -> str:
        return str(getattr(self.fn, "__name__", type(self.fn).__name__))


def _export_call(
    options: _JaxOptions,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    target: str | Version | None,
    writing: ExportOptions,
    *,
    hoisted: bool,
) -> tuple[ExportedModel, Any, _Call]:
    """Export for the arguments of a call (pytrees); ``target`` is ``None`` for the version that jax writes.

    ``hoisted`` makes arrays over which the function closes arguments. Also returns the ``jax.export.Exported``, unless
    it is not of the function itself, but of a function of its arrays; and the call.
    """
    import jax

    exclude_from_locations()
    statics = options.static_argnums or options.static_argnames
    direct = not (hoisted or statics) and all(map(is_array, jax.tree_util.tree_leaves((args, dict(kwargs)))))
    if direct:
        jitted, names = _jitted_as_called(options), None
        given: tuple[Any, Mapping[str, Any]] = (args, kwargs)
        weights: Mapping[str, Any] = {}
        outputs: Sequence[str] = ()
    else:
        function = _arrays(options, args, kwargs)
        function = with_weights(function, options.fn) if hoisted else function
        jitted, names = jax.jit(function.function, donate_argnums=function.donated), function.names
        given, weights, outputs = (tuple(function.values), {}), function.weights, function.outputs
    traced = jitted.trace(*given[0], **given[1])
    exported = _exported(jitted, given, options, traced)
    kept = exported.module_kept_var_idx
    own = Artifact(exported.mlir_module_serialized, name=options.name, trusted=True)
    artifact = serialize_module(own, own.version if target is None else target, name=options.name, **writing)
    dropped = dropped_donations(artifact, traced.args_info, kept, names=names)
    artifact = artifact.with_findings([*artifact.findings, *dropped])
    if names is not None:
        artifact = _named(artifact, [names[at] for at in sorted(kept)], outputs)
    program = artifact.declared_aliases()
    found = [each.name or f"argument{at}" for at, each in enumerate(program.parameters)]
    held = {name: weights[name] for name in found if name in weights}
    outputs = tuple(each.name or f"output{at}" for at, each in enumerate(program.results))
    model = ExportedModel(artifact, tuple(found[: len(found) - len(held)]), outputs, held)
    call = _Call(options.fn if direct else function.function, given, sorted(kept), tuple(model.weights.values()))
    return model, exported if direct else None, call


@dataclass(frozen=True, slots=True)
class _Call:
    """A function with the arguments of a call, for a comparison of its results."""

    function: Callable[..., Any]
    given: tuple[tuple[Any, ...], Mapping[str, Any]]
    kept: Sequence[int]  # the indices of the flattened arguments that ``main`` takes
    weights: Sequence[Any]  # the values of the last of these

    @property
    def examples(self) -> list[Any] | None:
        """The inputs of ``main``; ``None`` if some are shapes alone."""
        import jax

        leaves = jax.tree_util.tree_leaves(self.given)
        found = [leaves[at] for at in self.kept[: len(self.kept) - len(self.weights)]]
        return None if any(isinstance(each, jax.ShapeDtypeStruct) for each in found) else list(map(np.asarray, found))

    def compute(self, inputs: Sequence[Any]) -> list[Any]:
        """Call the function with other inputs of ``main``; copies, for they may be donated."""
        import jax
        import jax.numpy as jnp

        leaves, tree = jax.tree_util.tree_flatten(self.given)
        leaves = [
            jnp.zeros(each.shape, each.dtype) if isinstance(each, jax.ShapeDtypeStruct) else each for each in leaves
        ]
        for at, value in zip(self.kept, [*inputs, *self.weights], strict=True):
            wanted = jax.dtypes.canonicalize_dtype(jnp.result_type(leaves[at]))
            if jax.dtypes.canonicalize_dtype(value.dtype) != wanted:
                # Stored as integers (allow_signature_change), of which some may stand for no value.
                raise TypeError(f"random inputs are of {value.dtype} in place of {wanted}: give arrays, not shapes")
            leaves[at] = jnp.array(value, copy=True)
        args, kwargs = jax.tree_util.tree_unflatten(tree, leaves)
        results = jax.jit(lambda: self.function(*args, **kwargs))()
        return [np.asarray(each) for each in jax.tree_util.tree_leaves(results)]


def _jitted_as_called(options: _JaxOptions) -> Any:
    """A function of ``jax.jit`` keeps the settings that it has already."""
    import jax

    fn = options.fn
    if _is_jitted(fn) and not (options.donate_argnums or options.static_argnums or options.static_argnames):
        return fn
    try:
        hash(fn)
    except TypeError:
        # Modules with arrays have none.
        fn = _function_of(fn)
    return jax.jit(
        fn,
        donate_argnums=options.donate_argnums,
        static_argnums=options.static_argnums,
        static_argnames=options.static_argnames,
    )


def _is_jitted(fn: Any) -> bool:
    """The check includes the class, because functions of other libraries have methods of the same names."""
    import jax

    return isinstance(fn, jax.stages.Wrapped) and type(fn).__module__.partition(".")[0] in ("jax", "jaxlib")


def _function_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    function.__name__ = function.__qualname__ = type(fn).__name__
    with suppress(TypeError, ValueError):
        function.__signature__ = inspect.signature(fn)  # type: ignore[attr-defined]
    return function


def _arrays(options: _JaxOptions, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ArrayFunction:
    import jax

    function = array_function(
        options.fn, args, kwargs, options.donate_argnums, options.static_argnums, options.static_argnames
    )
    if _is_jitted(options.fn) and not options.donate_argnums:
        # Its own donations.
        with suppress(TypeError, ValueError):
            jitted: Any = options.fn
            info = jax.tree_util.tree_leaves(jitted.trace(*args, **kwargs).args_info)
            if len(info) == len(function.values):
                function.donated = tuple(at for at, each in enumerate(info) if each.donated)
    return function


def _exported(jitted: Any, given: tuple[Any, Mapping[str, Any]], options: _JaxOptions, traced: Any) -> Any:
    import jax.export

    try:
        exporter = jax.export.export(jitted, platforms=options.platforms, disabled_checks=options.disabled_checks)
        return exporter(*given[0], **given[1])
    except (ValueError, NotImplementedError) as error:
        findings = list(_opaque(traced.jaxpr.jaxpr))
        if not findings:
            raise
        raise UnsupportedFeatureError(f"{options.name} cannot be exported", findings) from error


def _opaque(jaxpr: Any) -> Iterator[Finding]:
    """Yield a finding for each call of Python or of a kernel, with its line."""
    from jax.extend import core, source_info_util

    for eqn in jaxpr.eqns:
        called = eqn.primitive.name
        if called in _OPAQUE:
            place = _PLACE.fullmatch(source_info_util.summarize(eqn.source_info))
            location = place and SourceLocation(place["file"], int(place["line"]), int(place["column"] or 1))
            message = f"{_OPAQUE[called]} has no form in an artifact for other processes"
            remedy = _REMEDIES.get(called, _REMEDY)
            yield Finding("jax_primitive", "error", "op", message, called, location, remedy=remedy)
    for eqn in jaxpr.eqns:
        for parameter in eqn.params.values():
            # `subjaxprs` moved between modules of jax in its releases.
            for each in parameter if isinstance(parameter, tuple | list) else (parameter,):
                if isinstance(each, core.Jaxpr | core.ClosedJaxpr):
                    yield from _opaque(getattr(each, "jaxpr", each))


def _named(artifact: Artifact, kept: Sequence[str], outputs: Sequence[str]) -> Artifact:
    """Name the last arguments and results of ``main``: before them jax may add its own."""
    signature = artifact.aliases().signature
    first = len(signature.parameters) - len(kept)
    before = (signature.results or 0) - len(outputs)
    named = artifact.with_names(
        {first + at: name for at, name in enumerate(kept)}, {before + at: name for at, name in enumerate(outputs)}
    )
    return named.with_making(artifact.made)
