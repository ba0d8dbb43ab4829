"""Why a program cannot be written.

The library names the first op at fault, and no version. Every reason, with its place and version, comes from the bytes
of the program at the current version; its diagnostics serve only where a program has no such bytes.
"""

from __future__ import annotations

import re
from typing import Final

from vhlo_tools.bindings import MLIRFailure, Operation, source_of
from vhlo_tools.compat import Requirements, Target
from vhlo_tools.convert.fidelity import KEEP_OR_LOWER, RESPELL, refused_attributes
from vhlo_tools.dialect import known_feature
from vhlo_tools.errors import DowngradeError, InvalidProgramError, UnsupportedFeatureError, VhloToolsError
from vhlo_tools.findings import Diagnostic, Finding
from vhlo_tools.program import Program, explain_failure, place_of

__all__ = ["explain_downgrade", "explain_legalization", "explain_other_dialects", "explain_refusal"]

_REFUSED: Final = re.compile(r"failed to legalize operation '([^']+)' that was explicitly marked illegal")

_PROGRAM_DIALECTS: Final = frozenset({"builtin", "func", "stablehlo", "vhlo"})

_DIALECT_OF_NAME: Final = re.compile(r"[#!](\w+)[.<]")

_SHOWN_CULPRITS: Final = 20


def explain_downgrade(
    program: Program, target: Target, requirements: Requirements, failure: MLIRFailure
) -> VhloToolsError:
    """Return why ``program`` cannot be at ``target``, and the oldest version that it can be at.

    Args:
        program: The program.
        target: Where it cannot be.
        requirements: What it requires, by its bytes at the current version.
        failure: What the library said.
    """
    if invalid := _invalidity(program):
        return invalid
    findings = [finding for finding in requirements.findings(target.version) if finding.level == "error"]
    if not findings:
        # The library refuses what our rules allow: its own words are all there is.
        findings = [_refused_op(program, diagnostic) for diagnostic in failure.diagnostics[:1]]
        return DowngradeError(f"{program.name} cannot be written for {target}", findings)
    reach = f"it can be written for StableHLO {requirements.downgradable_to} or later"
    return DowngradeError(f"{program.name} cannot be written for {target}; {reach}", findings)


def explain_refusal(program: Program, failure: MLIRFailure) -> VhloToolsError:
    """Return why ``program`` cannot be written at any version, although it has a form in VHLO."""
    if invalid := _invalidity(program):
        return invalid
    findings = [_refused_op(program, diagnostic) for diagnostic in failure.diagnostics[:1]]
    return UnsupportedFeatureError(f"{program.name} holds what a portable artifact cannot hold", findings)


def explain_legalization(program: Program, failure: MLIRFailure, *, allow_other_dialects: bool) -> VhloToolsError:
    """Return why ``program`` has no form in VHLO."""
    if invalid := _invalidity(program):
        return invalid
    findings = [] if allow_other_dialects else _ops_without_form(program)
    findings += refused_attributes(program, allow_other_dialects=allow_other_dialects)
    if not findings:
        findings = [_refused_op(program, diagnostic) for diagnostic in failure.diagnostics[:1]]
    return UnsupportedFeatureError(f"{program.name} holds what a portable artifact cannot hold", findings)


def _invalidity(program: Program) -> InvalidProgramError | None:
    """Return what is wrong with the program itself, which nobody verified if it came as a module."""
    try:
        program.provider.verify(program.load())
    except MLIRFailure as failure:
        said = explain_failure(program.name, program.provider, failure)
        return InvalidProgramError(f"{program.name} is not valid: {said}", failure.diagnostics)
    return None


def _ops_without_form(program: Program) -> list[Finding]:
    mixed = known_feature("mixed_dialects")
    module = program.load()
    first: dict[str, Operation] = {}
    count: dict[str, int] = {}
    for op in program.provider.walk(module):
        name = str(op.name)
        if name.partition(".")[0] not in _PROGRAM_DIALECTS:
            first.setdefault(name, op)
            count[name] = count.get(name, 0) + 1
    return [
        Finding(
            feature=mixed.id,
            level="error",
            kind=mixed.kind,
            message=f"{name} is of the dialect {name.partition('.')[0]} and no part of StableHLO",
            op=name,
            location=place_of(source_of(op.location), program.name),
            introduced=mixed.introduced,
            remedy=KEEP_OR_LOWER,
            count=count[name],
        )
        for name, op in list(first.items())[:_SHOWN_CULPRITS]
    ]


def explain_other_dialects(program: Program, dialects: frozenset[str]) -> UnsupportedFeatureError:
    """Return the refusal of ``dialects`` that ``program`` holds although they were not allowed."""
    mixed = known_feature("mixed_dialects")
    findings = _ops_without_form(program)
    named = {str(finding.op).partition(".")[0] for finding in findings}
    findings += [
        Finding(
            feature=mixed.id,
            level="error",
            kind=mixed.kind,
            message=f"an attribute or a type is of the dialect {dialect}, which is no part of StableHLO",
            introduced=mixed.introduced,
            remedy=KEEP_OR_LOWER,
        )
        for dialect in sorted(dialects - named)
    ]
    return UnsupportedFeatureError(f"{program.name} holds other dialects than StableHLO", findings)


def _refused_op(program: Program, diagnostic: Diagnostic) -> Finding:
    match = _REFUSED.match(diagnostic.message)
    if match is None:
        return Finding(
            feature="not_portable",
            level="error",
            kind="op",
            message=diagnostic.message,
            location=place_of(diagnostic.source, program.name),
        )
    shown = diagnostic.message.partition(": ")[2]
    foreign = sorted(set(_DIALECT_OF_NAME.findall(shown)) - _PROGRAM_DIALECTS)
    if foreign:
        dialects = ", ".join(foreign)
        what, remedy = f"an attribute or a type of the dialect {dialects}", KEEP_OR_LOWER
    else:
        what, remedy = f"an attribute or a type without a form in VHLO: {shown[:200]}", RESPELL
    return Finding(
        feature="mixed_dialects" if foreign else "not_portable",
        level="error",
        kind="dialect" if foreign else "attribute",
        message=f"{match[1]} has {what}",
        op=match[1],
        location=place_of(diagnostic.source, program.name),
        remedy=remedy,
    )
