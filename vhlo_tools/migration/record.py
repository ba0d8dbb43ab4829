"""What became of one file, or would become of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, get_args

from vhlo_tools.findings import Finding, SourceLocation
from vhlo_tools.version import Version

__all__ = ["STATUSES", "MigrationRecord", "Status"]

Status = Literal["move", "moved", "current", "blocked", "mismatch", "unverified", "changed", "failed", "unreadable"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)


@dataclass(frozen=True, slots=True)
class MigrationRecord:
    """What became of one file.

    Attributes:
        path: The file, as it was found.
        status: ``moved``, or ``move`` in a plan; ``current``: there is nothing to do. Of all others nothing was
            written: ``blocked``: the findings stand in the way, or another file does; ``mismatch``: old and new do not
            compute the same; ``unverified``: whether they do could not be found out; ``changed``: somebody else
            changed it meanwhile; ``failed``: it could not be written, or whatever worked on it died; ``unreadable``.
        kind: What it is, if that is known: a word of ``vhlo_tools.artifact.Kind``.
        version: The StableHLO version that it was written for, if it says one.
        target: The version that it was to be moved to.
        size: Its bytes.
        digest: Its SHA-256.
        output: Where the result stands, if not in its place.
        new_size: The bytes of the result.
        new_digest: Its SHA-256.
        backup: Where the old file is kept.
        verified: How it was found that old and new compute the same: ``same program`` or ``same results``.
        reason: Why it is not moved, or the numbers of ``same results``, in a sentence.
        findings: What was found in it.
        seconds: How long the work on it took; in a plan, how long it would take, of a sample.
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
    verified: str | None = None
    reason: str | None = None
    findings: tuple[Finding, ...] = ()
    seconds: float | None = None

    @property
    def ok(self) -> bool:
        """Whether the file is where it shall be, or can be brought there."""
        return self.status in ("move", "moved", "current")

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it, so that :meth:`from_json` reads it again."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "findings"}
        values["version"] = self.version and str(self.version)
        values["target"] = str(self.target)
        values["findings"] = [_finding_as_json(each) for each in self.findings]
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> MigrationRecord:
        """Return what :meth:`as_json` wrote."""
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
