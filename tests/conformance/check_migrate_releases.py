"""Migrate a store of artifacts that ten old releases of jaxlib wrote, up and down again, with everything verified.

The artifacts are those of our archive; each release has a folder. They are brought to the newest version that the
installed library reads, then down to 1.0.0, and to 0.9.0, each time from where the last migration left them. Whatever
was moved must have been found to be the same program, and what was not moved must be what it was before, with a finding
that says why. Prints what was seen of each migration, and everything that is otherwise.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.corpus_files import corpus_files, corpus_index

import vhlo_tools as vt
from vhlo_tools.stores.members import hash_at

RELEASES: Final = (
    "jaxlib==0.4.13",
    "jaxlib==0.4.18",
    "jaxlib==0.4.21",
    "jaxlib==0.4.26",
    "jaxlib==0.4.31",
    "jaxlib==0.4.35",
    "jaxlib==0.5.1",
    "jaxlib==0.6.0",
    "jaxlib==0.7.0",
    "jaxlib==0.8.3",
)
TARGETS: Final = ("current", "1.0.0", "0.9.0")


@dataclass(frozen=True)
class Seen:
    """What was seen of one migration of the store."""

    target: str  # where it went
    statuses: Counter[str]  # how many files came to which end, and how they were verified
    problems: tuple[str, ...]  # what should not be


def fill(store: Path, most: int | None) -> int:
    """Make the store, of so many files of each release, evenly among those it wrote; return how many there are."""
    wanted: dict[str, list[str]] = {}
    for release in RELEASES:
        # What the newest library dies of or refuses is no program that could be run.
        files = [
            each.file
            for each in corpus_index()
            if release in each.producers and not each.ordinary and each.read_by_newest
        ]
        step = max(1, len(files) // most) if most else 1
        for name in files[::step][:most]:
            wanted.setdefault(name, []).append(release)
    for name, data in corpus_files(ordinary=False):
        for release in wanted.get(name, ()):
            place = store / release.partition("==")[2] / f"{Path(name).stem}.mlirbc"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    return len(list(store.rglob("*.mlirbc")))


def check(store: Path, jobs: int | None) -> Iterator[Seen]:
    for target in TARGETS:
        before = {str(path): hash_at(str(path)) for path in store.rglob("*.mlirbc")}
        statuses: Counter[str] = Counter()
        problems = []
        for record in vt.migrate(store, target, jobs=jobs, verify=True):
            statuses[f"{record.status} ({record.verified})" if record.verified else record.status] += 1
            after = hash_at(record.path)
            if record.status == "moved":
                fine = record.verified is not None and after == record.new_digest
                fine = fine and vt.open_artifact(record.path).version == record.target
            else:
                fine = after == before[record.path]
                fine = fine and (record.status == "current" or (record.status == "blocked" and bool(record.findings)))
            if not fine:
                problems.append(f"{record.path}: {record.status}: {record.reason}")
        if statuses.total() != len(before):
            problems.append(f"{statuses.total()} files of {len(before)} are told of")
        yield Seen(target, statuses, tuple(problems))


def main() -> int:
    """Print what was seen, and return whether all was well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, help="so many files of each release; by default all that it wrote")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    arguments = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        number = fill(store, arguments.each)
        print(f"{number} artifacts of {len(RELEASES)} releases", flush=True)
        for seen in check(store, arguments.jobs):
            told = ", ".join(f"{count} {status}" for status, count in seen.statuses.most_common())
            print(f"to {seen.target}: {told}; {len(seen.problems)} problems", *seen.problems, sep="\n  ", flush=True)
            wrong += len(seen.problems)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
