"""Confirmation of predictions by releases that read the bytes."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.artifact import Artifact, other_dialects
from vhlo_tools.compat import nesting_findings
from vhlo_tools.errors import InvalidProgramError, ReleaseEnvironmentError, SettingsError
from vhlo_tools.execution import Executable
from vhlo_tools.findings import Finding
from vhlo_tools.records import dataclass
from vhlo_tools.releases.compiling import Compilation, compilation_of
from vhlo_tools.releases.environments import PackageRelease
from vhlo_tools.releases.process import Answer, ReleaseProcess
from vhlo_tools.spec import known_jax_releases, known_releases, newest_version
from vhlo_tools.verification import Drawing, draw_inputs
from vhlo_tools.version import Version, VhloToolsError

# Predict by the specification whether a release writes a program, and whether it reads an artifact


@dataclass(frozen=True, slots=True)
class Prediction:
    positive: bool | None  # the release can; None if the specification cannot say
    reasons: tuple[str, ...] = ()  # why not, or why it cannot say


def specified_version(release: PackageRelease) -> Version | None:
    """The version in ``dialect_specs/releases.toml``."""
    package, version = release.package, str(release.version)
    if package == "jax":
        # jax reads what its jaxlib does.
        package, version = "jaxlib", next((each.jaxlib for each in known_jax_releases() if each.release == version), "")
    if package == "tensorflow-cpu":
        package = "tensorflow"
    found = (each for each in known_releases() if (each.package, each.release) == (package, version))
    return next((each.stablehlo for each in found), None)


def predict_writing(program: Artifact, version: Version | None) -> Prediction:
    if version is None:
        return Prediction(None, ("its StableHLO version is not known",))
    if dialects := other_dialects(program):
        return Prediction(None, (f"it depends on other dialects: {', '.join(sorted(dialects))}",))
    if version.minor_release > newest_version():
        return Prediction(None, (f"StableHLO {version} is newer than the specification",))
    reasons = _errors(program.requirements().findings(version))
    return Prediction(not reasons, reasons)


def predict_reading(artifact: Artifact, version: Version | None, packages: Mapping[str, str] = {}) -> Prediction:
    if version is None:
        return Prediction(None, ("its StableHLO version is not known",))
    consumers = [each for each in known_releases() if packages.get(each.package) == each.release]
    nested = nesting_findings(artifact.file, consumers, artifact.name)
    reasons = _errors([*artifact.requirements().reader_findings(version), *nested])
    if dialects := other_dialects(artifact):
        # They promise nothing: some are not known to every release, and bytes of some are read by their own only.
        return Prediction(None, (*reasons, f"it depends on other dialects: {', '.join(sorted(dialects))}"))
    return Prediction(not reasons, reasons)


def _errors(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.message for each in findings if each.level == "error"))


# Programs for releases: an artifact, inputs, and the results that are expected

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Evaluation:
    inputs: tuple[Array, ...]  # drawn at random
    results: tuple[Array, ...]  # as vhlo_tools.run gives them


@dataclass(frozen=True, slots=True)
class MatrixProgram:
    name: str
    artifact: Artifact  # at the oldest version that has all of it
    evaluation: Evaluation | None  # None if the program is not run
    reason: str = ""  # why it is not run


def evaluate(executable: Executable, drawing: Drawing) -> Evaluation:
    """Programs that take or give something other than arrays are refused."""
    inputs = draw_inputs(executable, drawing)
    results = executable.run(inputs)
    return Evaluation(_plain(inputs, "takes"), _plain(results, "gives"))


def _plain(values: Sequence[Any], verb: str) -> tuple[Array, ...]:
    if not all(isinstance(value, np.ndarray | np.generic) for value in values):
        raise VhloToolsError(f"it {verb} tuples or tokens, which are not passed to releases")
    return tuple(np.asarray(value) for value in values)


# Confirmations: a real release reads an artifact, in a process that stays for the next one

#: Of this process, by release. Each ends with this process: its requests end, and it with them.
_processes: dict[str, ReleaseProcess] = {}
_starting: Final = threading.Lock()

_TIMEOUT: Final = 120.0


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Whether a real release reads an artifact.

    Attributes:
        release: The release.
        artifact: The name of the artifact.
        read: Whether it reads it.
        words: What it says otherwise, or what it died of.
        seconds: How long it took.
    """

    release: str
    artifact: str
    read: bool
    words: str = ""
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return self.read

    def __str__(self) -> str:
        said = f": {self.words}" if self.words else ""
        return f"{self.release} {'reads' if self.read else 'does not read'} {self.artifact}{said}"


def confirm_by(release: str, artifact: Artifact) -> Confirmation:
    """The release, such as ``jaxlib==0.4.31``, has two minutes to answer."""
    answer = _asked(release, artifact, process_of(release).read(bytes(artifact)))
    return Confirmation(release, artifact.name, answer.succeeded, answer.words, answer.seconds)


def _asked(release: str, artifact: Artifact, answer: Answer, verb: str = "read") -> Answer:
    if answer.failed == "timeout":
        raise ReleaseEnvironmentError(f"{release} does not {verb} {artifact.name} to the end: {answer.words}")
    if answer.failed == "crash" and "SIGKILL" in answer.words:
        # Nothing in a release kills it so: the system did, for want of memory, or a person.
        past = "read" if verb == "read" else f"{verb}d"
        raise ReleaseEnvironmentError(
            f"{release} was killed while it {past} {artifact.name}: it may need more memory than there is; try again"
        )
    return answer


def compile_by(release: str, artifact: Artifact) -> Compilation:
    """As for :func:`vhlo_tools.compile_for`."""
    process = process_of(release)
    if process.release.kind.devices is None:
        raise ReleaseEnvironmentError(
            f"{release} is no compiler of accelerators: expected a release of libtpu, for one"
        )
    answer = _asked(release, artifact, process.compile(bytes(artifact), optimized=True), "compile")
    if answer.failed:
        kind = ReleaseEnvironmentError if answer.failed == "crash" else InvalidProgramError
        raise kind(f"{release} does not compile {artifact.name}: {answer.words}")
    return compilation_of(release, artifact, answer)


def _releases_for(releases: Sequence[str], version: Version) -> tuple[str, ...]:
    """Releases of the version, and newer ones."""
    found = ((release, specified_version(PackageRelease.parse(release))) for release in releases)
    return tuple(release for release, own in found if own is None or own.minor_release >= version.minor_release)


def refuse_idle_releases(releases: Sequence[str], versions: Sequence[Version]) -> None:
    """A release that is older than all versions would confirm nothing; without versions, nothing is refused."""
    asked = {each for version in versions for each in _releases_for(releases, version)}
    if idle := [each for each in releases if versions and each not in asked]:
        raise SettingsError(
            f"confirm-with: {idle[0]} is older than every target, and would be asked nothing: name a release of a "
            f"target's version or a newer one, or an older target"
        )


_REPORT: Final = (
    "write it for an older version, or leave out what the release refuses; and report it, for the specification is "
    "wrong or the release has a bug"
)


def refusals(
    releases: Sequence[str], artifact: Artifact, version: Version, most_memory: int | None = None
) -> list[Finding]:
    """Those older than ``version`` are not asked; those with a device compile.

    An error for each that does not read or compile the artifact, or needs more than ``most_memory`` bytes on a device;
    a warning for each alias that it does not keep.
    """
    found: list[Finding] = []
    for release in _releases_for(releases, version):
        if PackageRelease.parse(release).device:
            found += _on_device(release, artifact, version, most_memory)
        elif not (each := confirm_by(release, artifact)).read:
            what = f"does not read it, although the specification says so: {each.words}"
            found.append(_refusal(release, what, version, _REPORT))
    return found


def _refusal(release: str, what: str, version: Version, remedy: str) -> Finding:
    return Finding("refused_by_release", "error", "release", f"{release} {what}", target=version, remedy=remedy)


def _on_device(release: str, artifact: Artifact, version: Version, most_memory: int | None) -> Iterator[Finding]:
    answer = _asked(release, artifact, process_of(release).compile(bytes(artifact), optimized=True), "compile")
    if answer.failed:
        remedy = "leave out what the compiler refuses; a release that is named without a device only reads the program"
        yield _refusal(release, f"does not compile it: {answer.words}", version, remedy)
        return
    compiled = compilation_of(release, artifact, answer)
    for each in compiled.lost:
        yield Finding(
            feature="alias_dropped_by_compiler",
            level="warning",
            kind="alias",
            message=f"{release} does not keep {each}: {each.reason}",
            target=version,
            remedy="alias an output that lies in memory as the parameter does, or remove the alias: the caller loses "
            "the buffer without a benefit",
        )
    if most_memory is None:
        return
    needed = compiled.device_memory
    if needed is None:
        raise ReleaseEnvironmentError(f"{release} does not say how much memory a program needs: name a newer one")
    if needed > most_memory:
        yield Finding(
            feature="device_memory",
            level="error",
            kind="release",
            message=f"{release} needs {needed:,} bytes on each device for it, of at most {most_memory:,}",
            target=version,
            remedy="donate inputs that outputs may be written over, make the program smaller, or compile it for more "
            "devices",
        )


def process_of(release: str) -> ReleaseProcess:
    with _starting:
        if release not in _processes:
            process = ReleaseProcess(release, timeout=_TIMEOUT)
            try:
                process.describe()  # a release that does not start refuses no artifact
            except ReleaseEnvironmentError:
                process.close()
                raise
            atexit.register(process.close)
            _processes[release] = process
    return _processes[release]
