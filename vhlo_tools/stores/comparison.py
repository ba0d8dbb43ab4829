"""Results of the comparison of two stores, program by program, as a table."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Final, Literal, get_args

from vhlo_tools.records import dataclass
from vhlo_tools.stores.tables import Column, Table

if TYPE_CHECKING:
    from vhlo_tools.version import Version

PairStatus = Literal["same", "mismatch", "unverified", "missing", "added", "failed", "unreadable"]
_STATUSES: Final[tuple[PairStatus, ...]] = get_args(PairStatus)


@dataclass(frozen=True, slots=True)
class PairRecord:
    """The outcome of the comparison of a program with its partner in another store.

    Attributes:
        path: The path relative to the stores.
        status: ``same``: both compute the same; ``mismatch``: they compute different results; ``unverified``: whether
            they compute the same could not be determined; ``missing``: only the first store has it; ``added``: only the
            second store has it; ``failed``: the comparison crashed; ``unreadable``: one of them cannot be read.
        before: The path or URL in the first store.
        after: The path or URL in the second store.
        kind: The kind of the file in the first store: a value of ``vhlo_tools.artifact.Kind``.
        version: The StableHLO version that the file in the first store was written for, if it records one.
        new_version: The same of the file in the second store.
        size: The size of the file in the first store, in bytes.
        new_size: The size of the file in the second store.
        digest: The SHA-256 of the file in the first store.
        new_digest: The SHA-256 of the file in the second store.
        verified: The proof that both compute the same: ``same bytes``, ``same program`` if the library reads the same
            program from both, or ``same results`` if both were run.
        reason: The reason why they are not the same, or the numbers of ``same results``, in a sentence.
        seconds: The time of the comparison.
    """

    path: str
    status: PairStatus
    before: str | None = None
    after: str | None = None
    kind: str | None = None
    version: Version | None = None
    new_version: Version | None = None
    size: int = 0
    new_size: int = 0
    digest: str | None = None
    new_digest: str | None = None
    verified: str | None = None
    reason: str | None = None
    seconds: float | None = None

    @property
    def ok(self) -> bool:
        """Whether both compute the same."""
        return self.status == "same"


@dataclass(slots=True)
class PairSummary:
    """Counts of pairs, in constant memory."""

    files: Counter[PairStatus] = field(default_factory=Counter)
    sizes: Counter[PairStatus] = field(default_factory=Counter)  # in bytes: of the first file, or of the only one
    verified: Counter[str] = field(default_factory=Counter)  # equal pairs by proof
    others: int = 0  # files of both stores that are no programs

    def add(self, record: PairRecord) -> None:
        self.files[record.status] += 1
        self.sizes[record.status] += record.size or record.new_size
        if record.verified is not None:
            self.verified[record.verified] += 1

    @property
    def ok(self) -> bool:
        return self.files.total() == self.files["same"]

    def as_json(self) -> dict[str, object]:
        return {
            "files": {status: self.files[status] for status in _STATUSES if self.files[status]},
            "sizes": {status: self.sizes[status] for status in _STATUSES if self.files[status]},
            "verified": dict(sorted(self.verified.items())),
            "unrecognised": self.others,
        }


#: What ``vhlo verify`` says of the programs of two stores.
VERIFICATION_TABLE: Final[Table[PairRecord]] = Table(
    "store-verification",
    (
        Column("path", "text", "path relative to the stores", lambda row: row.path),
        Column("ok", "flag", "whether both compute the same", lambda row: row.ok),
        Column("status", "text", "what was found", lambda row: row.status),
        Column("verified", "text", "proof that both compute the same", lambda row: row.verified),
        Column("before", "text", "path in the first store", lambda row: row.before),
        Column("after", "text", "path in the second store", lambda row: row.after),
        Column("kind", "text", "kind of the file in the first store", lambda row: row.kind),
        Column("version", "text", "its StableHLO version", lambda row: row.version),
        Column("new_version", "text", "StableHLO version of the file in the second store", lambda row: row.new_version),
        Column("size", "integer", "size of the file in the first store, in bytes", lambda row: row.size),
        Column("new_size", "integer", "size of the file in the second store, in bytes", lambda row: row.new_size),
        Column("digest", "text", "SHA-256 of the file in the first store", lambda row: row.digest),
        Column("new_digest", "text", "SHA-256 of the file in the second store", lambda row: row.new_digest),
        Column("reason", "text", "why they are not the same", lambda row: row.reason),
        Column("seconds", "seconds", "time of the comparison", lambda row: row.seconds),
    ),
)
