"""The matrix of producers and consumers: its cells, and how they are filled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field
from functools import cached_property
from typing import Any, Final, Literal, get_args

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import DowngradeError, ReleaseEnvironmentError
from vhlo_tools.records import dataclass
from vhlo_tools.releases.confirming import (
    MatrixProgram,
    Prediction,
    predict_reading,
    predict_writing,
    specified_version,
)
from vhlo_tools.releases.environments import Say
from vhlo_tools.releases.inside.arrays import pack_arrays, unpack_arrays
from vhlo_tools.releases.process import Answer, ReleaseProcess, Step
from vhlo_tools.spec import newest_version
from vhlo_tools.stores import Column, ListOf, Table
from vhlo_tools.verification import Tolerance, compare_outputs
from vhlo_tools.version import Version, VhloToolsError

# Cells of a matrix: a program that one release wrote, and the outcome on another

#: ``equal``: it ran, and its results are within the tolerance of the expected ones; ``differs``: they are not;
#: ``read``: it was read and not run; ``refused``: it was not read; ``crash`` and ``timeout``: the release died of it,
#: or did not end, when it read or ran it; ``unwritten``: there was nothing to read, for it was not written.
Outcome = Literal["equal", "differs", "read", "refused", "crash", "timeout", "unwritten"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
_PHRASES: Final[Mapping[Outcome, str]] = {
    "equal": "reads it, and computes the same",
    "read": "reads it",
    "differs": "computes other results",
    "refused": "refuses it",
    "crash": "died of it",
    "timeout": "does not end",
}


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """A release in a matrix.

    Attributes:
        name: The release, such as ``jaxlib==0.4.31``.
        stablehlo: Its StableHLO version: as the specification has it, otherwise as it says; ``None`` if neither does.
        said: The version that it says itself, if it does.
        packages: The versions of the packages in its environment.
    """

    name: str
    stablehlo: Version | None
    said: Version | None
    packages: Mapping[str, str]

    @property
    def contradicted(self) -> bool:
        """Whether the release says another version than the specification has of it."""
        return self.said is not None and self.stablehlo != self.said

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Cell:
    """What a consumer made of a program as a producer wrote it.

    Attributes:
        program: The program.
        producer: The release that wrote it.
        consumer: The release that read it.
        version: The StableHLO version that it was written for; ``None`` if it was not written.
        predicted: Whether the specification says that the consumer reads it, or, of what was not written, that the
            producer can write it; ``None`` if it cannot say.
        reasons: Why the specification says that it is not read, or cannot say.
        outcome: What happened.
        was_read: Whether the consumer read it, whatever happened when it ran it.
        words: What the release said, what it died of, or how the results differ.
        seconds: How long the consumer took.
    """

    program: str
    producer: str
    consumer: str
    version: Version | None
    predicted: bool | None
    reasons: tuple[str, ...]
    outcome: Outcome
    was_read: bool
    words: str = ""
    seconds: float = 0.0

    @property
    def confirmed(self) -> bool | None:
        """Whether what happened was predicted; ``None`` if nothing was."""
        return None if self.predicted is None else self.predicted == self.was_read

    def __str__(self) -> str:
        said = f": {self.words}" if self.words else ""
        reasons = "; ".join(self.reasons)
        if self.outcome == "unwritten":
            can = {True: "can write it", False: f"cannot write it: {reasons}", None: f"may not write it: {reasons}"}
            expected = f"the specification says that {self.producer} {can[self.predicted]}"
            return f"{self.program}: {expected}; {self.producer} did not write it{said}"
        expected = ""
        if self.confirmed is False:
            reads = "reads it" if self.predicted else f"does not read it ({reasons})"
            expected = f"the specification says that {self.consumer} {reads}; but "
        first = "reads it, and " if self.was_read and self.outcome in ("crash", "timeout") else ""
        found = f"{self.consumer} {first}{_PHRASES[self.outcome]}{said}"
        return f"{self.program}, written by {self.producer} for StableHLO {self.version}: {expected}{found}"


_COLUMNS: Final[tuple[Column[Cell], ...]] = (
    Column("program", "text", "program", lambda cell: cell.program),
    Column("producer", "text", "release that wrote it", lambda cell: cell.producer),
    Column("consumer", "text", "release that read it", lambda cell: cell.consumer),
    Column("version", "text", "StableHLO version that it was written for", lambda cell: cell.version),
    Column("predicted", "flag", "whether the specification says that it is read", lambda cell: cell.predicted),
    Column("reasons", ListOf("text"), "why the specification says that it is not", lambda cell: list(cell.reasons)),
    Column("outcome", "text", ", ".join(OUTCOMES), lambda cell: cell.outcome),
    Column("read", "flag", "whether the consumer read it", lambda cell: cell.was_read),
    Column("confirmed", "flag", "whether what happened was predicted", lambda cell: cell.confirmed),
    Column("words", "text", "what the release said, or how the results differ", lambda cell: cell.words),
    Column("seconds", "seconds", "seconds that the consumer took", lambda cell: cell.seconds),
)

#: A matrix as a table, with a row for each cell.
MATRIX_TABLE: Final = Table("matrix", _COLUMNS)


@dataclass(frozen=True)
class Matrix:
    """What releases made of the programs that releases wrote.

    Attributes:
        producers: The releases that wrote, in the order given.
        consumers: The releases that read.
        programs: The names of the programs.
        cells: A cell for each of them, by producer, program and consumer.
    """

    producers: tuple[ReleaseFacts, ...]
    consumers: tuple[ReleaseFacts, ...]
    programs: tuple[str, ...]
    cells: tuple[Cell, ...] = field(repr=False)

    @cached_property
    def disagreements(self) -> tuple[Cell, ...]:
        """The cells in which the specification was wrong; of what a producer did not write, one for all consumers."""
        once: dict[tuple[str, str, str], Cell] = {}
        for cell in self.cells:
            if cell.confirmed is False:
                consumer = "" if cell.outcome == "unwritten" else cell.consumer
                once.setdefault((cell.producer, cell.program, consumer), cell)
        return tuple(once.values())

    @cached_property
    def differing(self) -> tuple[Cell, ...]:
        """The cells in which the results were not the expected ones."""
        return tuple(cell for cell in self.cells if cell.outcome == "differs")

    @property
    def passed(self) -> bool:
        """Whether every prediction was confirmed, and all results were the expected ones."""
        return not self.disagreements and not self.differing and not self.contradicted

    @property
    def contradicted(self) -> tuple[ReleaseFacts, ...]:
        """The releases that say another StableHLO version than the specification has of them."""
        facts = {each.name: each for each in (*self.producers, *self.consumers)}
        return tuple(each for each in facts.values() if each.contradicted)

    def counts(self, producer: str, consumer: str) -> Counter[Outcome]:
        """Return how often each outcome occurred for a pair of releases."""
        return self._counts[producer, consumer]

    def read(self, producer: str, consumer: str) -> int:
        """Return how many programs a consumer read of a producer, whatever happened when it ran them."""
        return self._read[producer, consumer]

    @cached_property
    def _read(self) -> Counter[tuple[str, str]]:
        return Counter((cell.producer, cell.consumer) for cell in self.cells if cell.was_read)

    @cached_property
    def _counts(self) -> defaultdict[tuple[str, str], Counter[Outcome]]:
        found: defaultdict[tuple[str, str], Counter[Outcome]] = defaultdict(Counter)
        for cell in self.cells:
            found[cell.producer, cell.consumer][cell.outcome] += 1
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the matrix as a JSON object."""

        def facts(release: ReleaseFacts) -> dict[str, Any]:
            version = release.stablehlo
            return {"release": release.name, "stablehlo": version and str(version), "packages": dict(release.packages)}

        plain: Callable[[Any], Any] = lambda value: str(value) if isinstance(value, Version) else value  # noqa: E731
        return {
            "passed": self.passed,
            "producers": [facts(each) for each in self.producers],
            "consumers": [facts(each) for each in self.consumers],
            "programs": list(self.programs),
            "cells": [
                {column.name: plain(column.value(cell)) for column in MATRIX_TABLE.columns} for cell in self.cells
            ],
        }


# Build a matrix: every producer writes every program, and every consumer reads and runs the artifacts
#
# The specification is asked first. Each release works in a process of its own, one after the other or several at once.

#: Compilers of different years fuse and order sums differently: what they compute in floats differs by more than ulps.
DEFAULT_TOLERANCE: Final = Tolerance(ulp=4, relative=1e-4, absolute=1e-5)

#: What a failed step says of an artifact that was read: later steps follow the reading.
_OUTCOMES: Final[dict[Step, Outcome]] = {
    "read": "refused",
    "write": "refused",
    "parse": "read",
    "compile": "read",
    "run": "read",
    "crash": "crash",
    "timeout": "timeout",
}


@dataclass(frozen=True, slots=True)
class Written:
    program: MatrixProgram
    producer: str
    artifact: Artifact | None  # None if it wrote none
    prediction: Prediction  # whether it can write the program, by the specification
    words: str = ""  # of the producer, if there is no artifact


def build_matrix(
    programs: Sequence[MatrixProgram],
    producers: Sequence[str],
    consumers: Sequence[str],
    *,
    target: Version | None = None,
    tolerance: Tolerance | None = None,
    run: bool = True,
    jobs: int = 1,
    timeout: float = 120.0,
    say: Say,
) -> Matrix:
    """``target`` limits the version to write for, by default the producer's own; ``timeout`` is per artifact."""
    tolerance = tolerance or DEFAULT_TOLERANCE

    team = _Team(say, timeout)

    def write(name: str) -> tuple[ReleaseFacts, list[Written]]:
        with team.member(name) as process:
            facts = facts_of(process)
            found = [written_by(process, facts, program, target) for program in programs]
        say(f"{name} wrote {sum(each.artifact is not None for each in found)} of {len(programs)} programs")
        return facts, found

    def read(name: str) -> tuple[ReleaseFacts, list[Cell]]:
        with team.member(name) as process:
            facts = facts_of(process)
            found = [read_by(process, facts, each, tolerance, run=run) for each in written]
        given = sum(cell.outcome != "unwritten" for cell in found)
        say(f"{name} read {sum(cell.was_read for cell in found)} of {given} artifacts")
        return facts, found

    with ThreadPoolExecutor(jobs) as pool, team:
        written_by_release = list(pool.map(write, producers))
        written = [each for _, found in written_by_release for each in found]
        read_by_release = list(pool.map(read, consumers))
    rows = zip(*(cells for _, cells in read_by_release), strict=True)
    return Matrix(
        tuple(facts for facts, _ in written_by_release),
        tuple(facts for facts, _ in read_by_release),
        tuple(program.name for program in programs),
        tuple(cell for row in rows for cell in row),
    )


class _Team:
    """Processes stop where the work ends early: after Ctrl-C, or if a release cannot be started."""

    def __init__(self, say: Say, timeout: float) -> None:
        self._say, self._timeout = say, timeout
        self._members: set[ReleaseProcess] = set()
        self._stopped = False

    @contextmanager
    def member(self, release: str) -> Iterator[ReleaseProcess]:
        with ReleaseProcess(release, self._say, timeout=self._timeout) as process:
            self._members.add(process)
            if self._stopped:
                process.stop()
            try:
                yield process
            finally:
                self._members.discard(process)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._stopped = True
            for process in tuple(self._members):
                process.stop()


def facts_of(process: ReleaseProcess) -> ReleaseFacts:
    """From the specification, and from the release itself."""
    about = process.describe()
    said = Version(about["stablehlo"]) if about["stablehlo"] else None
    specified = specified_version(process.release)
    return ReleaseFacts(str(process.release), specified or said, said, about["packages"])


def written_by(
    process: ReleaseProcess, facts: ReleaseFacts, program: MatrixProgram, target: Version | None = None
) -> Written:
    """The release gets the program as an artifact, in the newest form that it should know."""
    version = facts.said or facts.stablehlo
    if version is None or not process.release.kind.writes:
        raise ReleaseEnvironmentError(f"{facts} writes no artifacts: it can be a consumer only")
    prediction = predict_writing(program.artifact, facts.stablehlo)
    wanted = min(version, target) if target is not None else version
    try:
        # The newest form that a release of the version should know.
        form = program.artifact.retargeted(min(version.minor_release, newest_version()))
    except DowngradeError:
        form = program.artifact
    answer = process.write([bytes(form)], str(wanted), "artifact")
    if not answer.succeeded:
        return Written(program, facts.name, None, prediction, _words(answer))
    try:
        (data,) = answer.parts
        artifact = Artifact(data, name=f"{program.name} of {facts}")
        artifact.requirements()
    except (VhloToolsError, ValueError) as error:
        return Written(program, facts.name, None, prediction, f"what it wrote is no artifact: {error}")
    return Written(program, facts.name, artifact, prediction)


def read_by(
    process: ReleaseProcess, facts: ReleaseFacts, written: Written, tolerance: Tolerance, *, run: bool = True
) -> Cell:
    name, artifact = written.program.name, written.artifact
    if artifact is None:
        prediction = written.prediction
        cell = (name, written.producer, facts.name, None, prediction.positive, prediction.reasons)
        return Cell(*cell, "unwritten", False, written.words)
    prediction = predict_reading(artifact, facts.stablehlo, facts.packages)
    found = _outcome(process, written.program, artifact, tolerance, run=run)
    return Cell(name, written.producer, facts.name, artifact.version, prediction.positive, prediction.reasons, *found)


def _outcome(
    process: ReleaseProcess, program: MatrixProgram, artifact: Artifact, tolerance: Tolerance, *, run: bool
) -> tuple[Outcome, bool, str, float]:
    """The outcome, whether the artifact was read, what was said of it, and the seconds."""
    evaluation = program.evaluation if run else None
    read = process.read(bytes(artifact))
    if not read.succeeded or evaluation is None:
        outcome = _OUTCOMES[read.failed] if read.failed else "read"
        return outcome, read.succeeded, _words(read) if read.failed else program.reason, read.seconds
    options = {}
    if process.release.package.startswith("tensorflow"):
        # It needs the shapes of results before it reads the program.
        options["results"] = [[str(each.dtype), list(each.shape)] for each in evaluation.results]
    ran = process.run(bytes(artifact), pack_arrays(evaluation.inputs), **options)
    seconds = read.seconds + ran.seconds
    if ran.failed:
        return ("read" if ran.failed == "read" else _OUTCOMES[ran.failed]), True, _words(ran), seconds
    try:
        (archive,) = ran.parts
        results = tuple(unpack_arrays(archive))
    except ValueError as error:
        return "read", True, f"its results cannot be read: {error}", seconds
    failed = [each for each in compare_outputs(results, evaluation.results, tolerance) if not each.passed]
    if not failed:
        return "equal", True, "", seconds
    # The output that is farthest off, and the number of others.
    worst = max(failed, key=lambda each: (each.mismatch is not None, each.max_relative))
    others = f"; {len(failed) - 1} other outputs differ too" if len(failed) > 1 else ""
    return "differs", True, f"{worst}{others}", seconds


def _words(answer: Answer) -> str:
    return f"{answer.failed}: {answer.words}"
