"""What ``vhlo check`` found, as text that reads well in 80 columns."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from vhlo_tools.dialect import Explanation, Feature
from vhlo_tools.findings import SHOWN_PLACES, Finding, group_findings

__all__ = ["explanation", "lines"]

_WIDTH: Final = 80

# The path of a file; each question with its findings; why the file could not be judged.
_Answer = tuple[str, Sequence[tuple[object, Sequence[Finding]]], str | None]


def lines(answers: Sequence[_Answer], questions: Sequence[object]) -> Iterator[str]:
    """Yield the lines of a report; with several questions a table of programs by questions, before the reasons."""
    if len(questions) > 1:
        yield from _table(answers, questions)
    for path, findings, error in answers:
        if error is not None:
            yield f"{path}: cannot be judged"
            yield from _wrapped(error, "  ")
        for question, found in findings:
            if found or len(questions) == 1:
                yield f"{path}: {_verdict(found)} for {question}"
            yield from _groups(found)


def general(name: str, explained: Explanation) -> Iterator[str]:
    """Yield what findings of an id are about that is no feature of a version, as lines."""
    yield f"{name} ({explained.level})"
    yield from _wrapped(explained.text, "  ")


def explanation(feature: Feature) -> Iterator[str]:
    """Yield what a feature is, as lines."""
    yield f"{feature.id} ({feature.kind}), since StableHLO {feature.introduced}"
    yield from _wrapped(feature.title, "  ")
    for label, names in (("on the ops", feature.ops), ("of VHLO", feature.names)):
        if names:
            yield from _wrapped(f"{label}: {', '.join(names)}", "  ")
    yield from _wrapped(f"For older consumers: {feature.remedy}.", "  ")
    if feature.expansion:
        yield from _wrapped(f"The pass {feature.expansion} does so.", "  ")


def _table(answers: Sequence[_Answer], questions: Sequence[object]) -> Iterator[str]:
    heads = [str(question) for question in questions]
    width = max(len(path) for path, _, _ in answers)
    yield "  ".join(["program".ljust(width), *heads])
    for path, findings, error in answers:
        cells = ["unreadable"] * len(heads) if error else [_cell(found) for _, found in findings]
        row = [cell.ljust(len(head)) for cell, head in zip(cells, heads, strict=True)]
        yield "  ".join([path.ljust(width), *row]).rstrip()
    yield ""


def _cell(findings: Sequence[Finding]) -> str:
    return "no" if any(finding.level == "error" for finding in findings) else "yes"


def _verdict(findings: Sequence[Finding]) -> str:
    counts = [
        (level, len([group for group in group_findings(findings) if group[0].level == level]))
        for level in ("error", "warning", "note")
    ]
    said = [f"{number} {level}{'s' if number > 1 else ''}" for level, number in counts if number]
    return ", ".join(said) or "ok"


def _groups(findings: Sequence[Finding]) -> Iterator[str]:
    for group in group_findings(findings):
        first = group[0]
        since = f", since {first.introduced}" if first.introduced else ""
        yield f"  {first.level}: {first.feature}{since}"
        for said in dict.fromkeys(finding.message for finding in group):
            yield from _wrapped(said, "    ")
            places: Counter[str] = Counter()
            for finding in group:
                if finding.message == said:
                    places[_place(finding)] += finding.count
            for place, count in list(places.items())[:SHOWN_PLACES]:
                yield f"      {place}{f', {count} times' if count > 1 else ''}"
            if len(places) > SHOWN_PLACES:
                yield f"      and {len(places) - SHOWN_PLACES} places more"
        if first.remedy:
            yield from _wrapped(f"-> {first.remedy}", "    ", "       ")


def _place(finding: Finding) -> str:
    """Return the user's line where there is one, and the place in the program otherwise."""
    where = str(finding.location) if finding.location else finding.path or "in the file"
    function = f" in @{finding.function}" if finding.function and finding.location else ""
    return f"{where}{function}"


def _wrapped(text: str, indent: str, hanging: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
