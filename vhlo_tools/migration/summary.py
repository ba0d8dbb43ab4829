"""Summary of the outcomes of all files."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from vhlo_tools.migration.file_record import STATUSES, MigrationRecord
from vhlo_tools.records import dataclass


@dataclass(slots=True)
class MigrationSummary:
    """Counts of files and bytes, in constant memory.

    Attributes:
        files: The number of files by status.
        sizes: The total size of the files in bytes, by status.
        versions: The number of files by version; ``None`` for files without a version.
        new_size: The total size of the results in bytes.
    """

    files: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    versions: Counter[str | None] = field(default_factory=Counter)
    new_size: int = 0
    _seconds: float = 0.0
    _sampled: int = 0

    def add(self, record: MigrationRecord) -> None:
        """Count a file."""
        self.files[record.status] += 1
        self.sizes[record.status] += record.size
        self.versions[str(record.version) if record.version else None] += 1
        self.new_size += record.new_size or 0
        if record.status == "move" and record.seconds is not None:
            self._seconds += record.seconds
            # The time is proportional to the bytes, plus a constant for each file.
            self._sampled += record.size + _EVERY_FILE

    @property
    def ok(self) -> bool:
        """Whether every file is at the target version, or can be migrated to it."""
        return self.problems == 0

    @property
    def problems(self) -> int:
        """The number of files that are not at the target version and cannot be migrated to it."""
        return sum(number for status, number in self.files.items() if status not in ("move", "moved", "current"))

    def seconds(self, jobs: int = 1) -> float | None:
        """Return the estimated time of the planned migrations in seconds, from a sample; ``None`` without a sample.

        Args:
            jobs: The number of processes that share the work.
        """
        if not self._sampled:
            return None
        work = self.sizes["move"] + _EVERY_FILE * self.files["move"]
        return self._seconds / self._sampled * work / jobs

    def _repr_html_(self) -> str:
        from vhlo_tools.markup import table

        rows = [(status, self.files[status], self.sizes[status]) for status in STATUSES if self.files[status]]
        return table("migration", ("status", "files", "bytes"), rows)

    def as_json(self) -> dict[str, object]:
        """Return the summary as a JSON object."""
        return {
            "files": {status: self.files[status] for status in STATUSES if self.files[status]},
            "sizes": {status: self.sizes[status] for status in STATUSES if self.files[status]},
            "versions": {version or "none": number for version, number in self.versions.items()},
            "new_size": self.new_size,
        }


_EVERY_FILE = 4096
