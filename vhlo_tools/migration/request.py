"""The settings of a migration, and the operations on one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from vhlo_tools.artifact import Artifact, JaxContainer
from vhlo_tools.dialect import Release
from vhlo_tools.findings import Finding
from vhlo_tools.formats import Buffer, Kind
from vhlo_tools.records import dataclass
from vhlo_tools.remote import is_url, plain_path
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.remote import Stamp as ObjectStamp


@dataclass(frozen=True, slots=True)
class MigrationSettings:
    """The settings of a migration.

    Attributes:
        paths: Files, folders and globs.
        target: The target version of every file.
        output_dir: The folder for results, with the structure below ``paths``; ``None`` for beside and in place.
        backup: The suffix of the name of an old file that is kept beside the new one; ``None`` to keep none.
        verify: Whether a file is migrated only if the old and the new program are proven equivalent.
        seed: The seed for drawing inputs if both programs are run.
        timeout: The limit in seconds of each of these runs; ``None`` for the default.
        force: Whether a result may replace another file at its destination.
        exclude: Globs of files and folders to leave out.
        allow_other_dialects: Whether programs that are not artifacts may keep ops of other dialects.
        legalize: Whether constructs that no artifact can contain are rewritten in such programs.
        provider: The bindings to use if they are needed.
        trusted: Whether MLIR may parse bytes directly, and not in a child process first.
        consumers: The releases that the target names. If they include jax or jaxlib, jax.export files that they refuse
            are not migrated.
        follow: Whether files are migrated to which links in folders lead.
        follow_outside: Whether they are also if they are outside of ``paths``.
        expand: Whether features newer than the target are rewritten, with the same results.
        allow_relaxed: The features that are also rewritten with something given up.
        allow_signature_change: Whether that may change the types of arguments and results.
        confirm_with: The real releases that must read a result before it is written, and what is at the target already.
    """

    paths: tuple[str, ...]
    target: Version
    output_dir: str | None = None
    backup: str | None = None
    verify: bool = False
    seed: int = 0
    force: bool = False
    exclude: tuple[str, ...] = ()
    allow_other_dialects: bool = False
    legalize: bool = True
    provider: str | None = None
    trusted: bool = False
    consumers: tuple[Release, ...] = ()
    timeout: float | None = None
    follow: bool = True
    follow_outside: bool = False
    expand: bool = False
    allow_relaxed: tuple[str, ...] = ()
    allow_signature_change: bool = False
    confirm_with: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # The URL of a file is its path.
        object.__setattr__(self, "paths", tuple(map(plain_path, self.paths)))
        if self.output_dir is not None:
            object.__setattr__(self, "output_dir", plain_path(self.output_dir))

    def pinned(self) -> dict[str, object]:
        """Return the settings that must not change when an interrupted migration is resumed, as a JSON object."""
        return {
            "PATH": [_absolute(each) for each in self.paths],
            "target": str(self.target),
            "output-dir": self.output_dir and _absolute(self.output_dir),
            "backup": self.backup,
            "verify": self.verify,
            "seed": self.seed,
            "force": self.force,
            "exclude": list(self.exclude),
            "allow-other-dialects": self.allow_other_dialects,
            "legalize": self.legalize,
            "provider": self.provider,
            "consumers": [str(each) for each in self.consumers],
            "follow": self.follow,
            "follow-outside": self.follow_outside,
            "expand": self.expand,
            "allow-relaxed": sorted(self.allow_relaxed),
            "allow-signature-change": self.allow_signature_change,
            "confirm-with": list(self.confirm_with),
        }


def _absolute(path: str) -> str:
    return path if is_url(path) else str(Path(path).absolute())


@dataclass(frozen=True, slots=True)
class Proof:
    """The outcome of comparing two programs.

    Attributes:
        verdict: ``same program`` if the same would run for both; ``same results`` if both were run and returned the
            same within the tolerance; ``other results`` if they did not; ``unknown`` if they cannot be run.
        reason: The numbers, or the reason why there are none.
    """

    verdict: Literal["same program", "same results", "other results", "unknown"]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program of the store, opened once for all that is done with it.

    Attributes:
        name: Its name in messages.
        kind: Its kind.
        data: Its bytes.
        opened: The artifact, or the container of a jax.export file; ``None`` for a program of another kind.
        version: The version that was read, of an object in a store.
    """

    name: str
    kind: Kind
    data: Buffer
    opened: Artifact | JaxContainer | None
    version: ObjectStamp | None = None

    @classmethod
    def of(cls, name: str, kind: Kind, data: Buffer, version: ObjectStamp | None = None) -> Self:
        """Return the program in the bytes of a file.

        Raises:
            MalformedArtifactError: If it is a damaged artifact or jax.export file.
        """
        if kind is Kind.JAX_EXPORT:
            return cls(name, kind, data, JaxContainer(data, name=name), version)
        return cls(name, kind, data, Artifact(data, name=name) if kind is Kind.PORTABLE_ARTIFACT else None, version)

    @property
    def artifacts(self) -> Sequence[Artifact]:
        """The artifacts in it."""
        if isinstance(self.opened, JaxContainer):
            return self.opened.artifacts
        return () if self.opened is None else (self.opened,)


@dataclass(frozen=True, slots=True)
class Tools:
    """The operations on one program. All can be pickled, because they are called in other processes.

    Attributes:
        move: Returns a program at the target version.
        blocking: Returns the findings that prevent the migration of a program, and others.
        prove: Compares a program with the one that :attr:`move` returned for it.
        refused: Returns the findings of the real releases that do not read artifacts at the target version.
    """

    move: Callable[[StoredProgram, MigrationSettings], Artifact | JaxContainer]
    blocking: Callable[[StoredProgram, MigrationSettings], Sequence[Finding]]
    prove: Callable[[StoredProgram, Artifact | JaxContainer, MigrationSettings], Proof]
    refused: Callable[[Sequence[Artifact], MigrationSettings], Sequence[Finding]]
