"""Findings as text, for the width of the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from io import StringIO
from itertools import chain
from typing import Final

from vhlo_tools.findings import SHOWN_PLACES, Finding, group_findings
from vhlo_tools.gate.report_model import STATES, Answer, Scope, State, Summary, Verdict, source_path
from vhlo_tools.lazy import pattern
from vhlo_tools.printable import printable, printable_lines

#: The width of a report that no terminal shows, unless the variable COLUMNS says another.
_WIDTH: Final = 80
#: Below it, every line would hold a word or two.
_NARROWEST: Final = 40
#: The level of a finding, and the worst one in the line of a program.
_LEVEL: Final = pattern(r"^  (error|warning|note)(?=:)|(?<=: )\d+ (error|warning|note)s?|(?<=: )cannot be checked$")
#: Red, yellow and cyan: parameters of Select Graphic Rendition (ECMA-48, section 8.3.117).
_COLOURS: Final = {"error": 31, "warning": 33, "note": 36}

#: From so many programs on, those of which the same is said are reported together.
_ALIKE: Final = 4

#: Findings of a program: what matters most comes last.
_LEVELS: Final = ("note", "warning", "error")


def text_report(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    """Yield each program with its findings; for several questions a table of all programs, followed by findings.

    Programs with warnings come after the others, then those with errors, then those that could not be evaluated, and a
    summary last.
    """
    for line in _lines(scope, answers):
        # Escape sequences of a file are no longer any here.
        shown = printable_lines(line)
        yield f"{_coloured(shown) if scope.colour else shown}\n"


def concise_report(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    """Yield a line for each finding, as compilers have it: ``path:line:column: feature message``."""
    for answer in answers:
        if answer.error is not None:
            yield _one_line(f"{answer.path}: unreadable {answer.error}")
        lines = (_concise(answer.path, verdict, finding) for verdict, finding in answer.findings)
        yield from dict.fromkeys(lines)


def _concise(program: str, verdict: Verdict, finding: Finding) -> str:
    place, path = finding.location, source_path(program, finding)
    at = f":{place.line}:{place.column}" if place and place.line else ""
    of = "" if path == program else f"{program} "
    return _one_line(f"{path}{at}: {finding.feature} {finding.message} ({of}for {verdict.question})")


def _one_line(said: str) -> str:
    return f"{printable_lines(printable(said))}\n"


def _coloured(line: str) -> str:
    def styled(match: re.Match[str]) -> str:
        return f"\x1b[1;{_COLOURS[match[1] or match[2] or 'error']}m{match[0]}\x1b[0m"

    return _LEVEL.sub(styled, line, count=1)


def _lines(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    summary = Summary()
    counted = summary.counting(answers)
    if scope.quiet or len(scope.questions) < 2:
        yield from _reasons(counted, brief=scope.quiet)
    else:
        yield from _table(scope, counted)
    if not scope.quiet:
        yield from (f"{path}: deleted since {scope.against}" for path in scope.deleted)
        yield f"{summary}{scope.left_out}"


def verdict_lines(path: str, verdict: Verdict) -> Iterator[str]:
    counts = ((len(group_findings(verdict.known)), "known"), (len(group_findings(verdict.allowed)), "allowed"))
    hidden = [(number, state) for number, state in counts if number]
    said = f" ({', '.join(f'{number} {state}' for number, state in hidden)})" if hidden else ""
    yield from finding_lines(path, verdict.question, verdict.new, said)


def finding_lines(path: str, question: object, findings: Sequence[Finding], said: str = "") -> Iterator[str]:
    """Yield findings by feature: their numbers, and for each the message, the places and the remedy."""
    yield f"{path}: {_counts(findings)} for {question}{said}"
    yield from _groups(findings)


def _ordered(answers: Iterable[Answer]) -> Iterator[list[Answer]]:
    """Yield programs without warnings and errors at once, then the others, with those of which the same is said."""
    held: dict[State, dict[object, list[Answer]]] = {state: {} for state in STATES}
    for answer in answers:
        if answer.state == "ok":
            yield [answer]
        else:
            held[answer.state].setdefault(_said_of(answer), []).append(answer)
    for alike in (each for kept in held.values() for each in kept.values()):
        yield from [alike] if len(alike) >= _ALIKE else ([each] for each in alike)


def _said_of(answer: Answer) -> object:
    """Return what is said of a program, without its name and the places in it."""
    error = answer.error and answer.error.replace(answer.path, "")
    return error, tuple(
        (
            verdict.question,
            frozenset((each.level, each.feature, each.introduced, each.message, each.remedy) for each in verdict.new),
            *(len(group_findings(each)) for each in (verdict.known, verdict.allowed)),
        )
        for verdict in answer.verdicts
    )


def _reasons(answers: Iterable[Answer], *, brief: bool) -> Iterator[str]:
    for alike in _ordered(answers):
        first, *others = alike
        name = f"{len(alike)} programs" if others else first.path
        if first.error is not None:
            yield f"{name}: cannot be checked"
            yield from wrapped(first.error, "  ")
        for verdicts in zip(*(each.verdicts for each in alike), strict=True):
            verdict = verdicts[0]
            if not brief or any((verdict.new, verdict.known, verdict.allowed)):
                merged = tuple(finding for each in verdicts for finding in each.new) if others else verdict.new
                yield from verdict_lines(name, replace(verdict, new=merged))
        if others:
            yield from wrapped(f"in {', '.join(each.path for each in alike)}", "  ", "    ")


def _table(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    heads = ["program", *map(str, scope.questions)]
    kept = []

    def rows() -> Iterator[list[str]]:
        for answer in answers:
            if answer.error is not None or any(each.new or each.known or each.allowed for each in answer.verdicts):
                kept.append(answer)
            said = {verdict.question: "yes" if verdict.ok else "no" for verdict in answer.verdicts}
            unsaid = "-" if answer.error is None else "unreadable"
            yield [answer.path, *(said.get(question, unsaid) for question in scope.questions)]

    if scope.width is not None:
        yield from _fitted(heads, rows(), scope.width)
    else:
        # Rows as they come.
        widths = [max(map(len, [heads[0], *scope.paths])), *map(len, heads[1:])]
        for row in chain([heads], rows()):
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield ""
    yield from _reasons(kept, brief=True)


def _fitted(heads: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> Iterator[str]:
    """Yield a table whose cells are broken so that it fits a width."""
    # Imported here because few reports are for a terminal.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(Text(head), overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console = Console(width=width, file=StringIO(), color_system=None)
    console.print(table)
    assert isinstance(console.file, StringIO)
    yield from (line.rstrip() for line in console.file.getvalue().splitlines())


def _counts(findings: Sequence[Finding]) -> str:
    counts = Counter(group[0].level for group in group_findings(findings))
    said = [
        f"{counts[level]} {level}{'s' if counts[level] > 1 else ''}" for level in reversed(_LEVELS) if counts[level]
    ]
    return ", ".join(said) or "ok"


def _groups(findings: Sequence[Finding]) -> Iterator[str]:
    for group in sorted(group_findings(findings), key=lambda group: _LEVELS.index(group[0].level)):
        first = group[0]
        since = f", since {first.introduced}" if first.introduced else ""
        yield f"  {first.level}: {first.feature}{since}"
        for said in dict.fromkeys(finding.message for finding in group):
            yield from wrapped(said, "    ")
            places: Counter[str] = Counter()
            for finding in group:
                if finding.message == said:
                    places[_place(finding)] += finding.count
            for place, count in list(places.items())[:SHOWN_PLACES]:
                yield f"      {place}{f', {count} times' if count > 1 else ''}"
            if len(places) > SHOWN_PLACES:
                yield f"      and {len(places) - SHOWN_PLACES} places more"
        if first.remedy:
            yield from wrapped(f"-> {first.remedy}", "    ", "       ")


def _place(finding: Finding) -> str:
    """Return the line in the user's source if known, and the place in the program otherwise."""
    where = str(finding.location) if finding.location else finding.path or "in the file"
    function = f" in @{finding.function}" if finding.function and finding.location else ""
    return f"{where}{function}"


def wrapped(text: str, indent: str, hanging: str | None = None) -> list[str]:
    """Without ``hanging``, all lines have ``indent``."""
    # Imported here because most programs have no findings.
    import shutil
    import textwrap

    return textwrap.wrap(
        text,
        max(shutil.get_terminal_size((_WIDTH, 24)).columns, _NARROWEST),
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
