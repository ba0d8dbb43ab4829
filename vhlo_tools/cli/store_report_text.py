"""Output of ``vhlo store report`` as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from vhlo_tools.cli.migrate_text import readable_size
from vhlo_tools.printable import printable
from vhlo_tools.stores import ResultsSummary

#: So many features, versions and reasons are shown; the report as JSON has more.
_SHOWN: Final = 10


def report_lines(summary: ResultsSummary) -> Iterator[str]:
    total = summary.files.counts.total()
    size = readable_size(summary.sizes.counts.total())
    said = "".join(f", {name} {printable(value)}" for name, value in sorted(summary.said.items()))
    yield f"{total} {'file' if total == 1 else 'files'}, {size} ({summary.table}{said})"
    for status, number in summary.files.ranked():
        yield f"  {printable(status or '-'):<10} {number:>12} {readable_size(summary.sizes.counts[status]):>10}"
    if summary.new_size:
        yield f"  the results have {readable_size(summary.new_size)}"
    yield from _section("versions", ((number, text or "none") for text, number in summary.versions.ranked()))
    yield from _section(
        "features found, by files",
        ((each.files, f"{name} ({each.count} times)") for name, each in summary.ranked_features()),
    )
    yield from _section("reasons", ((number, text or "-") for text, number in summary.reasons.ranked()))
    if summary.reasons.others:
        yield f"  {summary.reasons.others:>12} for others, rarer ones"
    if (median := summary.seconds.median) is not None:
        yield f"seconds: {summary.seconds.total:.1f} in all, {median:.2g} in the median; the slowest files"
        for seconds, path in summary.seconds.slowest:
            yield f"  {seconds:>12.3g} {printable(path)}"


def _section(title: str, counts: Iterable[tuple[int, str]]) -> Iterator[str]:
    rest = iter(counts)
    shown = list(islice(rest, _SHOWN))
    if not shown:
        return
    yield title
    for number, text in shown:
        yield f"  {number:>12} {printable(text)}"
    if more := sum(1 for _ in rest):
        yield f"  {'':>12} and {more} more: --output-format json"
