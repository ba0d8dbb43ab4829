"""Errors that explain why a program cannot be written.

The library reports only the first unsupported op, and no version. All reasons, with locations and versions, are derived
from the bytes of the program at the current version; MLIR's diagnostics are used only if there are no such bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from vhlo_tools.bindings import MLIRFailure, Operation, missing_part, source_of
from vhlo_tools.bytecode import program_name
from vhlo_tools.compat import NO_EXPANSIONS, ExpansionPolicy, Requirements, Target
from vhlo_tools.conversion.expansion.expanding import Refusal
from vhlo_tools.conversion.fidelity import KEEP_OR_LOWER, RESPELL, refused_attributes
from vhlo_tools.errors import DowngradeError, UnsupportedFeatureError
from vhlo_tools.findings import NEWER_THAN_DATA, Diagnostic, Finding
from vhlo_tools.program import Program, place_of
from vhlo_tools.spec import known_feature, newest_version
from vhlo_tools.version import VhloToolsError

_REFUSED: Final = re.compile(r"failed to legalize operation '([^']+)' that was explicitly marked illegal")

_PROGRAM_DIALECTS: Final = frozenset({"builtin", "func", "stablehlo", "vhlo"})

_DIALECT_OF_NAME: Final = re.compile(r"[#!](\w+)[.<]")

_SHOWN_CULPRITS: Final = 20
#: How many reasons why no expansion applies are shown, of ops at other places.
_SHOWN_REASONS: Final = 5

_SHARDING_REMEDY: Final = "lower the program for one device"


def explain_downgrade(
    program: Program,
    target: Target,
    requirements: Requirements,
    failure: MLIRFailure | None,
    tried: ExpansionPolicy = NO_EXPANSIONS,
    refusals: Sequence[Refusal] = (),
) -> VhloToolsError:
    """``requirements`` are from bytes at the current version; ``refusals`` are ops to which no expansion applied.

    Without a ``failure``, the requirements have the reason.
    """
    found = [finding for finding in requirements.findings(target.version, tried) if finding.level == "error"]
    findings = [_with_refusal(finding, refusals) for finding in found]
    if failure is not None and all(finding.unknown for finding in findings):
        # The library rejects a program that our rules allow: only its diagnostics are available.
        refused = [_refused_op(program, diagnostic) for diagnostic in failure.diagnostics[:1]]
        if requirements.is_newer_than_data:
            # It may be one of what our rules do not know, or for a reason that they lack.
            ops = {finding.op for finding in findings}
            others = (each for each in refused if each.op is None or program_name(each.op) not in ops)
            refused = [_of_newer_library(program, target, each) for each in others]
        findings += refused
    if not found:
        return DowngradeError(f"{program.name} cannot be written for {target}", findings)
    return DowngradeError(f"{program.name} cannot be written for {target}; {requirements.reach}", findings)


def _of_newer_library(program: Program, target: Target, refused: Finding) -> Finding:
    """The library refuses the op for a reason that the specification does not have yet."""
    library = program.provider.library
    return replace(
        refused,
        feature=NEWER_THAN_DATA,
        kind="constraint",
        message=f"{refused.op or refused.message} is refused at {target.version} by {library.name}, with StableHLO "
        f"{library.current}; the data of vhlo_tools end at {newest_version()}, and do not have the reason",
        target=target.version,
        remedy=f"update vhlo_tools, which then names it; or choose {library.current.minor_release} or later",
        unknown=True,
    )


def _with_refusal(finding: Finding, refusals: Sequence[Refusal]) -> Finding:
    """The reasons of the op at the place of the finding if it has some, otherwise those of the feature."""
    of_feature = [each for each in refusals if each.feature == finding.feature]
    here = [each for each in of_feature if each.location is not None and each.location == finding.location]
    reasons = list(dict.fromkeys(each.reason for each in here or of_feature))
    if not reasons:
        return finding
    more = f"; and {len(reasons) - _SHOWN_REASONS} more" if len(reasons) > _SHOWN_REASONS else ""
    return replace(
        finding, message=f"{finding.message}; it cannot be expanded: {'; '.join(reasons[:_SHOWN_REASONS])}{more}"
    )


def explain_refusal(program: Program, failure: MLIRFailure) -> VhloToolsError:
    """For a program that has a form in VHLO, but cannot be written at any version."""
    return _without_form(program, failure, [])


def explain_legalization(program: Program, failure: MLIRFailure, *, allow_other_dialects: bool) -> VhloToolsError:
    """For a program that has no form in VHLO."""
    findings = [] if allow_other_dialects else _ops_without_form(program)
    findings += refused_attributes(program, allow_other_dialects=allow_other_dialects)
    return _without_form(program, failure, findings)


def _without_form(program: Program, failure: MLIRFailure, findings: list[Finding]) -> UnsupportedFeatureError:
    findings = findings or [_refused_op(program, diagnostic) for diagnostic in failure.diagnostics[:1]]
    return UnsupportedFeatureError(
        f"{program.name} contains something that no portable artifact can represent", findings
    )


def _ops_without_form(program: Program) -> list[Finding]:
    mixed = known_feature("mixed_dialects")
    module = program.load()
    ops: dict[str, list[Operation]] = {}
    for op in program.provider.walk(module):
        if (name := str(op.name)).partition(".")[0] not in _PROGRAM_DIALECTS:
            ops.setdefault(name, []).append(op)
    return [
        Finding(
            feature=mixed.id,
            level="error",
            kind=mixed.kind,
            message=f"{name} is of the dialect {name.partition('.')[0]}, which is not part of StableHLO",
            op=name,
            location=place_of(source_of(found[0].location), program.name),
            introduced=mixed.introduced,
            remedy=f"of its lowering, {missing}, or {KEEP_OR_LOWER}"
            if (missing := missing_part(program.provider, name)) is not None
            else KEEP_OR_LOWER,
            count=len(found),
        )
        for name, found in list(ops.items())[:_SHOWN_CULPRITS]
    ]


def explain_other_dialects(program: Program, dialects: frozenset[str]) -> UnsupportedFeatureError:
    mixed = known_feature("mixed_dialects")
    findings = _ops_without_form(program)
    named = {str(finding.op).partition(".")[0] for finding in findings}
    findings += [
        Finding(
            feature=mixed.id,
            level="error",
            kind=mixed.kind,
            message=f"an attribute or a type is of the dialect {dialect}, which is not part of StableHLO",
            introduced=mixed.introduced,
            remedy=KEEP_OR_LOWER,
        )
        for dialect in sorted(dialects - named)
    ]
    return UnsupportedFeatureError(f"{program.name} contains dialects other than StableHLO", findings)


def explain_shardings(
    program: Program,
    target: Target,
    requirements: Requirements,
    tried: ExpansionPolicy = NO_EXPANSIONS,
    refusals: Sequence[Refusal] = (),
) -> DowngradeError:
    """``target`` is older than mixed dialects."""
    mixed = known_feature("mixed_dialects")
    found = [
        replace(each, level="error", remedy=(each.remedy or "").replace(mixed.remedy, _SHARDING_REMEDY))
        if each.feature == mixed.id
        else each
        for each in requirements.findings(target.version, tried)
    ]
    least = max(requirements.downgradable_to, mixed.introduced)
    return DowngradeError(
        f"{program.name} cannot be written for {target}; it can be written for StableHLO {least} or later",
        [_with_refusal(each, refusals) for each in found if each.level == "error"],
    )


def kept_shardings(program: Program) -> Finding:
    mixed = known_feature("mixed_dialects")
    module = program.load()  # the ops do not keep it alive
    meshes = [str(op.attributes["mesh"]) for op in program.provider.walk(module) if str(op.name) == "sdy.mesh"]
    named = ", ".join(each.removeprefix("#sdy.") for each in meshes[:_SHOWN_CULPRITS]) or "inlined meshes"
    message = f"shardings over {named} remain as ops of Shardy (sdy), which readers since {mixed.introduced} know"
    return Finding(mixed.id, "note", mixed.kind, message, introduced=mixed.introduced)


def _refused_op(program: Program, diagnostic: Diagnostic) -> Finding:
    match, place = _REFUSED.match(diagnostic.message), place_of(diagnostic.source, program.name)
    if match is None:
        return Finding("not_portable", "error", "op", diagnostic.message, location=place)
    shown = diagnostic.message.partition(": ")[2]
    foreign = sorted(set(_DIALECT_OF_NAME.findall(shown)) - _PROGRAM_DIALECTS)
    message = f"{match[1]} has an attribute or a type"
    if foreign:
        message = f"{message} of the dialect {', '.join(foreign)}"
        return Finding("mixed_dialects", "error", "dialect", message, match[1], place, remedy=KEEP_OR_LOWER)
    message = f"{message} that VHLO cannot represent: {shown[:200]}"
    return Finding("not_portable", "error", "attribute", message, match[1], place, remedy=RESPELL)
