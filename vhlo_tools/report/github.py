"""Findings as commands of GitHub's runners, which show them as annotations beside the lines of a change.

The commands and what must be escaped in them are those of actions/toolkit, packages/core/src/command.ts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from vhlo_tools.findings import Finding
from vhlo_tools.report.model import Answer, Scope, Verdict
from vhlo_tools.report.places import path_from, source_path

__all__ = ["github_report"]

_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}
_IN_MESSAGES: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES: Final = _IN_MESSAGES | str.maketrans({":": "%3A", ",": "%2C"})


def github_report(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    """Yield a command for each finding that is not known, and for each file that could not be judged."""
    for answer in answers:
        if answer.error is not None:
            path = path_from(scope.folder, answer.path)
            yield _command("error", answer.error, file=path, title="vhlo: cannot be judged")
        for verdict in answer.verdicts:
            yield from (_finding(scope, answer, verdict, finding) for finding in _merged(verdict.new))


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings that read the same as one: several ops may come from one line.

    What is said of the encoding is said of the whole file, wherever it was noticed: once, at the first place.
    """
    merged: dict[Finding, Finding] = {}
    for finding in findings:
        key = replace(finding, path=None, count=1)
        if finding.kind == "encoding":
            key = replace(key, op=None, function=None, location=None)
        first = merged.get(key)
        merged[key] = replace(first, count=first.count + finding.count) if first else replace(finding, path=None)
    return list(merged.values())


def _finding(scope: Scope, answer: Answer, verdict: Verdict, finding: Finding) -> str:
    place = finding.location
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    remedy = f"\n{finding.remedy}" if finding.remedy else ""
    return _command(
        _COMMANDS[finding.level],
        f"{finding.message}{times}\n{answer.path} for {verdict.question}{remedy}",
        file=source_path(scope.folder, answer.path, finding),
        line=place.line if place else 0,
        col=place.column if place else 0,
        title=f"vhlo: {finding.feature}",
    )


def _command(command: str, message: str, **properties: str | int) -> str:
    said = ",".join(f"{key}={str(value).translate(_IN_PROPERTIES)}" for key, value in properties.items() if value)
    return f"::{command} {said}::{message.translate(_IN_MESSAGES)}\n"
