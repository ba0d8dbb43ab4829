"""Findings for upstream: the data in ``tests/findings``, and runs of their reproducers on releases.

A finding is *reproduced* if its reproducer ends as the data says, *mended* if it ends as it should, and *changed* if it
does neither.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal, get_args

from packaging.requirements import Requirement
from packaging.version import Version

from support.release_environments import run_in
from vhlo_tools.releases import clean_environment

Outcome = Literal["reproduced", "mended", "changed"]

FOLDER: Final = Path(__file__).parents[1] / "findings"
#: The files of findings, each with the title of its group.
GROUPS: Final = {
    "add_only": "Violations of the add-only rule",
    "silent": "Silent incompatibilities and losses",
    "crashes": "Crashes and hangs",
    "wrong_results": "Wrong results",
    "refusals": "Refusals, and parser bugs",
}
#: In place of a release: the provider that is installed beside this Python.
INSTALLED: Final = "installed"
#: The processes of reproducers at a time.
_WORKERS: Final = 2
#: Seconds that the processes of one release may take beyond the limits of their reproducers.
_START: Final = 120
#: How much of an error is told, in characters; and what differs between runs.
_LONGEST: Final = 120
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
#: The errors of a release that lacks what a reproducer calls.
_MISSING: Final = re.compile(
    r"error: (AttributeError|ImportError|ModuleNotFoundError|NameError|SyntaxError|TypeError):"
)
#: Other names of a package: builds of it for other machines.
_OTHER_BUILDS: Final = {"tensorflow": ("tensorflow-cpu",)}
_WORDS: Final = frozenset({"error", "hang", "memory", "wrong"})


@dataclass(frozen=True, slots=True)
class Variant:
    """One of several forms of a reproducer; ``code`` is what it has as ``V``."""

    name: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that upstream should know; ``tests/findings/README.md`` has the meaning of each attribute."""

    group: str
    id: str
    title: str
    library: str
    where: str
    release: str
    ends: tuple[str, ...]
    expected: str
    happens: str
    workaround: str
    code: str
    says: str = ""
    variants: tuple[Variant, ...] = ()
    writer: str = ""
    writer_code: str = ""
    reader: str = ""
    reader_code: str = ""
    seconds: float = 20
    gigabytes: int = 8
    by_hand: str = ""
    kept: str = ""

    def __post_init__(self) -> None:
        for word in self.ends:
            if word not in _WORDS and word not in signal.Signals.__members__:
                raise ValueError(f"{self.id}: {word!r} is neither a signal nor one of {', '.join(sorted(_WORDS))}")
        if self.ends == ("error",) and not self.says:
            raise ValueError(f"{self.id}: without `says`, any error would do")

    @property
    def package(self) -> str:
        """The package whose releases it is about."""
        return Requirement(self.release).name


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a finding on a release."""

    finding: str  # the id of the finding
    release: str  # the release, such as ``jaxlib==0.10.2``
    outcome: Outcome  # whether it was reproduced
    seen: str  # how the reproducer ended, for each variant
    date: date  # the day of the run


@dataclass(frozen=True, slots=True)
class Answer:
    """How a run of a finding ended."""

    finding: Finding  # the finding
    release: str  # the release, or :data:`INSTALLED`
    outcome: Outcome  # whether it was reproduced
    seen: str  # how the reproducer ended, for each variant


@dataclass(frozen=True, slots=True)
class _End:
    """How a reproducer ended: a signal or a word of :attr:`Finding.ends`, or ``right``; and its output."""

    word: str
    output: str


@dataclass(slots=True)
class _Trial:
    """A reproducer on its way through up to three releases."""

    finding: Finding  # the finding
    release: str  # the release that it is about
    variant: Variant | None  # the variant, if there are any
    given: str = ""  # the bytes that one release made for the next, in hexadecimal
    end: _End | None = field(default=None)  # how it ended; ``None`` while it goes on

    def code(self, code: str) -> str:
        return f"V = {self.variant.code!r}\n{code}" if self.variant else code


@cache
def known_findings() -> Mapping[str, Finding]:
    """Return all findings by their ids, in the order of the groups."""
    found = {}
    for group in GROUPS:
        for entry in tomllib.loads((FOLDER / f"{group}.toml").read_text())["finding"]:
            ends, variants = entry.pop("ends"), entry.pop("variants", [])
            finding = Finding(
                group=group,
                ends=(ends,) if isinstance(ends, str) else tuple(ends),
                variants=tuple(Variant(**each) for each in variants),
                **entry,
            )
            if finding.id in found:
                raise ValueError(f"two findings have the id {finding.id}")
            found[finding.id] = finding
    return found


@cache
def known_results() -> Sequence[Result]:
    entries = tomllib.loads((FOLDER / "results.toml").read_text())["result"]
    results = [Result(**each) for each in entries]
    for each in results:
        if each.outcome not in get_args(Outcome):
            raise ValueError(f"{each.finding}: {each.outcome!r} is not an outcome")
    return results


def installed_release(package: str) -> str | None:
    """Return the installed release of a package, such as ``jaxlib==0.10.2``; ``None`` if there is none.

    A build of the release under another name, such as ``tensorflow-cpu``, is the release.
    """
    for name in (package, *_OTHER_BUILDS.get(package, ())):
        with suppress(PackageNotFoundError):
            return f"{package}=={version(name)}"
    return None


def expected_outcome(finding: str, release: str, results: Iterable[Result]) -> Outcome | None:
    """Return what is to be expected of a finding on a release: what is recorded of the newest that is no newer.

    ``None`` if nothing is recorded of such a release.
    """
    wanted = Requirement(release)
    limit = _version(release)
    of_older = {
        _version(each.release): each.outcome
        for each in results
        if each.finding == finding and Requirement(each.release).name == wanted.name
    }
    return max(((at, outcome) for at, outcome in of_older.items() if at <= limit), default=(None, None))[1]


def news(answer: Answer, release: str, results: Iterable[Result]) -> str | None:
    """Return what is new about a finding on a release; ``None`` if it is as recorded, or nothing is recorded."""
    finding = answer.finding
    expected = expected_outcome(finding.id, release, results)
    if expected is None or answer.outcome == expected:
        return None
    again = f"`scripts/upstream_findings.py run {finding.id} --release {release} --record` records it"
    if answer.outcome == "mended":
        return (
            f"{finding.id} is mended in the installed release, {release}: the workaround in {finding.workaround} can "
            f"go, as soon as no supported release needs it ({again})"
        )
    return f"{finding.id} was {expected}, and on {release} is {answer.outcome}: {answer.seen} ({again})"


def run(wanted: Iterable[tuple[Finding, str]]) -> list[Answer]:
    """Run findings, each on a release or on what is :data:`INSTALLED`, and return how they ended, in order."""
    asked = list(wanted)
    trials = [
        [_Trial(finding, release, variant) for variant in finding.variants or (None,)] for finding, release in asked
    ]
    every = [each for several in trials for each in several]
    _stage([(each, each.finding.writer, each.finding.writer_code) for each in every if each.finding.writer])
    _stage([(each, each.release, each.finding.code) for each in every if each.end is None])
    _stage([(each, each.finding.reader, each.finding.reader_code) for each in every if _is_written(each)])
    return [_judged(finding, release, several) for (finding, release), several in zip(asked, trials, strict=True)]


def standalone(finding: Finding) -> str:
    """Return the reproducer of a finding as a program that needs nothing but the release."""
    parts = [
        f"# {finding.title}. Shown on {finding.release}; ends with: {', '.join(finding.ends)}.",
        (FOLDER / "session.py").read_text(),
    ]
    for number, each in enumerate(finding.variants):
        parts.append(f"{'# ' * bool(number)}V = {each.code!r}  # {each.name}")
    if finding.writer:
        parts += [f"# On {finding.writer}, which prints the argument of this program:", _commented(finding.writer_code)]
        parts.append("import sys\n\ngiven = bytes.fromhex(sys.argv[1])")
    if finding.reader:
        parts.append("def give(data):\n    print(data.hex())")
    parts.append(finding.code.strip())
    if finding.reader:
        parts += [f"# On {finding.reader}, with `given`, the bytes that this prints:", _commented(finding.reader_code)]
    elif "wrong" in finding.ends:
        parts.append('print("found", found, "and not", right)')
    return "\n\n".join(parts) + "\n"


def _commented(code: str) -> str:
    return "\n".join(f"# {line}" for line in code.strip().splitlines())


def _version(release: str) -> Version:
    (specifier,) = Requirement(release).specifier
    return Version(specifier.version)


def _is_written(trial: _Trial) -> bool:
    """Return whether a trial made something for another release to read; a refusal to write it is what should be."""
    if not trial.finding.reader or trial.end is None:
        return False
    if trial.end.word == "right":
        trial.given, trial.end = trial.end.output.split()[0], None
        return True
    if trial.end.word == "error":
        trial.end = _End("right", trial.end.output)
    return False


def _stage(jobs: Sequence[tuple[_Trial, str, str]]) -> None:
    """Run code for trials, in as many batches of each release as there are workers, and note how it ended."""
    batches = defaultdict(list)
    for number, (trial, release, code) in enumerate(jobs):
        batches[release, number % _WORKERS].append((trial, code))
    with ThreadPoolExecutor(_WORKERS) as pool:
        ended = pool.map(_batch, (release for release, _ in batches), batches.values())
        for (release, _), batch, ends in zip(batches, batches.values(), ended, strict=True):
            for (trial, code), end in zip(batch, ends, strict=True):
                is_writer = code is trial.finding.writer_code
                if is_writer and end.word == "right":
                    trial.given = end.output.split()[0]
                elif is_writer:
                    trial.end = _End(f"{release} did not write it", end.output)
                else:
                    trial.end = end


def _batch(release: str, jobs: Sequence[tuple[_Trial, str]]) -> list[_End]:
    """Run code in a release, each in a process of its own."""
    trials = [
        {
            "id": str(number),
            "code": trial.code(code),
            "given": trial.given,
            "seconds": trial.finding.seconds,
            "memory": trial.finding.gigabytes << 30,
        }
        for number, (trial, code) in enumerate(jobs)
    ]
    given = json.dumps({"session": (FOLDER / "session.py").read_text(), "trials": trials}).encode()
    limit = _START + sum(trial.finding.seconds for trial, _ in jobs)
    done = (
        _run_here(given, limit)
        if release == INSTALLED
        else run_in(release, FOLDER / "trial.py", input=given, timeout=limit)
    )
    if done.returncode:
        raise RuntimeError(f"{release}: {done.stderr.decode(errors='replace')}")
    return [_end(json.loads(line)) for line in done.stdout.splitlines()]


def _run_here(given: bytes, limit: float) -> subprocess.CompletedProcess[bytes]:
    variables = clean_environment()
    command = [sys.executable, "-I", str(FOLDER / "trial.py")]
    return subprocess.run(command, input=given, capture_output=True, timeout=limit, check=False, env=variables)


def _end(answer: Mapping[str, object]) -> _End:
    output, status = f"{answer['output']}\n{answer['errors']}", answer["status"]
    if status is None:
        return _End("hang", output)
    if isinstance(status, int) and status < 0:
        return _End(signal.Signals(-status).name, output)
    if "error: MemoryError" in output:
        return _End("memory", output)
    if status == 0 and (word := re.search(r"^(right|ended|wrong|error)\b", output, re.MULTILINE)):
        return _End("right" if word[1] == "ended" else word[1], output)
    return _End(f"exit code {status}", output)


def _judged(finding: Finding, release: str, trials: Sequence[_Trial]) -> Answer:
    judgements: list[Outcome] = []
    seen = []
    for trial in trials:
        assert trial.end is not None
        judgements.append(_outcome(finding, trial.end))
        told = _told(finding, trial.end)
        seen.append(f"{trial.variant.name}: {told}" if trial.variant else told)
    # One form of it is enough to need the workaround.
    order: Sequence[Outcome] = ("reproduced", "changed", "mended")
    return Answer(finding, release, next(each for each in order if each in judgements), "; ".join(seen))


def _outcome(finding: Finding, end: _End) -> Outcome:
    if end.word in finding.ends and re.search(finding.says, end.output):
        return "reproduced"
    # Where a process should survive, an error is as good as an answer.
    survives = not {"wrong", "error"} & set(finding.ends) and not _MISSING.match(end.output)
    return "mended" if end.word == "right" or (survives and end.word == "error") else "changed"


def _told(finding: Finding, end: _End) -> str:
    """Return how a reproducer ended, in a word, and for an error with the line that tells it from others."""
    if end.word != "error":
        return end.word
    lines = [line for line in end.output.splitlines() if finding.says and re.search(finding.says, line)]
    line = next(iter(lines), end.output.splitlines()[0]).removeprefix("error: ")
    return f"error: {_ADDRESS.sub('', line)[:_LONGEST]}"
