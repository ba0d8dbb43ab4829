"""Settings of a migration, and the operations on one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from vhlo_tools.artifact import Artifact, JaxContainer
from vhlo_tools.errors import MigrationError
from vhlo_tools.files import Buffer, Kind, is_url, plain_path
from vhlo_tools.findings import Finding
from vhlo_tools.records import dataclass
from vhlo_tools.spec import Release
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.files import Stamp as ObjectStamp


@dataclass(frozen=True, slots=True)
class MigrationSettings:
    """The settings of a migration."""

    paths: tuple[str, ...]
    target: Version
    output_dir: str | None = None  # with the structure below ``paths``; None for beside and in place
    backup: str | None = None  # suffix of the name of an old file that is kept; None to keep none
    verify: bool = False  # whether old and new program must be proven equivalent
    seed: int = 0  # for drawing inputs if both programs are run
    force: bool = False  # whether a result may replace another file at its destination
    exclude: tuple[str, ...] = ()  # globs
    allow_other_dialects: bool = False  # in programs that are not artifacts
    legalize: bool = True  # constructs that no artifact can contain, in programs that are not artifacts
    provider: str | None = None
    trusted: bool = False  # MLIR may parse bytes directly, and not in a child process first
    #: releases that the target names; jax.export files that jax or jaxlib among them refuse are not migrated
    consumers: tuple[Release, ...] = ()
    timeout: float | None = None  # of each run, in seconds; None for the default
    follow: bool = True  # migrate the targets of links in folders
    follow_outside: bool = False  # even if they are outside of ``paths``
    expand: bool = False  # features newer than the target, with the same results
    allow_relaxed: tuple[str, ...] = ()  # features that are also rewritten with something given up
    allow_signature_change: bool = False  # types of arguments and results
    #: real releases that must read a result before it is written, and programs at the target already
    confirm_with: tuple[str, ...] = ()
    read_with: str | None = None  # the release that reads MLIR text

    def __post_init__(self) -> None:
        # The URL of a file is its path.
        object.__setattr__(self, "paths", tuple(map(plain_path, self.paths)))
        if self.backup and Path(self.backup).name != self.backup:
            raise MigrationError(f"{self.backup!r} is not a suffix of a name: expected one like .orig")
        if self.output_dir is not None:
            object.__setattr__(self, "output_dir", plain_path(self.output_dir))

    def pinned(self) -> dict[str, object]:
        """Return the settings that must not change when a migration is resumed, as a JSON object."""
        names = [each.name for each in fields(self) if each.name not in ("paths", "trusted", "timeout")]
        return {
            "PATH": [_absolute(each) for each in self.paths],
            **{name.replace("_", "-"): getattr(self, name) for name in names},
            "target": str(self.target),
            "output-dir": self.output_dir and _absolute(self.output_dir),
            "exclude": list(self.exclude),
            "consumers": [str(each) for each in self.consumers],
            "allow-relaxed": sorted(self.allow_relaxed),
            "confirm-with": list(self.confirm_with),
        }


def _absolute(path: str) -> str:
    return path if is_url(path) else str(Path(path).absolute())


@dataclass(frozen=True, slots=True)
class EquivalenceResult:
    """The outcome of comparing two programs."""

    #: The same program would run; both were run and agree within the tolerance; do not; or they cannot be run.
    verdict: Literal["same program", "same results", "other results", "unknown"]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program of the store, opened once."""

    name: str
    kind: Kind
    data: Buffer
    opened: Artifact | JaxContainer | None  # None for a program that is neither an artifact nor a jax.export file
    version: ObjectStamp | None = None  # the one that was read, of an object in a store

    @classmethod
    def of(cls, name: str, kind: Kind, data: Buffer, version: ObjectStamp | None = None) -> Self:
        if kind is Kind.JAX_EXPORT:
            return cls(name, kind, data, JaxContainer(data, name=name), version)
        return cls(name, kind, data, Artifact(data, name=name) if kind is Kind.PORTABLE_ARTIFACT else None, version)

    @property
    def artifacts(self) -> Sequence[Artifact]:
        if isinstance(self.opened, JaxContainer):
            return self.opened.artifacts
        return () if self.opened is None else (self.opened,)


@dataclass(frozen=True, slots=True)
class Tools:
    """Operations on one program; all can be pickled, because they are called in other processes."""

    move: Callable[[StoredProgram, MigrationSettings], Artifact | JaxContainer]  # to the target version
    #: findings that prevent the migration, and others
    blocking: Callable[[StoredProgram, MigrationSettings], Sequence[Finding]]
    #: compares a program with the result of ``move``
    prove: Callable[[StoredProgram, Artifact | JaxContainer, MigrationSettings], EquivalenceResult]
    #: findings of real releases that do not read the artifacts at the target version
    refused: Callable[[Sequence[Artifact], MigrationSettings], Sequence[Finding]]
