"""Reports as annotations of GitHub, code quality of GitLab, and JUnit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from vhlo_tools.gate.report_model import (
    Answer,
    Scope,
    Verdict,
    fingerprints,
    identity_of,
    path_from,
    source_path,
)
from vhlo_tools.gate.text_report import verdict_lines
from vhlo_tools.printable import json_text, printable, printable_lines

if TYPE_CHECKING:
    from vhlo_tools.findings import Finding

# Findings as commands of GitHub's runners, which show them as annotations in the diff of a change
#
# The commands and their escape sequences are those of actions/toolkit, packages/core/src/command.ts.

_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}
_IN_MESSAGES: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES: Final = _IN_MESSAGES | str.maketrans({":": "%3A", ",": "%2C"})


def github_report(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    for answer in answers:
        if answer.error is not None:
            path = scope.from_repository(answer.path)
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
        file=scope.from_repository(source_path(answer.path, finding)),
        line=place.line if place else 0,
        col=place.column if place else 0,
        title=f"vhlo: {finding.feature}",
    )


def _command(command: str, message: str, **properties: str | int) -> str:
    given = {key: printable(str(value)) for key, value in properties.items() if value}
    said = ",".join(f"{key}={value.translate(_IN_PROPERTIES)}" for key, value in given.items())
    return f"::{command} {said}::{printable_lines(message).translate(_IN_MESSAGES)}\n"


# Findings as a code quality report of GitLab, which shows them in the diff of a merge request
#
# The format is the part of Code Climate's issues that GitLab's documentation, "Code Quality report format", asks for.

_SEVERITIES: Final = {"error": "major", "warning": "minor", "note": "info"}


def gitlab_report(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    between = "["
    for issue in (issue for answer in answers for issue in _issues(scope, answer)):
        yield f"{between}\n{json_text(issue)}"
        between = ","
    yield "[]\n" if between == "[" else "\n]\n"


def _issues(scope: Scope, answer: Answer) -> Iterator[dict[str, Any]]:
    if answer.error is not None:
        path = scope.from_repository(answer.path)
        digest = sha256(f"unreadable:{path}".encode("utf-8", "surrogateescape")).hexdigest()
        yield _issue("unreadable", answer.error, "critical", digest, path, 1)
    found = list(answer.findings)
    file = path_from(scope.folder, answer.path)
    identities = [identity_of(file, verdict.question, finding) for verdict, finding in found]
    for (verdict, finding), fingerprint in zip(found, fingerprints(identities), strict=True):
        remedy = f"; {finding.remedy}" if finding.remedy else ""
        said = f"{finding.message} ({answer.path} for {verdict.question}){remedy}"
        path = scope.from_repository(source_path(answer.path, finding))
        line = finding.location.line if finding.location else 1
        yield _issue(finding.feature, said, _SEVERITIES[finding.level], fingerprint, path, line)


def _issue(name: str, description: str, severity: str, fingerprint: str, path: str, line: int) -> dict[str, Any]:
    return {
        "check_name": name,
        "description": printable_lines(description),
        "severity": severity,
        "fingerprint": fingerprint,
        # The lines of a report begin with 1, those of locations may be 0.
        "location": {"path": path, "lines": {"begin": max(line, 1)}},
    }


# Findings as a JUnit report: a test case for each program and question
#
# The format has no standard; this module writes the common part of the schemas of Jenkins and Maven Surefire. What is
# printable, XML 1.0 can represent (section 2.2, Characters).

_SUITE: Final = "vhlo check"


def junit_report(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    """Errors of programs are failures, and files that could not be evaluated are errors."""
    root = ElementTree.Element("testsuites", name=_SUITE)
    suite = ElementTree.SubElement(root, "testsuite", name=_SUITE)
    for answer in answers:
        if answer.error is not None:
            case = _case(suite, answer, "readable")
            _say(case, "error", "cannot be checked", answer.error, type="unreadable")
        for verdict in answer.verdicts:
            case = _case(suite, answer, str(verdict.question))
            first, *lines = verdict_lines(answer.path, verdict)
            text = "\n".join(lines)
            if not verdict.ok:
                features = dict.fromkeys(finding.feature for finding in verdict.new if finding.level == "error")
                _say(case, "failure", first, text, type=", ".join(features))
            elif text:
                ElementTree.SubElement(case, "system-out").text = printable_lines(text)
    failures, errors = (str(len(suite.findall(f"testcase/{each}"))) for each in ("failure", "error"))
    for element in (root, suite):
        element.attrib.update(tests=str(len(suite)), failures=failures, errors=errors)
    ElementTree.indent(root)
    yield f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(suite: ElementTree.Element, answer: Answer, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=printable(answer.path), name=printable(name))


def _say(case: ElementTree.Element, tag: str, message: str, text: str, *, type: str) -> None:  # noqa: A002
    element = ElementTree.SubElement(case, tag, message=printable(message), type=printable(type))
    element.text = printable_lines(text)
