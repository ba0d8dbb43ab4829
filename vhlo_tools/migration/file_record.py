"""The outcome of the migration of one file."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, Final, Literal, get_args

from vhlo_tools.findings import Finding, SourceLocation
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

Status = Literal["move", "moved", "current", "blocked", "mismatch", "unverified", "changed", "failed", "unreadable"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)


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
        values["findings"] = [_finding_as_json(each) for each in self.findings]
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> MigrationRecord:
        """Return the record that :meth:`as_json` converted."""
        version, target = (each and Version(each) for each in (values["version"], values["target"]))
        findings = tuple(_finding_from_json(each) for each in values["findings"])
        return cls(**{**values, "version": version, "target": target, "findings": findings})


def _finding_as_json(finding: Finding) -> dict[str, Any]:
    versions = {name: value and str(value) for name, value in _versions(finding).items()}
    return {**asdict(finding), **versions}


def _finding_from_json(values: dict[str, Any]) -> Finding:
    location = values["location"] and SourceLocation(**values["location"])
    versions = {name: values[name] and Version(values[name]) for name in ("introduced", "target")}
    return Finding(**{**values, **versions, "location": location})


def _versions(finding: Finding) -> dict[str, Version | None]:
    return {"introduced": finding.introduced, "target": finding.target}
