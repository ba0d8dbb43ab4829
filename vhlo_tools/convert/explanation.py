"""Why a program cannot be written: from diagnostics to findings.

The library names the first op at fault, and no version. What it refuses at the target is therefore tried again at newer
versions, until that op passes; the next op at fault is found from there, and so on up to the version where the whole
program passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from vhlo_tools.bindings import MLIRFailure, ModuleOp, Operation, source_of
from vhlo_tools.compat import Target
from vhlo_tools.convert.passes import to_version
from vhlo_tools.convert.places import calling_place
from vhlo_tools.dialect import Feature, known_feature, known_features, known_versions
from vhlo_tools.errors import DowngradeError, InvalidProgramError, UnsupportedFeatureError, VhloToolsError
from vhlo_tools.findings import Diagnostic, Finding
from vhlo_tools.program import Program, explain_failure, place_of
from vhlo_tools.version import Version

__all__ = ["explain_downgrade", "explain_legalization", "explain_other_dialects"]

_REFUSED: Final = re.compile(r"failed to legalize operation '([^']+)' that was explicitly marked illegal")
_OP_VERSION: Final = re.compile(r"vhlo\.(\w+?)_v[0-9]+")
_VHLO_NAME: Final = re.compile(r"[!#]vhlo[.<](\w+_v[0-9]+)|\bvhlo<(\w+_v[0-9]+)")

# Functions are ops of another dialect in StableHLO programs.
_PROGRAM_NAMES: Final = {"vhlo.func": "func.func", "vhlo.call": "func.call", "vhlo.return": "func.return"}
_PROGRAM_DIALECTS: Final = frozenset({"builtin", "func", "stablehlo", "vhlo"})

_DIALECT_OF_NAME: Final = re.compile(r"[#!](\w+)[.<]")

_KEEP_OR_LOWER: Final = (
    "lower it to StableHLO first, or keep it with --allow-other-dialects (allow_other_dialects=True) for consumers "
    "since 1.11.0 that know the dialect"
)
_RESPELL: Final = "unit attributes, array<i32> and dense_resource constants have none: drop or respell them"

_SHOWN_CULPRITS: Final = 20


def explain_downgrade(program: Program, target: Target, legalized: ModuleOp, failure: MLIRFailure) -> VhloToolsError:
    """Return why ``program`` cannot be at ``target``, and the oldest version that it can be at.

    Args:
        program: The program.
        target: Where it cannot be.
        legalized: The program as VHLO of the current version.
        failure: What the library said.
    """
    if invalid := _invalidity(program):
        return invalid
    provider = program.provider
    current = provider.library.current.minor_release

    def blamed_at(version: Version) -> MLIRFailure | None:
        copy = provider.clone(legalized)
        try:
            if version < current:
                provider.run_passes(copy, to_version(version), verify=False)
            provider.verify(copy)
        except MLIRFailure as refused:
            return refused
        return None

    if refused := blamed_at(current):
        # It cannot be written at any version, so that none is to blame.
        findings = [_refused_op(program, diagnostic) for diagnostic in (refused.diagnostics or failure.diagnostics)[:1]]
        return UnsupportedFeatureError(f"{program.name} holds what a portable artifact cannot hold", findings)
    findings = []
    version: Version = target.version
    blamed: MLIRFailure | None = failure
    while blamed is not None:
        candidates = [entry.version for entry in known_versions() if version < entry.version <= current]
        culprit = _culprit(blamed)
        version = _first_that_passes(candidates, culprit, blamed_at)
        findings.append(_finding(program, culprit, version, target))
        blamed = blamed_at(version)
    reach = f"it can be written for StableHLO {version} or later"
    return DowngradeError(f"{program.name} cannot be written for {target}; {reach}", findings)


def _culprit(failure: MLIRFailure) -> Diagnostic:
    for diagnostic in failure.diagnostics:
        if _REFUSED.match(diagnostic.message):
            return diagnostic
    return failure.diagnostics[0] if failure.diagnostics else Diagnostic("error", str(failure), "")


def _first_that_passes(
    versions: list[Version], culprit: Diagnostic, blamed_at: Callable[[Version], MLIRFailure | None]
) -> Version:
    """Return the oldest of ``versions`` at which ``culprit`` is not blamed; ops never pass and then fail again."""
    low, high = 0, len(versions) - 1
    while low < high:
        middle = (low + high) // 2
        blamed = blamed_at(versions[middle])
        still = blamed is not None and any(
            (diagnostic.message, diagnostic.location) == (culprit.message, culprit.location)
            for diagnostic in blamed.diagnostics
        )
        low, high = (middle + 1, high) if still else (low, middle)
    return versions[low]


def _finding(program: Program, culprit: Diagnostic, introduced: Version, target: Target) -> Finding:
    match = _REFUSED.match(culprit.message)
    vhlo_op = match[1] if match else None
    op = _program_name(vhlo_op) if vhlo_op else None
    feature = _feature_in(culprit.message, vhlo_op, introduced)
    title = feature.title if feature else "what it holds"
    place, within = place_of(culprit.source, program.name), ""
    if place is None and op is not None:
        called = calling_place(program.provider, program.load(), op, culprit.location)
        if called:
            place, within = place_of(called[1], program.name), f" in @{called[0]}, called here,"
    return Finding(
        feature=feature.id if feature else f"since-{introduced}",
        level="error",
        kind=feature.kind if feature else "op",
        message=f"{op or 'the program'}{within} needs StableHLO {introduced}: {title}",
        op=op,
        location=place,
        introduced=introduced,
        target=target.version,
        remedy=f"{feature.remedy}; or choose {introduced} or later" if feature else f"choose {introduced} or later",
    )


def _feature_in(text: str, vhlo_op: str | None, introduced: Version) -> Feature | None:
    names = {first or second for first, second in _VHLO_NAME.findall(text)}
    base = _OP_VERSION.fullmatch(vhlo_op) if vhlo_op else None
    of_version = [feature for feature in known_features() if feature.introduced == introduced]
    for feature in of_version:
        if base and base[1] in feature.ops:
            return feature
    for feature in of_version:
        if names.intersection(feature.names):
            return feature
    return None


def _program_name(vhlo_op: str) -> str:
    match = _OP_VERSION.fullmatch(vhlo_op)
    base = f"vhlo.{match[1]}" if match else vhlo_op
    return _PROGRAM_NAMES.get(base, base.replace("vhlo.", "stablehlo.", 1))


def explain_legalization(program: Program, failure: MLIRFailure, *, allow_other_dialects: bool) -> VhloToolsError:
    """Return why ``program`` has no form in VHLO."""
    if invalid := _invalidity(program):
        return invalid
    findings = [] if allow_other_dialects else _ops_without_form(program)
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
            message=f"{name} is of the dialect {name.partition('.')[0]} and no part of StableHLO"
            + (f" ({count[name]} times)" if count[name] > 1 else ""),
            op=name,
            location=place_of(source_of(op.location), program.name),
            introduced=mixed.introduced,
            remedy=_KEEP_OR_LOWER,
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
            remedy=_KEEP_OR_LOWER,
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
        what, remedy = f"an attribute or a type of the dialect {dialects}", _KEEP_OR_LOWER
    else:
        what, remedy = f"an attribute or a type without a form in VHLO: {shown[:200]}", _RESPELL
    return Finding(
        feature="mixed_dialects" if foreign else "not_portable",
        level="error",
        kind="dialect" if foreign else "attribute",
        message=f"{match[1]} has {what}",
        op=match[1],
        location=place_of(diagnostic.source, program.name),
        remedy=remedy,
    )
