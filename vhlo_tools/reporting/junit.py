"""Findings as a JUnit report: a test case for each program and question.

The format has no standard; this module writes the common part of the schemas of Jenkins and Maven Surefire.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from vhlo_tools.printable import printable_lines
from vhlo_tools.reporting.text import verdict_lines

if TYPE_CHECKING:
    from vhlo_tools.reporting.model import Answer, Scope, Verdict

_SUITE: Final = "vhlo check"
# Characters that XML 1.0 cannot represent, not even escaped (section 2.2, Characters).
_ILLEGAL: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_report(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    """Errors of programs are failures, and files that could not be evaluated are errors."""
    root = ElementTree.Element("testsuites", name=_SUITE)
    suite = ElementTree.SubElement(root, "testsuite", name=_SUITE)
    for answer in answers:
        if answer.error is not None:
            case = _case(suite, answer, "readable")
            _say(case, "error", "cannot be checked", answer.error, type="unreadable")
        for verdict in answer.verdicts:
            _add(_case(suite, answer, str(verdict.question)), answer, verdict)
    counts = {
        "tests": len(suite),
        "failures": len(suite.findall("testcase/failure")),
        "errors": len(suite.findall("testcase/error")),
    }
    for element in (root, suite):
        for name, number in counts.items():
            element.set(name, str(number))
    ElementTree.indent(root)
    yield f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(suite: ElementTree.Element, answer: Answer, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=_legal(answer.path), name=_legal(name))


def _add(case: ElementTree.Element, answer: Answer, verdict: Verdict) -> None:
    first, *lines = verdict_lines(answer.path, verdict)
    text = printable_lines("\n".join(lines))
    if verdict.ok:
        if text:
            ElementTree.SubElement(case, "system-out").text = _legal(text)
        return
    features = dict.fromkeys(finding.feature for finding in verdict.new if finding.level == "error")
    _say(case, "failure", first, text, type=", ".join(features))


def _say(case: ElementTree.Element, tag: str, message: str, text: str, *, type: str) -> None:  # noqa: A002
    element = ElementTree.SubElement(case, tag, message=_legal(message), type=_legal(type))
    element.text = _legal(text)


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)
