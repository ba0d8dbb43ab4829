"""Export functions that ``jax.jit`` lowered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import provider_of, xla
from vhlo_tools.errors import InvalidInputError, InvalidProgramError
from vhlo_tools.findings import Finding
from vhlo_tools.integrations.donations import dropped_donations
from vhlo_tools.integrations.exported_model import ExportedModel, serialize_module
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.program import ExportOptions, ProgramSource

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
    """Export a ``jax.stages.Lowered``; implements :class:`vhlo_tools.api.frontends.Exporter`.

    The findings list dropped donations. ``weights="arguments"`` is refused: the function itself decides.
    """
    lowered: Any = source
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
