"""Findings as commands of GitHub's runners, which show them as annotations in the diff of a change.

The commands and their escape sequences are those of actions/toolkit, packages/core/src/command.ts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vhlo_tools.printable import printable, printable_lines
from vhlo_tools.reporting.places import path_from, source_path

if TYPE_CHECKING:
    from vhlo_tools.findings import Finding
    from vhlo_tools.reporting.model import Answer, Scope, Verdict

_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}
_IN_MESSAGES: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES: Final = _IN_MESSAGES | str.maketrans({":": "%3A", ",": "%2C"})


def github_report(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    for answer in answers:
        if answer.error is not None:
            path = path_from(scope.folder, answer.path)
            yield _command("error", answer.error, file=path, title="vhlo: cannot be checked")
        for verdict in answer.verdicts:
            yield from (_finding(scope, answer, verdict, finding) for finding in _merged(verdict.new))


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings that would be displayed identically: several ops may come from one line.

    A finding about the encoding applies to the whole file: it is reported once, at the first place.
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
    given = {key: printable(str(value)) for key, value in properties.items() if value}
    said = ",".join(f"{key}={value.translate(_IN_PROPERTIES)}" for key, value in given.items())
    return f"::{command} {said}::{printable_lines(message).translate(_IN_MESSAGES)}\n"
