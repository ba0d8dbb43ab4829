"""Refusal of programs that violate the specification so that an engine returns wrong numbers without a word."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from vhlo_tools.compat import SILENT, violations
from vhlo_tools.conversion import newest_artifact
from vhlo_tools.errors import EngineError, InvalidProgramError, UnsupportedFeatureError
from vhlo_tools.program import Program

_OPS: Final = frozenset(f"stablehlo.{op}" for op in SILENT)


def refuse_silent_violations(program: Program, module: Any) -> None:
    """Rules are about VHLO, so ``program``, whose ``module`` this is, is written if it has an op that one is about."""
    if not any(str(op.name) in _OPS for op in program.provider.walk(module)):
        return
    # What no artifact can hold cannot be examined.
    with suppress(UnsupportedFeatureError, InvalidProgramError):
        artifact = newest_artifact(program, allow_other_dialects=True, legalize=False)
        if found := violations(artifact.file, program.name, SILENT):
            first = found[0]
            raise EngineError(f"{first.location or program.name}: {first.message}; {first.remedy}")
