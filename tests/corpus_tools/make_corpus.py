"""Make a corpus of artifacts that released packages really wrote, and pack a share of it for the tests.

``make_corpus.py build DIR`` lets every release below write every program of `corpus_programs` at several versions of
StableHLO. Two releases write them as ordinary MLIR bytecode too, and releases of JAX export functions of their own.
``DIR/<producer>/<program>@<target>`` holds each content once, under its oldest producer; ``DIR/index.json`` names all
producers and what is known of the file, and ``DIR/summary.json`` what was refused, and why. ``make_corpus.py pack DIR``
puts small ones into ``tests/artifacts/corpus.zip``, so that what occurs in the corpus occurs there.

The same releases give the same bytes, whatever the machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

# Helpers that tests use too.
sys.path.insert(0, str(Path(__file__).parents[1]))

from corpus_packing import pack
from corpus_programs import Program, all_programs, model_programs
from support.release_environments import run_in

from vhlo_tools.bytecode import decode_container
from vhlo_tools.spec import known_releases
from vhlo_tools.version import Version

HERE = Path(__file__).parent
NEWEST = "jaxlib==0.12.0.1"
JAXLIBS = (
    *("0.4.13", "0.4.18", "0.4.21", "0.4.24", "0.4.26", "0.4.29", "0.4.31", "0.4.33", "0.4.35", "0.4.38", "0.5.1"),
    *(
        "0.5.3",
        "0.6.0",
        "0.6.2",
        "0.7.0",
        "0.7.2",
        "0.8.3",
        "0.9.2",
        "0.10.0",
        "0.10.2",
        "0.11.1",
        "0.11.2",
        "0.12.0.1",
    ),
)
JAXES = ("0.4.31", "0.4.38", "0.5.3", "0.6.2", "0.7.2", "0.9.2", "0.10.2")
PRODUCERS = (
    *(f"jaxlib=={version}" for version in JAXLIBS),
    "torch-mlir==20261001",
    *(f"jax=={version}" for version in JAXES),
)
# The versions in between: each brings a version of the bytecode, or of several ops.
TARGETS = (
    "0.9.0",
    "0.10.0",
    "0.12.0",
    "0.14.0",
    "0.15.0",
    "0.17.0",
    "0.19.0",
    "1.0.0",
    "1.1.0",
    "1.7.0",
    "1.9.0",
    "1.13.0",
)
ORDINARY = ("jaxlib==0.10.2", "jaxlib==0.12.0.1")
ORDINARY_TARGETS = ("newest", "0", "1", "2", "3", "4", "5", "6")
TIMEOUT = 900


@dataclass(slots=True)
class Entry:
    """A file of the corpus.

    Attributes:
        file: Its path in the corpus.
        program: The program in it.
        ordinary: Whether it is ordinary MLIR bytecode instead of a portable artifact.
        target: The StableHLO version that was asked for; for ordinary bytecode its own version, or ``newest``.
        bytecode_version: The version of MLIR bytecode that its header tells.
        producers: The releases that wrote exactly these bytes, the oldest first.
        sha256: The digest of its contents.
        size: Their length.
        read_by_newest: Whether the newest library reads it; it refuses some, and dies of others.
    """

    file: str
    program: str
    ordinary: bool
    target: str
    bytecode_version: int
    producers: list[str]
    sha256: str
    size: int
    read_by_newest: bool = False


@dataclass(slots=True)
class Outcome:
    """What a release made of the programs: ``written`` by program and target, and why the others were refused."""

    producer: str
    ordinary: bool
    written: list[tuple[str, str, bytes]]
    refused: list[tuple[str, str, str]]


def build(folder: Path, producers: Iterable[str] = PRODUCERS, jobs: int = 2) -> None:
    """Make the corpus in ``folder``."""
    programs = all_programs()
    tasks = [(producer, False) for producer in producers]
    tasks += [(producer, True) for producer in ORDINARY if producer in producers]
    entries: dict[bytes, Entry] = {}
    outcomes = []
    with ThreadPoolExecutor(jobs) as pool:
        # Results are taken in order, so that the oldest producer of a content names it.
        for outcome in pool.map(lambda task: produce(task[0], task[1], programs), tasks):
            keep(outcome, folder, entries)
            outcomes.append(outcome)
            print(
                f"{outcome.producer}: {len(outcome.written)} written, {len(outcome.refused)} refused", file=sys.stderr
            )
    read = read_by_newest(folder, [entry.file for entry in entries.values()])
    for entry in entries.values():
        entry.read_by_newest = read[entry.file]
    rows = [asdict(entry) for entry in sorted(entries.values(), key=lambda entry: entry.file)]
    write_json(folder / "index.json", rows)
    write_json(folder / "summary.json", summary(outcomes, list(entries.values())))


def keep(outcome: Outcome, folder: Path, entries: dict[bytes, Entry]) -> None:
    """Write down what a release wrote, unless the same bytes are there already."""
    for program, target, data in outcome.written:
        digest = hashlib.sha256(data).digest()
        if (entry := entries.get(digest)) is not None:
            if outcome.producer not in entry.producers:
                entry.producers.append(outcome.producer)
            continue
        name = f"{program}@bytecode-{target}.bc" if outcome.ordinary else f"{program}@{target}.mlirbc"
        path = folder / outcome.producer.replace("==", "-") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        entries[digest] = Entry(
            file=str(path.relative_to(folder)),
            program=program,
            ordinary=outcome.ordinary,
            target=target,
            bytecode_version=decode_container(memoryview(data)).version,
            producers=[outcome.producer],
            sha256=digest.hex(),
            size=len(data),
        )


def produce(producer: str, ordinary: bool, programs: list[Program]) -> Outcome:
    """Let a release write all programs; where its process dies, the next one goes on behind."""
    outcome = Outcome(producer, ordinary, [], [])
    if is_jax(producer):
        targets: tuple[str, ...] = ()  # jax.export chooses it
        rest = model_programs()
    else:
        targets = ORDINARY_TARGETS if ordinary else portable_targets(producer)
        rest = list(programs)
    while rest:
        begun, died = run_writer(outcome, targets, rest)
        if not died:
            break
        outcome.refused.append((rest[begun].name, "", died))
        rest = rest[begun + 1 :]
    return outcome


def is_jax(producer: str) -> bool:
    """Return whether a producer is JAX, which exports functions instead of programs."""
    return producer.startswith("jax==")


def run_writer(outcome: Outcome, targets: tuple[str, ...], programs: list[Program]) -> tuple[int, str]:
    """Run one process of a release; return how far it came, and what it died of, if it did."""
    with tempfile.TemporaryDirectory() as place:
        job = {
            "programs": [program.as_json() for program in programs],
            "targets": targets,
            "ordinary": outcome.ordinary,
        }
        write_json(Path(place) / "job.json", job)
        script = "corpus_exporter.py" if is_jax(outcome.producer) else "corpus_writer.py"
        done = run_in(outcome.producer, HERE / script, place, timeout=TIMEOUT)
        begun = 0
        log = Path(place) / "log.jsonl"
        for line in log.read_text().splitlines() if log.exists() else ():
            said = json.loads(line)
            begun = said.get("begun", begun)
            if "written" in said:
                data = (Path(place) / said["written"]).read_bytes()
                outcome.written.append((said["program"], said["target"], data))
            elif "refused" in said:
                outcome.refused.append((said["program"], said["target"], said["refused"]))
        if done.returncode > 0:
            raise RuntimeError(f"{outcome.producer}: {done.stderr.decode()}{messages(Path(place))}")
        return begun, f"the process died of signal {-done.returncode}" if done.returncode else ""


def messages(place: Path) -> str:
    """Return what the writer said last."""
    path = place / "messages"
    return path.read_text(errors="replace")[-2000:] if path.exists() else ""


def portable_targets(producer: str) -> tuple[str, ...]:
    """Return the versions that a release is asked for: its own, and those of `TARGETS` that are older."""
    package, _, release = producer.partition("==")
    own = next(known.stablehlo for known in known_releases() if (known.package, known.release) == (package, release))
    return (str(own), *(target for target in TARGETS if Version(target) < own))


def read_by_newest(corpus: Path, files: list[str]) -> dict[str, bool]:
    """Return which files of a folder or an archive the newest library reads; what it dies of counts as unread."""
    read: dict[str, bool] = {}
    while len(read) < len(files):
        rest = [file for file in files if file not in read]
        done = run_in(NEWEST, HERE / "corpus_reader.py", corpus, input="\n".join(rest).encode(), timeout=TIMEOUT)
        answers = dict(json.loads(line) for line in done.stdout.splitlines())
        read |= answers
        if done.returncode > 0:
            raise RuntimeError(done.stderr.decode())
        if done.returncode:
            read[next(file for file in rest if file not in answers)] = False
    return read


def summary(outcomes: list[Outcome], entries: list[Entry]) -> dict[str, object]:
    """Return the numbers of the corpus, and what is not in it."""
    refused: dict[str, dict[str, str]] = {}
    for outcome in outcomes:
        for program, target, reason in outcome.refused:
            key = f"{outcome.producer} {'bytecode' if outcome.ordinary else 'artifact'}"
            refused.setdefault(key, {})[f"{program}@{target}" if target else program] = reason
    kinds = Counter(f"{'bytecode' if e.ordinary else 'artifact'} {e.bytecode_version}" for e in entries)
    return {
        "files": len(entries),
        "bytes": sum(entry.size for entry in entries),
        "by_bytecode_version": dict(sorted(kinds.items())),
        "written": {f"{o.producer} {'bytecode' if o.ordinary else 'artifact'}": len(o.written) for o in outcomes},
        "kept": dict(sorted(Counter(entry.file.split("/")[0] for entry in entries).items())),
        "unread_by_newest": sorted(entry.file for entry in entries if not entry.read_by_newest),
        "refused": refused,
    }


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON that people can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def main() -> int:
    """Make or pack the corpus."""
    parser = argparse.ArgumentParser(description="make a corpus of artifacts that released packages wrote")
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("build", help="let the releases write")
    making.add_argument("folder", type=Path)
    making.add_argument("--producer", action="append", help="only this release, such as jaxlib==0.4.31; repeatable")
    making.add_argument("--jobs", type=int, default=2, help="how many processes run at once (default: 2)")
    packing = commands.add_parser("pack", help="put the small ones into tests/artifacts/corpus.zip")
    packing.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "build":
        build(options.folder, options.producer or PRODUCERS, options.jobs)
    else:
        pack(options.folder, HERE.parent / "artifacts" / "corpus.zip")
    return 0


if __name__ == "__main__":
    sys.exit(main())
