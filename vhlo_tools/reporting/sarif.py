"""Findings as SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format), for code scanning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.reporting.fingerprinting import fingerprints, identity_of
from vhlo_tools.reporting.places import as_uri, path_from, source_path
from vhlo_tools.reporting.sarif_rules import SarifRule, rule_of

if TYPE_CHECKING:
    from vhlo_tools.findings import Finding
    from vhlo_tools.reporting.fingerprinting import Identity
    from vhlo_tools.reporting.model import Answer, Scope, Verdict

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# GitHub's name of the root of the repository.
_ROOT: Final = "%SRCROOT%"
_UNREADABLE: Final = {
    "id": "unreadable",
    "name": "Unreadable",
    "shortDescription": {"text": "The file cannot be checked"},
    "defaultConfiguration": {"level": "error"},
}
_FINGERPRINT: Final = "vhloFinding/v1"


def sarif_report(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    files, rules = _Files(scope.folder), dict[str, tuple[int, SarifRule]]()
    results: list[dict[str, Any]] = []
    identities: list[Identity] = []
    notifications = []
    for answer in answers:
        files.add(answer.path)
        if answer.error is not None:
            notifications.append(_notification(files, answer))
        for verdict, finding, state in _all(answer):
            index, _ = rules.setdefault(finding.feature, (len(rules), rule_of(finding)))
            results.append(_result(scope, files, answer, verdict, finding, state) | {"ruleIndex": index})
            identities.append(identity_of(path_from(scope.folder, answer.path), verdict.question, finding))
    for result, fingerprint in zip(results, fingerprints(identities), strict=True):
        result["partialFingerprints"] = {_FINGERPRINT: fingerprint}
    run = {
        "tool": {
            "driver": {
                "name": "vhlo-tools",
                "version": version("vhlo-tools"),
                "rules": [_rule(rule) for _, rule in rules.values()],
                "notifications": [_UNREADABLE],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not notifications,
                "toolExecutionNotifications": notifications,
                "workingDirectory": {"uri": files.root},
            }
        ],
        "originalUriBaseIds": {_ROOT: {"uri": files.root}},
        "columnKind": "unicodeCodePoints",
        "artifacts": files.artifacts(),
        "results": results,
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    yield f"{json.dumps(document, indent=2, allow_nan=False)}\n"


class _Files:
    def __init__(self, folder: Path) -> None:
        self.root = as_uri(str(folder)).removesuffix("/") + "/"
        self._folder = folder
        self._indexes: dict[str, int] = {}

    def add(self, path: str) -> None:
        self._indexes[path] = len(self._indexes)

    def artifacts(self) -> list[dict[str, Any]]:
        return [{"location": self.location(path), "roles": ["analysisTarget"]} for path in self._indexes]

    def location(self, path: str) -> dict[str, Any]:
        """Return a location relative to the root if it is below it; with the index of a program."""
        shown = path_from(self._folder, path)
        base = {} if Path(shown).is_absolute() else {"uriBaseId": _ROOT}
        index = {"index": self._indexes[path]} if path in self._indexes else {}
        return {"uri": as_uri(shown), **base, **index}


def _all(answer: Answer) -> Iterator[tuple[Verdict, Finding, str]]:
    for verdict in answer.verdicts:
        for state in ("new", "known", "allowed"):
            for finding in getattr(verdict, state):
                yield verdict, finding, state


def _result(
    scope: Scope, files: _Files, answer: Answer, verdict: Verdict, finding: Finding, state: str
) -> dict[str, Any]:
    program = {"physicalLocation": {"artifactLocation": files.location(answer.path)}}
    shown = program
    if finding.location:
        source = files.location(source_path(scope.folder, answer.path, finding))
        shown = {"physicalLocation": {"artifactLocation": source, **_region(finding)}}
    result = {
        "ruleId": finding.feature,
        "level": finding.level,
        "message": {"text": _message(verdict, finding)},
        "locations": [{**shown, **_logical(finding)}],
        "occurrenceCount": finding.count,
        "properties": {
            key: value
            for key, value in {
                "question": str(verdict.question),
                "target": str(finding.target),
                "introduced": str(finding.introduced) if finding.introduced else None,
                "op": finding.op,
                "unknown": finding.unknown or None,
            }.items()
            if value is not None
        },
    }
    if finding.location:
        result["relatedLocations"] = [{"id": 1, "message": {"text": "the program"}, **program}]
    if scope.knows and state != "allowed":
        result["baselineState"] = "unchanged" if state == "known" else "new"
    if state == "known":
        result["suppressions"] = [_suppression(f"known: it is {scope.known_by}")]
    elif state == "allowed":
        result["suppressions"] = [_suppression("allowed by the settings")]
    return result


def _message(verdict: Verdict, finding: Finding) -> str:
    remedy = f" To do: {finding.remedy}." if finding.remedy else ""
    return f"For {verdict.question}: {finding.message}.{remedy}"


def _region(finding: Finding) -> dict[str, Any]:
    place = finding.location
    if place is None or not place.line:
        return {}
    column = {"startColumn": place.column} if place.column else {}
    return {"region": {"startLine": place.line, **column}}


def _logical(finding: Finding) -> dict[str, Any]:
    places = []
    if finding.function:
        places.append({"name": finding.function, "kind": "function"})
    if finding.path:
        places.append({"name": finding.op or finding.path, "fullyQualifiedName": finding.path, "kind": "operation"})
    return {"logicalLocations": places} if places else {}


def _suppression(why: str) -> dict[str, str]:
    return {"kind": "external", "status": "accepted", "justification": why}


def _notification(files: _Files, answer: Answer) -> dict[str, Any]:
    return {
        "descriptor": {"id": _UNREADABLE["id"], "index": 0},
        "level": "error",
        "message": {"text": answer.error},
        "locations": [{"physicalLocation": {"artifactLocation": files.location(answer.path)}}],
    }


def _rule(rule: SarifRule) -> dict[str, Any]:
    introduced = {"introduced": rule.introduced} if rule.introduced else {}
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.text},
        "help": {"text": rule.help, "markdown": f"**{rule.title}**\n\n{rule.text}\n\n{rule.help}"},
        "defaultConfiguration": {"level": rule.level},
        "properties": {"tags": ["compatibility", rule.kind], "precision": "very-high", **introduced},
    }
