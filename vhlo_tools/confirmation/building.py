"""Build a matrix: every producer writes every program, and every consumer reads and runs the artifacts.

The specification is asked first. Each release works in a process of its own, one after the other or several at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from vhlo_tools.artifact import Artifact
from vhlo_tools.confirmation.cells import Cell, Matrix, Outcome, ReleaseFacts
from vhlo_tools.confirmation.predicting import Prediction, predict_reading, predict_writing, specified_version
from vhlo_tools.confirmation.programs import MatrixProgram
from vhlo_tools.environments import Answer, ReleaseProcess, Say, Step, pack_arrays, unpack_arrays
from vhlo_tools.errors import DowngradeError, ReleaseEnvironmentError, VhloToolsError
from vhlo_tools.records import dataclass
from vhlo_tools.spec import newest_version
from vhlo_tools.verification import Comparison, Tolerance, compare_outputs
from vhlo_tools.version import Version

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
    answer = process.write([_form_for(program.artifact, version)], str(wanted), "artifact")
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
    prediction = predict_reading(artifact, facts.stablehlo)
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
    return ("differs" if failed else "equal"), True, _difference(failed), seconds


def _form_for(program: Artifact, version: Version) -> bytes:
    """The newest form that a release of the version should know; the program as it is if there is none."""
    try:
        return bytes(program.retargeted(min(version.minor_release, newest_version())))
    except DowngradeError:
        return bytes(program)


def _difference(failed: Sequence[Comparison]) -> str:
    """The output that is farthest off, and the number of others."""
    if not failed:
        return ""
    worst = max(failed, key=lambda each: (each.mismatch is not None, each.max_relative))
    others = f"; {len(failed) - 1} other outputs differ too" if len(failed) > 1 else ""
    return f"{worst}{others}"


def _words(answer: Answer) -> str:
    return f"{answer.failed}: {answer.words}"
