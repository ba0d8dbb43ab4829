"""Functions that ``jax.jit`` lowered as programs."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, Literal

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import InvalidInputError, InvalidProgramError
from vhlo_tools.findings import Finding
from vhlo_tools.integrations.donations import dropped_donations
from vhlo_tools.integrations.model import ExportedModel, serialize_module
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.program import ProgramSource

__all__ = ["open_lowered"]


def open_lowered(
    source: ProgramSource,
    target: str | Version,
    *,
    weights: Literal["arguments", "constants"],
    name: str | None,
    allow_other_dialects: bool,
    legalize: bool,
    as_of: date | None,
    provider: str | None,
) -> ExportedModel:
    """Export a ``jax.stages.Lowered``, as :class:`vhlo_tools.api.frontends.Exporter` asks for it.

    The findings of the artifact tell the donations that jax dropped.

    Raises:
        InvalidInputError: If weights shall be arguments, which are where the function has them.
        InvalidProgramError: If it has no form in StableHLO.
    """
    lowered: Any = source
    name = name or "the lowered function"
    if weights == "arguments":
        raise InvalidInputError(f"{name} has its weights where the function has them: leave weights out")
    module = lowered.compiler_ir("stablehlo")
    if module is None:
        raise InvalidProgramError(f"{name} has no form in StableHLO: it was lowered for a backend without it")
    artifact = serialize_module(
        module,
        target,
        name=name,
        allow_other_dialects=allow_other_dialects,
        legalize=legalize,
        as_of=as_of,
        provider=provider,
    )
    program = artifact.declared_aliases()
    inputs = tuple(each.name or f"argument{number}" for number, each in enumerate(program.parameters))
    outputs = tuple(each.name or f"output{number}" for number, each in enumerate(program.results))
    return ExportedModel(artifact.with_findings([*artifact.findings, *_dropped(lowered, artifact)]), inputs, outputs)


def _dropped(lowered: Any, artifact: Artifact) -> list[Finding]:
    """Return the donations that were dropped, where this jax tells which arguments it kept."""
    lowering = getattr(lowered, "_lowering", None)
    kept = getattr(lowering, "compile_args", {}).get("kept_var_idx")
    if kept is None:
        return []
    # Constants that jax made arguments.
    return dropped_donations(artifact, lowered.args_info, kept, before=len(getattr(lowering, "const_args", ())))
