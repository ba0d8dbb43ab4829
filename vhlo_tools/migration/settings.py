"""What a migration is asked to do, and the functions that do it to one file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vhlo_tools.artifact import Artifact, Buffer, JaxContainer, Kind
from vhlo_tools.findings import Finding
from vhlo_tools.version import Version

__all__ = ["Proof", "Settings", "Tools"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a migration is asked to do.

    Attributes:
        paths: Files, folders and globs.
        target: The version that every file is brought to.
        output_dir: Where results are written, as the files stand below ``paths``; ``None`` for beside and in place.
        backup: What the name of an old file ends with that is kept beside the new one; ``None`` to keep none.
        verify: Whether a file is moved only if old and new were shown to compute the same.
        seed: What inputs are drawn from where both are run.
        force: Whether a result may replace another file that stands where it shall be.
        exclude: Globs of files and folders that are left out.
        allow_other_dialects: Whether programs that are no artifacts yet may keep ops of other dialects.
        legalize: Whether what no artifact can hold is rewritten in them.
        provider: The bindings to use where they are needed.
        trusted: Whether MLIR may parse bytes at once, and not in a child process first.
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

    def pinned(self) -> dict[str, object]:
        """Return what must stay the same when an interrupted migration goes on, as JSON has it."""
        return {
            "PATH": [str(Path(each).absolute()) for each in self.paths],
            "target": str(self.target),
            "output-dir": self.output_dir and str(Path(self.output_dir).absolute()),
            "backup": self.backup,
            "verify": self.verify,
            "seed": self.seed,
            "force": self.force,
            "exclude": list(self.exclude),
            "allow-other-dialects": self.allow_other_dialects,
            "legalize": self.legalize,
            "provider": self.provider,
        }


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether two programs compute the same.

    Attributes:
        verdict: ``same program`` if what would run is the same for both; ``same results`` if both were run and gave the
            same within the tolerance; ``other results`` if they did not; ``unknown`` if they cannot be run.
        reason: The numbers, or why there are none.
    """

    verdict: Literal["same program", "same results", "other results", "unknown"]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Tools:
    """The functions that do the work on one program. All have a pickle, for they are called in other processes.

    Attributes:
        move: Returns a program at the target; given its bytes, its kind, its name and the settings.
        blocking: Returns the findings that stand in the way of that, and others; given the same.
        prove: Tells whether two programs compute the same; given the kind and the bytes of the old one, the new one,
            the name and the settings.
    """

    move: Callable[[Buffer, Kind, str, Settings], Artifact | JaxContainer]
    blocking: Callable[[Buffer, Kind, str, Settings], Sequence[Finding]]
    prove: Callable[[Kind, Buffer, Artifact | JaxContainer, str, Settings], Proof]
