"""Replay the history of StableHLO: `replay_history.py [write] [read] [page]`.

`write` lets the first jaxlib of every tag of StableHLO write the programs of tests/programs/history and
tests/programs/features, for its own version and for that of the oldest jaxlib of the two years before it, and keeps
what they wrote in tests/artifacts/history.tar.xz, each artifact once, with a manifest. `read` lets the releases below
read all of it, and keeps what became of it in tests/artifacts/history_read.json. `page` makes the tables of
docs/history.md: by year, what can still be read by whom, and whether the promises held.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Final

import vhlo_tools as vt
from vhlo_tools.artifact import Manifest
from vhlo_tools.errors import VhloToolsError
from vhlo_tools.releases import MatrixProgram, ReleaseProcess, facts_of, predict_reading, written_by
from vhlo_tools.spec import Release, known_releases, promised

ROOT: Final = Path(__file__).resolve().parents[1]
ARCHIVE: Final = ROOT / "tests" / "artifacts" / "history.tar.xz"
READ: Final = ROOT / "tests" / "artifacts" / "history_read.json"
PAGE: Final = ROOT / "docs" / "history.md"
BEGIN, END = "<!-- table: history -->", "<!-- table: end -->"
INDEX: Final = "index.json"
MANIFESTS: Final = "manifests.json"
#: Beside the installed library: the last jaxlib of each half year, and the other packages.
OTHER_READERS: Final = ("torch-mlir==20261001", "tensorflow==2.21.0", "iree-base-compiler==3.13.0")
DAYS_A_MONTH: Final = 30.44
#: Months in which new releases of upstream's can write what old ones read, since 1.0.0.
FORWARD: Final = 24


@dataclass(frozen=True, slots=True)
class HistoricArtifact:
    """An artifact that a release wrote."""

    program: str  # the name of the program
    producer: str  # the release
    tag: str  # its StableHLO version
    day: str  # the day of the release
    target: str  # the version that it wrote for
    file: str  # the name of the file in the archive; several may have the same


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader made of the artifacts."""

    reader: str  # the release, or what else read
    version: str  # its StableHLO version
    day: str  # the day of the release
    refused: Mapping[str, str]  # the files that it refused, with its words


def writers() -> list[Release]:
    """Return the first jaxlib of every StableHLO version that one has, oldest first."""
    found: dict[vt.Version, Release] = {}
    for release in sorted(_jaxlibs(), key=lambda release: release.date):
        found.setdefault(release.stablehlo, release)
    return sorted(found.values(), key=lambda release: release.stablehlo)


def readers() -> list[str]:
    """Return the last jaxlib of each half year, and the releases of other packages."""
    halves = {(each.date.year, each.date.month > 6): each for each in sorted(_jaxlibs(), key=lambda each: each.date)}
    return [*map(str, halves.values()), *OTHER_READERS]


def _jaxlibs() -> list[Release]:
    return [release for release in known_releases() if release.package == "jaxlib"]


def _day_of(reader: str) -> date:
    package, _, number = reader.partition("==")
    return next(each.date for each in known_releases() if (each.package, each.release) == (package, number))


def two_years_before(release: Release) -> vt.Version:
    """Return the oldest version of the jaxlibs of the two years before a release."""
    recent = [each for each in _jaxlibs() if 0 <= (release.date - each.date).days <= FORWARD * DAYS_A_MONTH]
    return min(each.stablehlo for each in recent)


def programs() -> list[MatrixProgram]:
    """Return the programs, at the oldest versions that have all of them."""
    found = []
    for folder in ("history", "features"):
        for path in sorted((ROOT / "tests" / "programs" / folder).glob("*.mlir")):
            newest = vt.serialize(path)
            oldest = vt.retarget(newest, newest.requirements().downgradable_to)
            found.append(MatrixProgram(path.stem, oldest, None))
    return found


def write() -> None:
    """Let every release write every program, and keep what it wrote."""
    given = programs()
    artifacts: list[HistoricArtifact] = []
    contents: dict[str, bytes] = {}
    for release in writers():
        before = len(artifacts)
        with ReleaseProcess(str(release), _say) as process:
            facts = facts_of(process)
            for target in dict.fromkeys((release.stablehlo, two_years_before(release))):
                for program in given:
                    written = written_by(process, facts, program, target).artifact
                    if written is None:
                        continue
                    data = bytes(written)
                    # By its contents: what several releases wrote is kept once.
                    manifest = Manifest.of(written)
                    file = f"{program.name}-{manifest.sha256[:12]}.mlirbc"
                    contents[file] = data
                    fields = (program.name, str(release), str(release.stablehlo), str(release.date), str(target), file)
                    artifacts.append(HistoricArtifact(*fields))
        _say(f"{release} ({release.stablehlo}): {len(artifacts) - before} artifacts")
    manifests = {file: Manifest.of(data).encode().decode() for file, data in contents.items()}
    parts = {
        INDEX: json.dumps([asdict(each) for each in artifacts], indent=0).encode(),
        MANIFESTS: json.dumps(manifests, indent=0).encode(),
        **contents,
    }
    ARCHIVE.write_bytes(_packed(parts))
    _say(f"{len(artifacts)} artifacts, {len(contents)} different, {ARCHIVE.stat().st_size:,} bytes")


def _packed(parts: Mapping[str, bytes]) -> bytes:
    """Return an archive that is the same for the same contents."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=9) as archive:
        for name in (*sorted(parts),):
            entry = tarfile.TarInfo(name)
            entry.size = len(parts[name])
            archive.addfile(entry, io.BytesIO(parts[name]))
    return packed.getvalue()


@cache
def history() -> tuple[list[HistoricArtifact], dict[str, bytes], dict[str, Manifest]]:
    """Return the artifacts, and their contents and manifests by file."""
    with tarfile.open(ARCHIVE) as archive:
        parts = {entry.name: _part(archive, entry) for entry in archive}
    index = [HistoricArtifact(**entry) for entry in json.loads(parts.pop(INDEX))]
    manifests = {file: Manifest.decode(text.encode()) for file, text in json.loads(parts.pop(MANIFESTS)).items()}
    return index, parts, manifests


def _part(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(entry)
    return file.read() if file is not None else b""


def read() -> None:
    """Let every reader read all of it, and keep what became of it."""
    _, contents, _ = history()
    found = []
    for reader in readers():
        with ReleaseProcess(reader, _say) as process:
            version = facts_of(process).stablehlo
            answers = {file: process.read(data) for file, data in contents.items()}
        refused = {file: answer.words for file, answer in answers.items() if not answer.succeeded}
        found.append(Reading(reader, str(version), str(_day_of(reader)), refused))
        _say(f"{reader} read {len(contents) - len(refused)} of {len(contents)}")
    keep(str(date.today()), found)


def keep(day: str, found: Iterable[Reading]) -> None:
    """Keep what became of the artifacts, by their numbers in the order of their names."""
    number = {file: place for place, file in enumerate(sorted(history()[1]))}
    kept = []
    for reading in found:
        by_words: dict[str, list[int]] = defaultdict(list)
        for file, words in sorted(reading.refused.items()):
            by_words[words].append(number[file])
        kept.append({**asdict(reading), "refused": by_words})
    lines = ",\n".join(json.dumps(each) for each in kept)
    READ.write_text(f'{{"date": "{day}", "readings": [\n{lines}\n]}}\n')


def readings() -> tuple[str, list[Reading]]:
    """Return the day on which the readers read, and what became of it."""
    kept = json.loads(READ.read_text())
    files = sorted(history()[1])
    found = []
    for each in kept["readings"]:
        refused = {files[number]: words for words, numbers in each["refused"].items() for number in numbers}
        found.append(Reading(**{**each, "refused": refused}))
    return kept["date"], found


def page() -> Iterator[str]:
    """Yield the tables of the page."""
    index, contents, _ = history()
    day, found = readings()
    releases = {each.producer for each in index}
    names = {each.program for each in index}
    yield (
        f"{len(releases)} releases of jaxlib, one for each StableHLO version from {index[0].tag} to {index[-1].tag}, "
        f"wrote {len(index):,} artifacts of {len(names)} programs, {len(contents):,} of them different. They were read "
        f"on {day}."
    )
    yield ""
    yield "What was written for the producer's own version, and how much of it each reader reads:"
    yield ""
    yield from _by_year([each for each in index if each.target == each.tag], found)
    yield ""
    yield "What was written for the oldest release of the two years before the producer:"
    yield ""
    yield from _by_year([each for each in index if each.target != each.tag], found)
    yield ""
    yield "## The promises"
    yield ""
    yield from _promises(index, contents, found)


def _by_year(index: list[HistoricArtifact], found: Iterable[Reading]) -> Iterator[str]:
    by_year: dict[str, list[str]] = defaultdict(list)
    for each in index:
        by_year[each.day[:4]].append(each.file)
    years = sorted(by_year)
    yield "| reader | StableHLO | of | " + " | ".join(f"written in {year}" for year in years) + " |"
    yield "|---|---|---|" + "---:|" * len(years)
    for reading in found:
        shares = []
        for year in years:
            files = by_year[year]
            number = sum(file not in reading.refused for file in files)
            shares.append("all" if number == len(files) else f"{number} of {len(files)}")
        yield f"| {reading.reader} | {reading.version} | {reading.day[:7]} | {' | '.join(shares)} |"
    yield f"| *artifacts* | | | {' | '.join(str(len(by_year[year])) for year in years)} |"


def _promises(index: list[HistoricArtifact], contents: Mapping[str, bytes], found: list[Reading]) -> Iterator[str]:
    """Yield how often each promise was put to the test, and where it did not hold."""
    facts = {file: vt.open_artifact(data, name=file) for file, data in contents.items()}
    tried: Counter[str] = Counter()
    broken: dict[tuple[str, str, str, str], int] = Counter()
    surprises: dict[tuple[str, str, str], int] = Counter()
    for reading in found:
        reader_day, version = date.fromisoformat(reading.day), vt.Version(reading.version)
        for each in index:
            was_read = each.file not in reading.refused
            prediction = predict_reading(facts[each.file], version)
            if prediction.positive is not None and prediction.positive != was_read:
                words = reading.refused.get(each.file, "it reads it")
                surprises[each.program, reading.reader, words[:140]] += 1
            if (kind := _promise(each, reader_day, version)) is None:
                continue
            tried[kind] += 1
            if not was_read:
                broken[kind, each.program, reading.reader, reading.refused[each.file][:140]] += 1
    for kind, text in _KINDS.items():
        number = sum(count for (of, *_), count in broken.items() if of == kind)
        held = "it held every time" if not number else f"it did not hold {number:,} times"
        yield f"- **{text}** Put to the test {tried[kind]:,} times; {held}."
    if broken:
        yield ""
        yield "Where a promise did not hold:"
        yield ""
        yield "| promise | program | reader | artifacts | what it says |"
        yield "|---|---|---|---:|---|"
        for (kind, program, reader, words), number in sorted(broken.items()):
            yield f"| {kind} | {program} | {reader} | {number} | {_cell(words)} |"
    if surprises:
        yield ""
        yield "Where a reader did otherwise than the specification of this project says:"
        yield ""
        yield "| reader | what it says | programs | artifacts |"
        yield "|---|---|---|---:|"
        for reader, words in sorted({(reader, words) for _, reader, words in surprises}):
            own = {program: number for (program, *rest), number in sorted(surprises.items()) if rest == [reader, words]}
            yield f"| {reader} | {_cell(words)} | {', '.join(own)} | {sum(own.values())} |"


_KINDS: Final = {
    "backward": "Backward: a new release reads what an old one wrote, for five years since 1.0.0, before for six "
    "months.",
    "forward": "Forward: an old release reads what a new one wrote for its version, for two years since 1.0.0, before "
    "for one month.",
}


def _promise(artifact: HistoricArtifact, reader_day: date, reader: vt.Version) -> str | None:
    """Return the promise by which a reader of a day is to read an artifact, if there is one."""
    days = (reader_day - date.fromisoformat(artifact.day)).days
    target = vt.Version(artifact.target)
    if reader < target:
        return None  # written for newer readers
    window = "backward" if days >= 0 else "forward"
    held = promised("backward" if days >= 0 else "forward", target.minor_release)
    return window if held is not None and abs(days) <= held.months * DAYS_A_MONTH else None


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def write_page() -> None:
    """Write the tables into the page."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text("\n".join([before + BEGIN, "", *page(), "", END + rest.partition(END)[2]]))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Write, read, and make the page."""
    parser = argparse.ArgumentParser(description="replay the history of StableHLO")
    parser.add_argument("steps", nargs="+", choices=["write", "read", "page"])
    steps = parser.parse_args().steps
    try:
        for step, work in {"write": write, "read": read, "page": write_page}.items():
            if step in steps:
                work()
    except VhloToolsError as error:
        print(f"replay_history: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
