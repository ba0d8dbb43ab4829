"""Try ``vhlo spec import`` on the past: from the data of one version of StableHLO to those of the next.

For each pair of revisions of a clone of openxla/stablehlo, in their order, the specification is cut at the version of
the older one (``vhlo_tools.spec_tools.cut``), what the newer one has is drafted into the copy, and the result is
compared with the specification cut at the version of the newer one. The clone may be bare.

    python scripts/import_history.py ../stablehlo
    python scripts/import_history.py ../stablehlo v1.9.0 v1.10.0
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vhlo_tools.errors import VhloToolsError
from vhlo_tools.spec import load_specification
from vhlo_tools.spec_tools import Survey, compare, cut, draft, facts_of, survey_checkout, write_edits
from vhlo_tools.spec_tools.linting import baseline_of

SPECS = Path(__file__).resolve().parent.parent / "dialect_specs"
#: Five versions of the past; 1.20.0 is not tagged.
REVISIONS = ("v0.14.0", "v1.0.0", "v1.5.0", "v1.11.0", "3c9301c11")


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one step of the past."""

    start: str  # the version of the data before
    end: str  # the version of the data after
    differences: int  # how many differences the import found
    new: int  # how many entries the data of the newer version have that those of the older have not, or have otherwise
    same: int  # how many of these were drafted as they are
    other: Counter[str]  # the kinds of those that were drafted otherwise
    absent: Counter[str]  # the kinds of those that were not drafted
    extra: Counter[str]  # the kinds of entries that were drafted and that the newer data have not
    steps: tuple[str, ...]  # the steps that were left to do by hand, as the command says them
    unread: int  # how many things could not be read


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; exit with 0 if every step could be drafted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("clone", type=Path, help="a clone of openxla/stablehlo, which may be bare")
    parser.add_argument("revisions", nargs="*", default=REVISIONS, help="tags or commits, oldest first")
    parser.add_argument("--steps", action="store_true", help="print the steps that are left to do by hand")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    given = parser.parse_args(arguments)
    try:
        with TemporaryDirectory() as folder:
            surveys = [survey_of(given.clone, revision, Path(folder)) for revision in given.revisions]
            rows = [row_of(older, newer, Path(folder)) for older, newer in pairwise(surveys)]
    except (VhloToolsError, subprocess.CalledProcessError) as error:
        print(f"import_history: {error}", file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps([{field: getattr(row, field) for field in Row.__slots__} for row in rows], indent=2))
    else:
        print("\n".join(lines_of(rows, steps=given.steps)))
    return 0


def survey_of(clone: Path, revision: str, folder: Path) -> Survey:
    """Return what a revision says, checked out into a folder that shares the objects of the clone."""
    checkout = folder / revision
    _git("clone", "--quiet", "--shared", "--no-checkout", str(clone.resolve()), str(checkout))
    _git("-C", str(checkout), "checkout", "--quiet", revision, "--", "stablehlo/dialect", "stablehlo/transforms")
    return survey_checkout(checkout)


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, stdin=subprocess.DEVNULL)


def row_of(older: Survey, newer: Survey, folder: Path) -> Row:
    """Draft what ``newer`` has into the data of the version of ``older``, and compare with those of its own."""
    drafted = cut(SPECS, older.version, folder / f"drafted-{newer.version}")
    before = _facts(drafted)
    after = _facts(cut(SPECS, newer.version, folder / f"data-{newer.version}"))
    specs = load_specification(drafted)
    comparison = compare(specs, newer)
    plan = draft(specs, newer, comparison)
    write_edits(plan.edits)
    found = _facts(drafted)
    new = {key: facts for key, facts in after.items() if before.get(key) != facts}
    return Row(
        str(older.version),
        str(newer.version),
        len(comparison.differences),
        len(new),
        sum(found.get(key) == facts for key, facts in new.items()),
        Counter(key[0] for key, facts in new.items() if key in found and found[key] != facts),
        Counter(key[0] for key in new if key not in found),
        Counter(key[0] for key in found if key not in after),
        tuple(each.what for each in plan.remaining),
        len(newer.unread),
    )


def _facts(folder: Path) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return every entry of a specification, by kind and name, without prose, and apart from features their ids."""
    specs = load_specification(folder)
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for kind, entries in baseline_of(specs).items():
        for name, facts in entries.items() if kind != "constraint" else ():
            found[kind, name] = {key: value for key, value in facts.items() if key != "feature"}
    constraints = facts_of(specs, specs.newest)["constraint"]
    return found | {("constraint", name): facts for name, facts in constraints.items()}


def lines_of(rows: Sequence[Row], *, steps: bool) -> Iterator[str]:
    """Yield the table, as Markdown."""
    yield "| from | to | differences | new entries | drafted as they are | otherwise | not drafted | steps by hand |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        counts = [_counted(counter) for counter in (row.other, row.absent)]
        cells = (row.start, row.end, row.differences, row.new, row.same, *counts, len(row.steps))
        yield f"| {' | '.join(map(str, cells))} |"
    for row in rows if steps else ():
        yield f"\n{row.start} to {row.end}, beyond the data: {_counted(row.extra)}; not read: {row.unread}"
        yield from (f"- {step}" for step in row.steps)


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in counter.items()) or "0"


if __name__ == "__main__":
    sys.exit(main())
