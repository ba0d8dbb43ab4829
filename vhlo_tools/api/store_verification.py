"""Verification of stores, by proofs where programs are equal."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Final

from vhlo_tools.api.conversion import strip
from vhlo_tools.api.differences import diff
from vhlo_tools.api.frontends import as_program
from vhlo_tools.api.verification import verify
from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import (
    EngineError,
    InvalidProgramError,
    MalformedArtifactError,
    ProviderError,
    VerificationError,
    VhloToolsError,
)
from vhlo_tools.files import Buffer, digest_of, is_url, place, read_bytes, recognise
from vhlo_tools.records import dataclass
from vhlo_tools.stores import (
    AnyExecutor,
    EquivalenceResult,
    Pair,
    PairRecord,
    Pairs,
    PairStatus,
    StoredProgram,
    Workers,
    in_batches,
    map_ordered,
)

if TYPE_CHECKING:
    from vhlo_tools.api.running import EngineChoice
    from vhlo_tools.program import ProgramSource
    from vhlo_tools.verification import Drawing, Tolerance

# Proofs that two programs are equivalent: without running them if possible, and otherwise by running both

_Names = tuple[str, str]

#: The fields of a prover that say how programs are run.
_OF_RUNS: Final = ("seed", "rounds", "drawing", "tolerance", "engine", "timeout", "provider", "trusted")
# From best to worst.
_VERDICTS: Final = ("same program", "same results", "unknown", "other results")


@dataclass(frozen=True, slots=True)
class EquivalenceChecker:
    """Compares pairs of programs, in any process."""

    seed: int = 0  # for drawing inputs
    rounds: int | None = None  # as for vhlo_tools.verify, as are the next three
    drawing: Drawing | None = None
    tolerance: Tolerance | None = None
    engine: EngineChoice = "auto"
    timeout: float | None = None  # of each run, in seconds; None for the default
    legalize: bool = True  # constructs that no artifact can contain
    provider: str | None = None
    trusted: bool = False  # MLIR may parse bytes directly, and not in a child process first

    def prove(self, before: StoredProgram, after: StoredProgram, names: _Names) -> EquivalenceResult:
        """Compare two programs, for jax.export files each pair of artifacts; return the worst proof."""
        old: Sequence[Artifact | Buffer] = before.artifacts or [before.data]
        new: Sequence[Artifact | Buffer] = after.artifacts or [after.data]
        if len(old) != len(new):
            reason = f"{names[0]} has {len(old)} artifacts, a function and its derivatives, and {names[1]} {len(new)}"
            return EquivalenceResult("other results", reason)
        proofs = [self._pair(one, other, names) for one, other in zip(old, new, strict=True)]
        return max(proofs, key=lambda proof: _VERDICTS.index(proof.verdict))

    def _pair(self, before: Artifact | Buffer, after: Artifact | Buffer, names: _Names) -> EquivalenceResult:
        if self._is_same_program(before, after, names):
            return EquivalenceResult("same program")
        try:
            report = verify(before, after, names=names, **{each: getattr(self, each) for each in _OF_RUNS})
        except VerificationError as error:
            return EquivalenceResult("other results", str(error))
        except (EngineError, MalformedArtifactError, ProviderError) as error:
            return EquivalenceResult("unknown", f"they are not the same program, and cannot be executed: {error}")
        return EquivalenceResult("same results" if report.passed else "other results", str(report))

    def _is_same_program(self, before: Artifact | Buffer, after: Artifact | Buffer, names: _Names) -> bool:
        """Whether the library reads the same program from both, ignoring locations, so that the same would run.

        Artifacts that are too new for the library are compared on their bytes, at both versions.
        """
        try:
            if self._digest(before, names[0]) == self._digest(after, names[1]):
                return True
        except (MalformedArtifactError, ProviderError):
            if not isinstance(before, Artifact) or not isinstance(after, Artifact):
                raise
            back = after.retargeted(before.version)
            return not (self._differ(before, after, names) or self._differ(before, back, names))
        return not self._differ(before, after, names)

    def _differ(self, before: Artifact | Buffer, after: Artifact | Buffer, names: _Names) -> bool:
        found = diff(before, after, ignore=("version",), names=names, provider=self.provider, trusted=self.trusted)
        return bool(found)

    def _digest(self, program: Artifact | Buffer, name: str) -> bytes:
        """Digest the program that the library reads, rewritten at its newest version without locations."""
        from vhlo_tools.conversion import newest_artifact
        from vhlo_tools.program import load_program

        source: ProgramSource = as_program(program, name=name, provider=self.provider)
        loaded = load_program(source, name=name, provider=self.provider, trusted=self.trusted)
        written = newest_artifact(loaded, allow_other_dialects=True, legalize=self.legalize)
        return hashlib.sha256(bytes(strip(written))).digest()


# Verification that the programs of two stores compute the same, pair by pair

_CRASHED: Final = "the process that compared them crashed: one of them may crash the reader, or need too much memory"
_STATUSES: Final[dict[str, PairStatus]] = {
    "same program": "same",
    "same results": "same",
    "other results": "mismatch",
    "unknown": "unverified",
}


@dataclass(frozen=True, slots=True)
class _Task:
    """A pair to compare, with the places of its files in any working directory."""

    pair: Pair
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Compares pairs of programs, in any process; an error in one does not affect the others."""

    prover: EquivalenceChecker

    def __call__(self, tasks: Sequence[_Task]) -> list[PairRecord]:
        return [self._one(task) for task in tasks]

    def _one(self, task: _Task) -> PairRecord:
        started = time.perf_counter()
        record = _recorded(task.pair, "unreadable")
        try:
            record = self._compared(task, record)
        except (MalformedArtifactError, InvalidProgramError) as error:
            record = replace(record, reason=str(error))
        except VhloToolsError as error:
            record = replace(record, status="unverified", reason=f"they cannot be compared: {error}")
        except MemoryError:
            record = replace(record, status="failed", reason="there is not enough memory to compare them")
        except Exception as error:  # an error in one pair must not stop the others
            reason = f"an internal error of vhlo_tools, please report it: {type(error).__name__}: {error}"
            record = replace(record, status="failed", reason=reason)
        return replace(record, seconds=time.perf_counter() - started)

    def _compared(self, task: _Task, record: PairRecord) -> PairRecord:
        pair = task.pair
        if task.after is None:
            return replace(record, status="missing")
        if task.before is None:
            return replace(record, status="added")
        try:
            name = pair.before
            before = _opened(task.before, name)
            name = pair.after
            after = _opened(task.after, name)
            digests = digest_of(before.data).hex(), digest_of(after.data).hex()
        except OSError as error:
            return replace(record, reason=f"{name}: {error.strerror or error}")
        one, other = before.opened, after.opened
        record = replace(
            record,
            kind=str(before.kind),
            version=one.version if one is not None else None,
            new_version=other.version if other is not None else None,
            size=len(before.data),
            new_size=len(after.data),
            digest=digests[0],
            new_digest=digests[1],
        )
        if digests[0] == digests[1]:
            return replace(record, status="same", verified="same bytes")
        proof = self.prover.prove(before, after, (before.name, after.name))
        status = _STATUSES[proof.verdict]
        return replace(record, status=status, verified=proof.verdict if status == "same" else None, reason=proof.reason)


def _recorded(pair: Pair, status: PairStatus, reason: str | None = None) -> PairRecord:
    """Return the record of a pair from its listing alone."""
    return PairRecord(
        pair.path, status, pair.before, pair.after, size=pair.old_size, new_size=pair.new_size, reason=reason
    )


def _opened(path: str, name: str | None) -> StoredProgram:
    data = read_bytes(place(path))
    return StoredProgram.of(name or path, recognise(data, path), data)


class StoreVerification:
    """Comparison of the programs of two stores: folders, prefixes of URLs, or globs."""

    def __init__(self, before: str, after: str, prover: EquivalenceChecker, exclude: Sequence[str] = ()) -> None:
        self.pairs: Pairs = Pairs(before, after, tuple(exclude))
        self._work = _Comparison(prover)

    def records(self, workers: Workers) -> Iterator[PairRecord]:
        # Other processes may have another working directory.
        tasks = (_Task(each, _absolute(each.before), _absolute(each.after)) for each in self.pairs)
        batches = in_batches(tasks, workers, size_of=lambda task: task.pair.size, found=lambda: self.pairs.number)
        for task, record in map_ordered(workers, self._work, batches):
            yield record or _recorded(task.pair, "failed", _CRASHED)


def _absolute(path: str | None) -> str | None:
    return path if path is None or is_url(path) else os.path.abspath(path)  # noqa: PTH100 - keeps links


def verify_stores(
    before: str | PathLike[str],
    after: str | PathLike[str],
    *,
    executor: AnyExecutor | None = None,
    jobs: int | None = None,
    exclude: Sequence[str] = (),
    seed: int = 0,
    rounds: int | None = None,
    drawing: Drawing | None = None,
    tolerance: Tolerance | None = None,
    engine: EngineChoice = "auto",
    timeout: float | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> Iterator[PairRecord]:
    """Compare the programs of two stores, such as a store and what a migration wrote from it to another folder.

    Programs are paired by their paths relative to the stores; ``NAME.mlirbc``, which a migration writes for a program
    that is no artifact, is paired with that program. Two are the same if their bytes are, or if the library reads the
    same program from both; otherwise both are run, as by :func:`verify`. Of jax.export files, the artifacts are
    compared. The work proceeds as the returned iterator is consumed, and memory does not grow with the stores.

    >>> import vhlo_tools as vt
    >>> for record in vt.verify_stores("store", "moved", jobs=4):  # doctest: +SKIP
    ...     if not record.ok:
    ...         print(record.path, record.status, record.reason)

    Args:
        before: The store with the expected programs: a folder, a prefix of URLs, or a glob.
        after: The store with the programs to compare.
        executor: The executor of the work, as for :func:`migrate`.
        jobs: The number of processes, as for :func:`migrate`.
        exclude: Globs of files and folders to leave out.
        seed: The seed for drawing inputs of programs that are run, as for :func:`verify`, as are the next four.
        rounds: The number of sets of inputs to draw.
        drawing: The settings for drawing inputs.
        tolerance: The maximum distance between floats.
        engine: The engine for both programs.
        timeout: The limit in seconds of each run, as for :func:`run`.
        provider: The bindings to use, by default the installed ones.
        trusted: Whether MLIR may parse bytes directly in this process, as for :func:`serialize`.

    Yields:
        The record of each pair, in the order of the second store; then those that only the first store has.

    Raises:
        MigrationError: If one of the paths is not a store, or has no programs.
        WorkerError: If no process can be started, or the cluster cannot be used.
    """
    prover = EquivalenceChecker(seed, rounds, drawing, tolerance, engine, timeout, provider=provider, trusted=trusted)
    verification = StoreVerification(path_text(before), path_text(after), prover, exclude)

    def records() -> Iterator[PairRecord]:
        with Workers(executor, jobs) as workers:
            yield from verification.records(workers)

    return records()


def path_text(path: str | PathLike[str]) -> str:
    # A UPath is no PathLike.
    return fspath(path) if isinstance(path, str | PathLike) else str(place(path))
