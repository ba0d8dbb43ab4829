"""Reports as SARIF, with a rule for each feature and finding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
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
from vhlo_tools.printable import json_document, json_text
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
    run = _Run(scope)
    lines = json_document({}, "results", map(json_text, run.results(answers)), run.rest)
    # Nothing is printed where the first file cannot be found.
    first = next(lines)
    yield f'{{\n"$schema": {json_text(_SCHEMA)},\n"version": "2.1.0",\n"runs": [\n{first}\n'
    yield from (f"{line}\n" for line in lines)
    yield "]\n}\n"


class _Run:
    """The results, as they are found, and what is known once they are: the files, the rules, and what went wrong."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._files = _Files(scope)
        self._rules: dict[str, tuple[int, dict[str, Any]]] = {}
        self._notifications: list[dict[str, Any]] = []

    def results(self, answers: Iterable[Answer]) -> Iterator[dict[str, Any]]:
        for answer in answers:
            self._files.add(answer.path)
            if answer.error is not None:
                yield self._unreadable(answer, answer.error)
            found = [
                (verdict, finding, state)
                for verdict in answer.verdicts
                for state in ("new", "known", "allowed")
                for finding in getattr(verdict, state)
            ]
            file = path_from(self._scope.folder, answer.path)
            identities = [identity_of(file, verdict.question, finding) for verdict, finding, _ in found]
            for (verdict, finding, state), fingerprint in zip(found, fingerprints(identities), strict=True):
                yield {
                    **_result(self._scope, self._files, answer, verdict, finding, state),
                    "ruleIndex": self._index_of(finding.feature, finding),
                    "partialFingerprints": {_FINGERPRINT: fingerprint},
                }

    def rest(self) -> dict[str, Any]:
        return {
            "tool": {
                "driver": {
                    "name": "vhlo-tools",
                    "version": version("vhlo-tools"),
                    "rules": [rule for _, rule in self._rules.values()],
                    "notifications": [_UNREADABLE],
                }
            },
            "invocations": [
                {
                    "executionSuccessful": not self._notifications,
                    "toolExecutionNotifications": self._notifications,
                    "workingDirectory": {"uri": as_uri(str(self._scope.folder)).removesuffix("/") + "/"},
                }
            ],
            "originalUriBaseIds": {_ROOT: {"uri": self._files.root}},
            "columnKind": "unicodeCodePoints",
            "artifacts": self._files.artifacts(),
        }

    def _unreadable(self, answer: Answer, error: str) -> dict[str, Any]:
        """Who shows results alone shows that the file was not checked."""
        name = _UNREADABLE["id"]
        said = {
            "level": "error",
            "message": {"text": error},
            "locations": [{"physicalLocation": {"artifactLocation": self._files.location(answer.path)}}],
        }
        self._notifications.append({"descriptor": {"id": name, "index": 0}, **said})
        identity = Identity(path_from(self._scope.folder, answer.path), "", name)
        return {
            "ruleId": name,
            "ruleIndex": self._index_of(name),
            **said,
            **({"baselineState": "new"} if self._scope.knows else {}),
            "partialFingerprints": {_FINGERPRINT: next(fingerprints([identity]))},
        }

    def _index_of(self, name: str, finding: Finding | None = None) -> int:
        if name not in self._rules:
            self._rules[name] = (len(self._rules), _UNREADABLE if finding is None else rule_of(finding))
        return self._rules[name][0]


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
        index = {"index": self._indexes[path]} if path in self._indexes else {}
        return {**_reference(self._shown(path)), **index}


@lru_cache(maxsize=256)
def _reference(shown: str) -> dict[str, str]:
    return {"uri": as_uri(shown), **({} if Path(shown).is_absolute() else {"uriBaseId": _ROOT})}


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
