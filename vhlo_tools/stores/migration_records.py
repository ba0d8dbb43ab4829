"""Outcomes of a migration: of one file, of all files, as a table and as objects."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from vhlo_tools.files import Buffer, Chunk, slices, view
from vhlo_tools.findings import Finding, SourceLocation
from vhlo_tools.records import dataclass
from vhlo_tools.stores.members import Stamp, hash_at, object_url
from vhlo_tools.stores.tables import FINDINGS, Column, Table
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.files import Stamp as ObjectStamp

# The outcome of the migration of one file

Status = Literal["move", "moved", "current", "blocked", "mismatch", "unverified", "changed", "failed", "unreadable"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)
#: The attributes of findings that are versions.
_FINDING_VERSIONS: Final = ("introduced", "target")


@dataclass(frozen=True, slots=True)
class MigrationRecord:
    """The actual or planned outcome of the migration of one file.

    Attributes:
        path: The path of the file, as it was found.
        status: ``moved``, or ``move`` in a plan; ``current``: nothing to do. With any other status nothing was
            written: ``blocked``: findings, or another file, prevent the migration; ``mismatch``: the old and the new
            program compute different results; ``unverified``: their equivalence could not be determined; ``changed``:
            another process changed the file in the meantime; ``failed``: the result could not be written, or
            processing crashed; ``unreadable``.
        kind: The kind of the file, if known: a value of ``vhlo_tools.artifact.Kind``.
        version: The StableHLO version that the file was written for, if it records one.
        target: The target version.
        size: The size of the file in bytes.
        digest: The SHA-256 of the file.
        output: The path of the result, if it does not replace the file.
        new_size: The size of the result in bytes.
        new_digest: The SHA-256 of the result.
        backup: The path at which the old file is kept.
        old_version: The name under which a store keeps the old object, if it keeps versions.
        leads_to: The path of the file itself, if a link leads to it.
        verified: The proof that the old and the new program are equivalent: ``same program`` or ``same results``.
        reason: The reason why the file is not migrated, or the numbers of ``same results``, in a sentence.
        findings: The findings about the program.
        seconds: The time of processing the file; in a plan, an estimate for files in a sample.
    """

    path: str
    status: Status
    target: Version
    kind: str | None = None
    version: Version | None = None
    size: int = 0
    digest: str | None = None
    output: str | None = None
    new_size: int | None = None
    new_digest: str | None = None
    backup: str | None = None
    old_version: str | None = None
    leads_to: str | None = None
    verified: str | None = None
    reason: str | None = None
    findings: tuple[Finding, ...] = ()
    seconds: float | None = None

    @property
    def ok(self) -> bool:
        """Whether the file is at the target version, or can be migrated to it."""
        return self.status in ("move", "moved", "current")

    def as_json(self) -> dict[str, Any]:
        """Return the record as a JSON object, which :meth:`from_json` reads."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "findings"}
        values["version"] = self.version and str(self.version)
        values["target"] = str(self.target)
        values["findings"] = [
            {**asdict(each), **{name: (at := getattr(each, name)) and str(at) for name in _FINDING_VERSIONS}}
            for each in self.findings
        ]
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> MigrationRecord:
        """Return the record that :meth:`as_json` converted."""
        version, target = (each and Version(each) for each in (values["version"], values["target"]))
        findings = []
        for each in values["findings"]:
            versions = {name: each[name] and Version(each[name]) for name in _FINDING_VERSIONS}
            location = each["location"] and SourceLocation(**each["location"])
            findings.append(Finding(**{**each, **versions, "location": location}))
        return cls(**{**values, "version": version, "target": target, "findings": tuple(findings)})


# Summary of the outcomes of all files


@dataclass(slots=True)
class MigrationSummary:
    """Counts of files and bytes, in constant memory.

    Attributes:
        files: The number of files by status.
        sizes: The total size of the files in bytes, by status.
        versions: The number of files by version; ``None`` for files without a version.
        new_size: The total size of the results in bytes.
        others: The number of files in folders that are no programs.
    """

    files: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    versions: Counter[str | None] = field(default_factory=Counter)
    new_size: int = 0
    others: int = 0
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
            "unrecognised": self.others,
        }


_EVERY_FILE = 4096


# Records of a migration as a table

#: What ``vhlo migrate`` says of files.
MIGRATION_TABLE: Final[Table[MigrationRecord]] = Table(
    "migration",
    (
        Column("path", "text", "path of the file", lambda row: row.path),
        Column("ok", "flag", "whether it is, or can be, at the target", lambda row: row.ok),
        Column("status", "text", "what became of it", lambda row: row.status),
        Column("kind", "text", "kind of the file", lambda row: row.kind),
        Column("version", "text", "StableHLO version before", lambda row: row.version),
        Column("target", "text", "StableHLO version after", lambda row: row.target),
        Column("size", "integer", "size before, in bytes", lambda row: row.size),
        Column("digest", "text", "SHA-256 before", lambda row: row.digest),
        Column("output", "text", "path of the result, if it is another", lambda row: row.output),
        Column("new_size", "integer", "size after, in bytes", lambda row: row.new_size),
        Column("new_digest", "text", "SHA-256 after", lambda row: row.new_digest),
        Column("backup", "text", "path at which the old file is kept", lambda row: row.backup),
        Column("old_version", "text", "version under which a store keeps the old object", lambda row: row.old_version),
        Column("leads_to", "text", "path of the file itself, if a link leads to it", lambda row: row.leads_to),
        Column("verified", "text", "proof that both compute the same", lambda row: row.verified),
        Column("reason", "text", "why it was not migrated", lambda row: row.reason),
        Column("findings", FINDINGS, "findings about the program", lambda row: row.findings),
        Column("seconds", "seconds", "time of processing", lambda row: row.seconds),
    ),
)


# Results of a migration as objects, which record their origin in their metadata
#
# A store lets an object appear whole, in place of the version that was read and of no other. So a migration needs
# neither temporary objects nor a note before each write: an object at the target that names the migration was moved by
# it, even if its writer could not report that any more.

#: The names in the metadata for the key of the migration, and for the SHA-256 of what was replaced. Azure takes only
#: what is an identifier of C#.
MIGRATION: Final = "vhlomigration"
BEFORE: Final = "vhlobefore"


class ObjectResult:
    """A result that is written as an object."""

    def __init__(self, destination: str, chunks: Sequence[Chunk], metadata: Mapping[str, str]) -> None:
        self._url = object_url(destination)
        self._chunks = chunks
        self._metadata = metadata
        self.size: int = 0
        self.digest: str | None = None

    def write(self, replaces: ObjectStamp | None, *, force: bool) -> Stamp:
        """``replaces`` is ``None`` beside the source; only then may ``force`` replace any object.

        On an error nothing is left behind; ``ObjectChangedError`` means that there is another version.
        """
        from vhlo_tools.files import write_object

        written = write_object(
            self._url, self._hashed(), force=force and replaces is None, replaces=replaces, metadata=self._metadata
        )
        return Stamp.of_object(written)

    def digest_of_chunks(self) -> str | None:
        """Return the SHA-256 of the bytes, which need not have been written."""
        for _ in self._hashed():
            pass
        return self.digest

    def _hashed(self) -> Iterator[Chunk]:
        # As they go, because reading constants of gigabytes once more takes as long as writing them.
        digest = hashlib.sha256()
        self.size = 0
        for chunk in self._chunks:
            for piece in slices(view(chunk)):
                digest.update(piece)
                self.size += len(piece)
                yield piece
        self.digest = digest.hexdigest()


def digest_before(url: str, version: ObjectStamp, key: str) -> str | None:
    """Return the SHA-256 of the object's predecessor, if this migration (``key``) has written it."""
    from vhlo_tools.files import metadata_of, stamp_of

    if not version.kept:
        # Google's store says nothing of an object with its bytes.
        there = stamp_of(object_url(url))
        version = there if there is not None and there.token == version.token else version
    said = metadata_of(version)
    return (said.get(BEFORE) or None) if said.get(MIGRATION) == key else None


def digest_of_source(url: str, key: str) -> str | None:
    """Return the SHA-256 of the object's source, if this migration (``key``) has written it."""
    from vhlo_tools.files import stamp_of

    there = stamp_of(object_url(url))
    return digest_before(url, there, key) if there else None


def keep_object(backup: str, data: Buffer) -> None:
    """Write the bytes of an old object under another name; they may be there already."""
    result = ObjectResult(backup, [view(data)], {})
    try:
        result.write(None, force=False)
    except FileExistsError:
        if hash_at(backup) != result.digest_of_chunks():
            raise
