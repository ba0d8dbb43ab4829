"""Reports as SARIF, with a rule for each feature and finding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.compat import expansion_flag
from vhlo_tools.gate.report_model import (
    Answer,
    Identity,
    Scope,
    Verdict,
    as_uri,
    fingerprints,
    identity_of,
    page_of,
    path_from,
    repository_of,
    source_path,
)
from vhlo_tools.printable import json_text
from vhlo_tools.spec import Feature, explanation_of, known_features

if TYPE_CHECKING:
    from vhlo_tools.findings import Finding

# SARIF rules with help for findings, from the features and explanations of ``dialect_specs/``


def title_of(finding: Finding) -> str:
    """Return a short description of what a finding is about, as part of a sentence."""
    feature = _features().get(finding.feature)
    return feature.title if feature else str(rule_of(finding)["shortDescription"]["text"])


def rule_of(finding: Finding) -> dict[str, Any]:
    """Return the properties common to all findings of a feature."""
    feature = _features().get(finding.feature)
    if feature is not None:
        return _of_feature(feature)
    explanation = explanation_of(finding.feature)
    text = explanation.text if explanation else finding.message
    title = text.partition(". ")[0].rstrip(".")
    level = explanation.level if explanation else finding.level
    return _rule(finding.feature, title, text, finding.remedy or text, level, finding.kind)


def _of_feature(feature: Feature) -> dict[str, Any]:
    said = [f"StableHLO {feature.introduced} introduced {feature.title}: consumers of older versions cannot read it."]
    if feature.ops:
        said.append(f"It occurs on {', '.join(feature.ops)}.")
    todo = [f"{feature.remedy[:1].upper()}{feature.remedy[1:]}; or choose {feature.introduced} or later."]
    todo += [f"{expansion_flag(feature, each)} rewrites it where it can." for each in feature.expansions]
    title = f"{feature.title[:1].upper()}{feature.title[1:]}"
    introduced = str(feature.introduced)
    return _rule(feature.id, title, " ".join(said), " ".join(todo), "error", feature.kind, introduced=introduced)


def _rule(name: str, title: str, text: str, todo: str, level: str, kind: str, **more: str) -> dict[str, Any]:
    page = page_of(name)
    return {
        "id": name,
        **({"helpUri": page} if page.startswith("http") else {}),
        # In camel case: ``DotAlgorithm``.
        "name": "".join(word[:1].upper() + word[1:] for word in re.split(r"\W|_", name)),
        "shortDescription": {"text": title},
        "fullDescription": {"text": text},
        "help": {"text": todo, "markdown": f"**{title}**\n\n{text}\n\n{todo}"},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["compatibility", kind], "precision": "very-high", **more},
    }


@cache
def _features() -> dict[str, Feature]:
    return {feature.id: feature for feature in known_features()}


# Findings as SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format), for code scanning

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# GitHub's name of the root of the repository.
_ROOT: Final = "%SRCROOT%"
_UNREADABLE: Final[dict[str, Any]] = {
    "id": "unreadable",
    "name": "Unreadable",
    "shortDescription": {"text": "The file cannot be checked"},
    "defaultConfiguration": {"level": "error"},
}
_FINGERPRINT: Final = "vhloFinding/v1"


def sarif_report(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    files, rules = _Files(scope), dict[str, tuple[int, dict[str, Any]]]()
    results: list[dict[str, Any]] = []
    identities: list[Identity] = []
    notifications = []
    for answer in answers:
        files.add(answer.path)
        if answer.error is not None:
            said = {
                "level": "error",
                "message": {"text": answer.error},
                "locations": [{"physicalLocation": {"artifactLocation": files.location(answer.path)}}],
            }
            notifications.append({"descriptor": {"id": _UNREADABLE["id"], "index": 0}, **said})
            # Who shows results alone shows that the file was not checked.
            index, _ = rules.setdefault(_UNREADABLE["id"], (len(rules), _UNREADABLE))
            compared = {"baselineState": "new"} if scope.knows else {}
            results.append({"ruleId": _UNREADABLE["id"], "ruleIndex": index, **said, **compared})
            identities.append(Identity(path_from(scope.folder, answer.path), "", _UNREADABLE["id"]))
        found = (
            (verdict, finding, state)
            for verdict in answer.verdicts
            for state in ("new", "known", "allowed")
            for finding in getattr(verdict, state)
        )
        for verdict, finding, state in found:
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
                "rules": [rule for _, rule in rules.values()],
                "notifications": [_UNREADABLE],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not notifications,
                "toolExecutionNotifications": notifications,
                "workingDirectory": {"uri": as_uri(str(scope.folder)).removesuffix("/") + "/"},
            }
        ],
        "originalUriBaseIds": {_ROOT: {"uri": files.root}},
        "columnKind": "unicodeCodePoints",
        "artifacts": files.artifacts(),
        "results": results,
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    yield f"{json_text(document, indent=2)}\n"


class _Files:
    def __init__(self, scope: Scope) -> None:
        self.root = as_uri(str(repository_of(scope.folder))).removesuffix("/") + "/"
        self._shown = scope.from_repository
        self._indexes: dict[str, int] = {}

    def add(self, path: str) -> None:
        self._indexes[path] = len(self._indexes)

    def artifacts(self) -> list[dict[str, Any]]:
        return [{"location": self.location(path), "roles": ["analysisTarget"]} for path in self._indexes]

    def location(self, path: str) -> dict[str, Any]:
        """Return a location relative to the root if it is below it; with the index of a program."""
        shown = self._shown(path)
        base = {} if Path(shown).is_absolute() else {"uriBaseId": _ROOT}
        index = {"index": self._indexes[path]} if path in self._indexes else {}
        return {"uri": as_uri(shown), **base, **index}


def _result(
    scope: Scope, files: _Files, answer: Answer, verdict: Verdict, finding: Finding, state: str
) -> dict[str, Any]:
    program = {"physicalLocation": {"artifactLocation": files.location(answer.path)}}
    shown = program
    if finding.location:
        source = files.location(source_path(answer.path, finding))
        shown = {"physicalLocation": {"artifactLocation": source, **_region(finding)}}
    remedy = f" To do: {finding.remedy}." if finding.remedy else ""
    result = {
        "ruleId": finding.feature,
        "level": finding.level,
        "message": {"text": f"For {verdict.question}: {finding.message}.{remedy}"},
        "locations": [{**shown, **_logical(finding)}],
        "occurrenceCount": finding.count,
        "properties": {
            "question": str(verdict.question),
            "target": str(finding.target),
            **({"introduced": str(finding.introduced)} if finding.introduced else {}),
            **({"op": finding.op} if finding.op is not None else {}),
            **({"unknown": True} if finding.unknown else {}),
        },
    }
    if finding.location:
        result["relatedLocations"] = [{"id": 1, "message": {"text": "the program"}, **program}]
    if scope.knows and state != "allowed":
        result["baselineState"] = "unchanged" if state == "known" else "new"
    if state != "new":
        why = f"known: it is {scope.known_by}" if state == "known" else "allowed by the settings"
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return result


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
