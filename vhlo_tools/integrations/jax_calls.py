"""Export a function of JAX for the arguments of one call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import UnsupportedFeatureError
from vhlo_tools.findings import Finding, SourceLocation
from vhlo_tools.integrations.exported_model import serialize_module
from vhlo_tools.integrations.jax_functions import (
    ArrayFunction,
    array_function,
    dropped_donations,
    exclude_from_locations,
    is_array,
    with_weights,
)
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

#: Primitives that run Python or a kernel of their own, by the functions of JAX that users call.
_OPAQUE: Final = {
    "debug_callback": "jax.debug.callback or jax.debug.print",
    "debug_print": "jax.debug.print",
    "io_callback": "jax.experimental.io_callback",
    "pallas_call": "jax.experimental.pallas.pallas_call",
    "pure_callback": "jax.pure_callback",
}
_REMEDIES: Final = {
    "pallas_call": "export it for the platform of the kernel (platforms=), or with interpret=True",
}
_REMEDY: Final = "remove it from what is exported: the artifact cannot contain a function of Python"
_PLACE: Final = re.compile(r"(?P<file>.*?):(?P<line>\d+)(?::(?P<column>\d+))?(?: \(.*\))?")


@dataclass(frozen=True, slots=True)
class JaxOptions:
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


@dataclass(frozen=True, slots=True)
class ExportedCall:
    """A function, exported for the arguments of one call."""

    artifact: Artifact  # the donations that jax dropped are among its findings
    inputs: tuple[str, ...]  # arguments of ``main`` without the weights
    outputs: tuple[str, ...]
    weights: Mapping[str, Any]
    exported: Any  # the ``jax.export.Exported`` that the artifact was made of
    is_direct: bool  # ``exported`` is of the function itself, not of a function of its arrays


def export_call(
    options: JaxOptions,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    version: Version | None,
    provider: str | None,
    *,
    hoisted: bool,
) -> ExportedCall:
    """Export for the arguments of a call (pytrees); ``version`` is ``None`` for the one that jax writes.

    ``hoisted`` makes arrays over which the function closes arguments.
    """
    import jax

    exclude_from_locations()
    statics = options.static_argnums or options.static_argnames
    direct = not (hoisted or statics) and all(map(is_array, jax.tree_util.tree_leaves((args, dict(kwargs)))))
    if direct:
        jitted, names = jitted_as_called(options), None
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
    artifact = serialize_module(own, version or own.version, name=options.name, provider=provider)
    dropped = dropped_donations(artifact, traced.args_info, kept, names=names)
    artifact = artifact.with_findings([*artifact.findings, *dropped])
    if names is not None:
        artifact = _named(artifact, [names[at] for at in sorted(kept)], outputs)
    program = artifact.declared_aliases()
    found = [each.name or f"argument{at}" for at, each in enumerate(program.parameters)]
    held = {name: weights[name] for name in found if name in weights}
    return ExportedCall(
        artifact,
        tuple(found[: len(found) - len(held)]),
        tuple(each.name or f"output{at}" for at, each in enumerate(program.results)),
        held,
        exported,
        direct,
    )


def jitted_as_called(options: JaxOptions) -> Any:
    """A function of ``jax.jit`` keeps the settings that it has already."""
    import jax

    fn = options.fn
    if is_jitted(fn) and not (options.donate_argnums or options.static_argnums or options.static_argnames):
        return fn
    return jax.jit(
        # Modules with arrays have no hash.
        fn if _has_hash(fn) else _function_of(fn),
        donate_argnums=options.donate_argnums,
        static_argnums=options.static_argnums,
        static_argnames=options.static_argnames,
    )


def is_jitted(fn: Any) -> bool:
    """The check includes the class, because functions of other libraries have methods of the same names."""
    import jax

    return isinstance(fn, jax.stages.Wrapped) and type(fn).__module__.partition(".")[0] in ("jax", "jaxlib")


def _has_hash(fn: Any) -> bool:
    try:
        hash(fn)
    except TypeError:
        return False
    return True


def _function_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    function.__name__ = function.__qualname__ = type(fn).__name__
    with suppress(TypeError, ValueError):
        function.__signature__ = inspect.signature(fn)  # type: ignore[attr-defined]
    return function


def _arrays(options: JaxOptions, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ArrayFunction:
    import jax

    function = array_function(
        options.fn, args, kwargs, options.donate_argnums, options.static_argnums, options.static_argnames
    )
    if is_jitted(options.fn) and not options.donate_argnums:
        # Its own donations.
        with suppress(TypeError, ValueError):
            jitted: Any = options.fn
            info = jax.tree_util.tree_leaves(jitted.trace(*args, **kwargs).args_info)
            if len(info) == len(function.values):
                function.donated = tuple(at for at, each in enumerate(info) if each.donated)
    return function


def _exported(jitted: Any, given: tuple[Any, Mapping[str, Any]], options: JaxOptions, traced: Any) -> Any:
    import jax.export

    try:
        exporter = jax.export.export(jitted, platforms=options.platforms, disabled_checks=options.disabled_checks)
        return exporter(*given[0], **given[1])
    except (ValueError, NotImplementedError) as error:
        findings = list(_opaque(traced.jaxpr.jaxpr, options.name))
        if not findings:
            raise
        raise UnsupportedFeatureError(f"{options.name} cannot be exported", findings) from error


def _opaque(jaxpr: Any, name: str) -> Iterator[Finding]:
    """Yield a finding for each call of Python or of a kernel, with its line."""
    from jax.extend import core, source_info_util

    for eqn in jaxpr.eqns:
        called = eqn.primitive.name
        if called in _OPAQUE:
            place = _PLACE.fullmatch(source_info_util.summarize(eqn.source_info))
            location = None
            if place is not None:
                column = place["column"]
                location = SourceLocation(place["file"], int(place["line"]), int(column or 1))
            message = f"{_OPAQUE[called]} has no form in an artifact for other processes"
            yield Finding(
                "jax_primitive",
                "error",
                "op",
                message,
                op=called,
                location=location,
                remedy=_REMEDIES.get(called, _REMEDY),
            )
    for eqn in jaxpr.eqns:
        for parameter in eqn.params.values():
            # `subjaxprs` moved between modules of jax in its releases.
            for each in parameter if isinstance(parameter, tuple | list) else (parameter,):
                if isinstance(each, core.Jaxpr | core.ClosedJaxpr):
                    yield from _opaque(getattr(each, "jaxpr", each), name)


def _named(artifact: Artifact, kept: Sequence[str], outputs: Sequence[str]) -> Artifact:
    """Name the last arguments and results of ``main``: before them jax may add its own."""
    signature = artifact.aliases().signature
    first = len(signature.parameters) - len(kept)
    before = (signature.results or 0) - len(outputs)
    return artifact.with_names(
        {first + at: name for at, name in enumerate(kept)}, {before + at: name for at, name in enumerate(outputs)}
    )
