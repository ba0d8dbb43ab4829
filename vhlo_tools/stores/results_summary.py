"""Summary of a table of results: files and bytes by status and version, findings, reasons, and time.

Memory does not grow with the number of rows: of texts that differ from row to row, only the most frequent are kept, and
of durations a histogram.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vhlo_tools.records import dataclass
from vhlo_tools.stores.comparison import VERIFICATION_TABLE
from vhlo_tools.stores.migration_records import MIGRATION_TABLE
from vhlo_tools.stores.tables import StoredTable
from vhlo_tools.stores.watch import STATUS_TABLE

if TYPE_CHECKING:
    import pyarrow

#: So many different texts are counted exactly; of more, the rarest are given up.
_KEPT: Final = 1000
#: No text is kept longer than this.
_LONGEST: Final = 400
_SLOWEST: Final = 5
#: The ratio of the ends of a bin of durations: a median is exact to half of it.
_BIN: Final = math.log(1.02)

#: Columns with paths of the file itself, which would make every reason one of its own; and what stands for them.
_PATHS: Final[Mapping[str, str]] = {
    "backup": "BACKUP",
    "output": "OUTPUT",
    "leads_to": "FILE",
    "before": "BEFORE",
    "after": "AFTER",
    "path": "FILE",
}


@dataclass(slots=True)
class Tally:
    """Counts by text, in bounded memory."""

    counts: Counter[str | None] = field(default_factory=Counter)  # exact if ``others`` is 0, and not too high otherwise
    others: int = 0  # sum of the counts of texts that were dropped, as the rarest of too many

    def add(self, text: str | None, number: int = 1) -> None:
        self.counts[text and text[:_LONGEST]] += number
        if len(self.counts) > 2 * _KEPT:
            kept = Counter(dict(self.counts.most_common(_KEPT)))
            self.others += self.counts.total() - kept.total()
            self.counts = kept

    def ranked(self) -> list[tuple[str | None, int]]:
        """Return the most frequent first; the same order for the same counts."""
        return sorted(self.counts.items(), key=lambda each: (-each[1], each[0] is not None, each[0] or ""))


@dataclass(slots=True)
class FeatureCount:
    files: int = 0  # files with findings about the feature
    count: int = 0  # occurrences in these files


@dataclass(slots=True)
class Durations:
    """Durations in seconds."""

    number: int = 0
    total: float = 0.0
    slowest: list[tuple[float, str]] = field(default_factory=list)  # with the path of the file; the longest first
    _bins: Counter[int] = field(default_factory=Counter)

    @property
    def median(self) -> float | None:
        """Median, exact to 1 %; ``None`` without durations."""
        passed = 0
        for place, number in sorted(self._bins.items()):
            passed += number
            if 2 * passed >= self.number:
                return math.exp((place + 0.5) * _BIN)
        return None

    def add(self, durations: Iterable[tuple[float | None, str | None]]) -> None:
        """Invalid durations are left out."""
        known = [(each, path or "") for each, path in durations if each is not None and 0 < each < math.inf]
        for each, _ in known:
            self._bins[math.floor(math.log(each) / _BIN)] += 1
        self.number += len(known)
        self.total += math.fsum(each for each, _ in known)
        self.slowest = heapq.nlargest(_SLOWEST, [*self.slowest, *known])


@dataclass(slots=True)
class ResultsSummary:
    """Summary of a table of results."""

    table: str  # ``migration``, ``store-status`` or ``store-verification``
    said: Mapping[str, str]  # metadata, such as the target
    files: Tally = field(default_factory=Tally)  # rows by status
    sizes: Tally = field(default_factory=Tally)  # bytes by status
    versions: Tally = field(default_factory=Tally)  # rows by the StableHLO version of the file, or None
    new_size: int = 0  # bytes of results
    features: dict[str, FeatureCount] = field(default_factory=dict)
    #: rows by the first line of the reason, without the paths of the file itself
    reasons: Tally = field(default_factory=Tally)
    seconds: Durations = field(default_factory=Durations)  # times of processing

    def as_json(self) -> dict[str, object]:
        return {
            "table": self.table,
            "metadata": dict(self.said),
            "files": _named(self.files),
            "sizes": _named(self.sizes),
            "versions": _named(self.versions),
            "new_size": self.new_size,
            "features": {name: {"files": each.files, "count": each.count} for name, each in self.ranked_features()},
            "reasons": {"counts": _named(self.reasons), "others": self.reasons.others},
            "seconds": {
                "files": self.seconds.number,
                "total": self.seconds.total,
                "median": self.seconds.median,
                "slowest": [{"path": path, "seconds": each} for each, path in self.seconds.slowest],
            },
        }

    def ranked_features(self) -> list[tuple[str, FeatureCount]]:
        return sorted(self.features.items(), key=lambda each: (-each[1].files, each[0]))


def summarize_results(path: str) -> ResultsSummary:
    """Summarize Parquet of `vhlo migrate`, `vhlo store status` or `vhlo verify`: a file, or a folder of one table."""
    stored = StoredTable.of(Path(path), (MIGRATION_TABLE, STATUS_TABLE, VERIFICATION_TABLE))
    wanted = {"status", "version", "size", "new_size", "seconds", "findings", "reason", "error", *_PATHS}
    summary = ResultsSummary(stored.table.name, stored.said)
    for batch in stored.batches([each.name for each in stored.table.columns if each.name in wanted]):
        _add(summary, batch)
    return summary


def _add(summary: ResultsSummary, batch: pyarrow.RecordBatch) -> None:
    import pyarrow.compute as pc

    names = set(batch.schema.names)
    for status, number, size in _grouped(batch, "status", "size"):
        summary.files.add(status, number)
        summary.sizes.add(status, size)
    for version, number, _ in _grouped(batch, "version", "size"):
        summary.versions.add(version, number)
    if "new_size" in names:
        summary.new_size += pc.sum(batch.column("new_size")).as_py() or 0
    if "seconds" in names:
        timed = batch.filter(pc.is_valid(batch.column("seconds")))
        summary.seconds.add(zip(timed.column("seconds").to_pylist(), timed.column("path").to_pylist(), strict=True))
    if "findings" in names:
        for feature, files, count in _features_in(batch.column("findings")):
            # There are as many as the specification names; a file that says otherwise is not to fill the memory.
            found = summary.features.get(feature)
            if found is None and len(summary.features) < _KEPT:
                found = summary.features.setdefault(feature, FeatureCount())
            if found is not None:
                found.files += files
                found.count += count
    for reason in _reasons_in(batch, "reason" if "reason" in names else "error"):
        summary.reasons.add(reason)


def _grouped(batch: pyarrow.RecordBatch, key: str, summed: str) -> Iterator[tuple[str | None, int, int]]:
    """Yield the values of a column, each with the number of its rows and the sum of another column."""
    from pyarrow import Table as Rows

    rows = Rows.from_batches([batch.select([key, summed])])
    found = rows.group_by(key).aggregate([([], "count_all"), (summed, "sum")])
    for row in found.to_pylist():
        yield row[key], row["count_all"], row[f"{summed}_sum"] or 0


def _features_in(findings: pyarrow.Array) -> Iterator[tuple[str, int, int]]:
    """Yield features, each with the number of files and of occurrences."""
    import pyarrow.compute as pc
    from pyarrow import table

    each = pc.list_flatten(findings)
    rows = table(
        {
            "file": pc.list_parent_indices(findings),
            "feature": pc.struct_field(each, "feature"),
            "count": pc.struct_field(each, "count"),
        }
    )
    files = rows.group_by(["file", "feature"]).aggregate([("count", "sum")])
    for row in files.group_by("feature").aggregate([([], "count_all"), ("count_sum", "sum")]).to_pylist():
        yield (row["feature"] or "")[:_LONGEST], row["count_all"], row["count_sum_sum"] or 0


def _reasons_in(batch: pyarrow.RecordBatch, column: str) -> Iterator[str]:
    """Yield the first lines of reasons, with a word for the paths that differ from file to file."""
    import pyarrow.compute as pc

    paths = {name: said for name, said in _PATHS.items() if name in batch.schema.names}
    told = batch.filter(pc.is_valid(batch.column(column))).select([column, *paths])
    for row in told.to_pylist():
        reason = row[column]
        for name, said in paths.items():
            # The longest first: the path of a backup begins with that of its file.
            reason = reason.replace(row[name], said) if row[name] else reason
        yield reason.partition("\n")[0]


def _named(tally: Tally) -> dict[str, int]:
    return {text or "none": number for text, number in tally.ranked()}
