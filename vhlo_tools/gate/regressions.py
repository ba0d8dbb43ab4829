"""Comparison of a program with its old revision: whatever is worse becomes a finding of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from vhlo_tools.findings import Finding
from vhlo_tools.reporting import identity_of, is_refused

if TYPE_CHECKING:
    from vhlo_tools.gate.program_facts import ProgramFacts
    from vhlo_tools.reporting import Identity, Question


def split_known(
    question: Question, findings: Sequence[Finding], before: Sequence[Finding]
) -> tuple[list[Finding], list[Finding]]:
    """Return new and old findings, compared as with a baseline (no lines, but numbers); notes are always new."""
    had: Counter[Identity] = Counter()
    for finding in before:
        had[identity_of("", question, finding)] += finding.count
    new, known = [], []
    for finding in findings:
        if finding.level == "note":
            new.append(finding)
            continue
        identity = identity_of("", question, finding)
        free = min(finding.count, had[identity])
        had[identity] -= free
        if free:
            known.append(replace(finding, count=free))
        if finding.count > free:
            new.append(replace(finding, count=finding.count - free))
    return new, known


def regressions(
    question: Question, revision: str, new: Sequence[Finding], before: Sequence[Finding]
) -> Iterator[Finding]:
    """Yield what is worse for one question.

    ``new`` and ``before`` have their levels; ``before`` are the old findings.
    """
    for finding in new:
        if finding.level != "note":
            message = f"new since {revision}: {finding.feature}: {finding.message}"
            yield replace(finding, feature="regression_finding", kind="regression", level="error", message=message)
    if is_refused(new) and not is_refused(before):
        done = "be read by" if question.reading else "be written for"
        yield _regression(
            question,
            f"at {revision} the program could {done} {question.target}, and now it cannot",
            "remove what is new, or drop the target",
            feature="regression_target",
        )


def changed_facts(question: Question, revision: str, now: ProgramFacts, before: ProgramFacts) -> Iterator[Finding]:
    """Yield changes for callers of a program: its public functions, its aliases and its donors."""
    for name, kind in before.functions.items():
        found = now.functions.get(name)
        if found != kind:
            what = f"is {found}" if found is not None else "is no public function"
            yield _regression(
                question,
                f"@{name} was {kind} at {revision}, and now {what}",
                "keep the function as it was for its callers, and add another one for what is new",
                feature="regression_signature",
                function=name,
            )
    for place in sorted({*before.buffers, *now.buffers}):
        was, found = (each.buffers.get(place, "neither aliased nor donated") for each in (before, now))
        if found != was:
            yield _regression(
                question,
                f"{place} of @main was {was} at {revision}, and now is {found}",
                "restore it with `vhlo alias set`, or change the callers too",
                feature="regression_alias",
            )


def _regression(question: Question, message: str, remedy: str, *, feature: str, function: str | None = None) -> Finding:
    version = question.target.version
    return Finding(feature, "error", "regression", message, target=version, remedy=remedy, function=function)
