"""Findings as a code quality report of GitLab, which shows them in the diff of a merge request.

The format is the part of Code Climate's issues that GitLab's documentation, "Code Quality report format", asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.printable import printable_lines
from vhlo_tools.reporting.fingerprinting import fingerprints, identity_of
from vhlo_tools.reporting.places import path_from, source_path

if TYPE_CHECKING:
    from vhlo_tools.findings import Finding
    from vhlo_tools.reporting.fingerprinting import Identity
    from vhlo_tools.reporting.model import Answer, Scope, Verdict

_SEVERITIES: Final = {"error": "major", "warning": "minor", "note": "info"}


def gitlab_report(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    issues: list[dict[str, Any]] = []
    found: list[tuple[Answer, Verdict, Finding]] = []
    for answer in answers:
        if answer.error is not None:
            path = path_from(scope.folder, answer.path)
            digest = sha256(f"unreadable:{path}".encode("utf-8", "surrogateescape")).hexdigest()
            issues.append(_issue("unreadable", answer.error, "critical", digest, path, 1))
        found += [(answer, verdict, finding) for verdict, finding in answer.findings]
    for (answer, verdict, finding), fingerprint in zip(found, fingerprints(_identities(scope, found)), strict=True):
        remedy = f"; {finding.remedy}" if finding.remedy else ""
        issues.append(
            _issue(
                finding.feature,
                f"{finding.message} ({answer.path} for {verdict.question}){remedy}",
                _SEVERITIES[finding.level],
                fingerprint,
                source_path(scope.folder, answer.path, finding),
                finding.location.line if finding.location else 1,
            )
        )
    yield f"{json.dumps(issues, indent=2, allow_nan=False)}\n"


def _identities(scope: Scope, found: Iterable[tuple[Answer, Verdict, Finding]]) -> Iterator[Identity]:
    for answer, verdict, finding in found:
        yield identity_of(path_from(scope.folder, answer.path), verdict.question, finding)


def _issue(name: str, description: str, severity: str, fingerprint: str, path: str, line: int) -> dict[str, Any]:
    return {
        "check_name": name,
        "description": printable_lines(description),
        "severity": severity,
        "fingerprint": fingerprint,
        # The lines of a report begin with 1, those of locations may be 0.
        "location": {"path": path, "lines": {"begin": max(line, 1)}},
    }
