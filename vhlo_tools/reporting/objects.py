"""Findings as JSON objects: all in one document, or one per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vhlo_tools.findings import finding_as_json
from vhlo_tools.reporting.summary import Summary

if TYPE_CHECKING:
    from vhlo_tools.findings import Finding
    from vhlo_tools.reporting.model import Answer, Scope, Verdict


def json_report(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    summary = Summary()
    files = [_file(answer, scope.knows) for answer in summary.counting(answers)]
    document = {"files": files, "summary": summary.as_json() | _against(scope)}
    yield f"{json.dumps(document, indent=2, default=str, allow_nan=False)}\n"


def json_lines(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    """Yield a flat object for each new finding, for each file that could not be evaluated, and a summary."""
    summary = Summary()
    for answer in summary.counting(answers):
        if answer.error is not None:
            yield _line(type="error", file=answer.path, message=answer.error)
        for verdict, finding in answer.findings:
            place = finding.location
            source = {"source": place.file, "line": place.line, "column": place.column} if place else {}
            yield _line(
                type="finding",
                file=answer.path,
                question=str(verdict.question),
                **{"source": None, "line": None, "column": None, **source},
                **{key: value for key, value in finding_as_json(finding).items() if key != "location"},
            )
    yield _line(type="summary", **summary.as_json(), **_against(scope))


def _against(scope: Scope) -> dict[str, Any]:
    return {} if scope.against is None else {"against": scope.against, "unchanged": scope.unchanged}


def _line(**values: Any) -> str:
    return f"{json.dumps(values, default=str, allow_nan=False)}\n"


def _file(answer: Answer, with_baseline: bool) -> dict[str, Any]:
    return {
        "path": answer.path,
        "ok": answer.ok,
        **({"error": answer.error} if answer.error is not None else {}),
        "findings": [each for verdict in answer.verdicts for each in _findings(verdict, with_baseline)],
        "targets": [
            {
                "target": str(verdict.question),
                "version": str(verdict.question.target.version),
                "ok": verdict.ok,
                "known": _count(verdict.known),
                "allowed": _count(verdict.allowed),
            }
            for verdict in answer.verdicts
        ],
    }


def _findings(verdict: Verdict, with_baseline: bool) -> Iterator[dict[str, Any]]:
    for state, findings in (("new", verdict.new), ("known", verdict.known)):
        for finding in findings:
            yield {**finding_as_json(finding), **({"baseline": state} if with_baseline else {})}


def _count(findings: Sequence[Finding]) -> int:
    return sum(finding.count for finding in findings)
