"""What became of all files together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from vhlo_tools.migration.record import STATUSES, MigrationRecord

__all__ = ["MigrationSummary"]


@dataclass(slots=True)
class MigrationSummary:
    """Counts of files and bytes, however many there were.

    Attributes:
        files: How many files there are of each status.
        sizes: How many bytes they had.
        versions: How many files there were of each version; ``None`` of those that say none.
        new_size: How many bytes the results have.
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
            # The work grows with the bytes, from what every file takes.
            self._sampled += record.size + _EVERY_FILE

    @property
    def ok(self) -> bool:
        """Whether every file is at the target, or can be brought there."""
        return self.problems == 0

    @property
    def problems(self) -> int:
        """How many files are not at the target, and cannot be brought there."""
        return sum(number for status, number in self.files.items() if status not in ("move", "moved", "current"))

    def seconds(self, jobs: int = 1) -> float | None:
        """Return how long the planned moves take, by those that were tried; ``None`` if none were.

        Args:
            jobs: How many processes share the work.
        """
        if not self._sampled:
            return None
        work = self.sizes["move"] + _EVERY_FILE * self.files["move"]
        return self._seconds / self._sampled * work / jobs

    def as_json(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "files": {status: self.files[status] for status in STATUSES if self.files[status]},
            "sizes": {status: self.sizes[status] for status in STATUSES if self.files[status]},
            "versions": {version or "none": number for version, number in self.versions.items()},
            "new_size": self.new_size,
        }


_EVERY_FILE = 4096
