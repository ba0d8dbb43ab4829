"""Choose the small files of a corpus that show all that the whole of it shows, and put them into one archive."""

from __future__ import annotations

import json
import zipfile
from collections import defaultdict
from pathlib import Path

from corpus_contents import contents

from vhlo_tools.files.atomic_writes import write_atomically

LARGEST_FILE = 4096
# What the archive may take up; choosing goes by the compressed size of each file.
LARGEST_ARCHIVE = 2_600_000
WANTED = 2600
# Files count from this date, so that the same files give the same archive.
DATE = (1980, 1, 1, 0, 0, 0)

Row = dict[str, object]


def pack(folder: Path, archive: Path) -> None:
    """Put a share of the corpus in ``folder`` into ``archive``."""
    rows: list[Row] = json.loads((folder / "index.json").read_text())
    found = {str(row["file"]): kinds_of(row, (folder / str(row["file"])).read_bytes()) for row in rows}
    chosen = choose([row for row in rows if small(row)], found)
    everything = set().union(*found.values())
    shown = set().union(*(found[str(row["file"])] for row in chosen))
    write_archive(folder, chosen, archive)
    print(f"{archive.name}: {len(chosen)} of {len(rows)} files, {archive.stat().st_size} bytes")
    print(f"{len(shown)} of {len(everything)} kinds of things, each with the version of its bytecode")
    for kind in sorted(everything - shown):
        print(f"only in larger files: {kind}")


def kinds_of(row: Row, data: bytes) -> set[str]:
    """Return what is in a file, told apart by the format that it is written in."""
    form = f"{'bytecode' if row['ordinary'] else 'artifact'} {row['bytecode_version']}"
    return {f"{form}: {kind}" for kind in (*contents(data), f"read by newest: {row['read_by_newest']}")}


def small(row: Row) -> bool:
    """Return whether a file is small enough for the archive."""
    return int(str(row["size"])) <= LARGEST_FILE


def choose(rows: list[Row], found: dict[str, set[str]]) -> list[Row]:
    """Return the files to keep: first those that show something new, then by turns of the producers and programs."""
    order = in_turns(rows)
    seen: set[str] = set()
    first = []
    # The files with most in them come first, so that few are needed.
    for row in sorted(order, key=lambda row: -len(found[str(row["file"])])):
        if not found[str(row["file"])] <= seen:
            seen |= found[str(row["file"])]
            first.append(row)
    taken = {str(row["file"]) for row in first}
    chosen = (first + [row for row in order if row["file"] not in taken])[: max(WANTED, len(first))]
    return sorted(chosen, key=lambda row: str(row["file"]))


def in_turns(rows: list[Row]) -> list[Row]:
    """Return the files so that those of each producer, and of each program of it, are spread evenly."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    ranked = []
    for row in sorted(rows, key=lambda row: str(row["sha256"])):  # by chance, yet always the same
        producer, program = str(row["file"]).split("/")[0], str(row["program"])
        turn = counts[producer, program] = counts[producer, program] + 1
        ranked.append((turn, str(row["sha256"]), row))
    return [row for _, _, row in sorted(ranked, key=lambda entry: entry[:2])]


def write_archive(folder: Path, rows: list[Row], archive: Path) -> None:
    """Write the archive: the index, and each file under its name."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w") as made:
        lines = ",\n".join(json.dumps(row, sort_keys=True) for row in rows)
        add(made, "index.json", f"[\n{lines}\n]\n".encode())
        for row in rows:
            add(made, str(row["file"]), (folder / str(row["file"])).read_bytes())
    write_atomically(archive, [partial.read_bytes()], force=True)
    partial.unlink()


def add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a file, with nothing of this machine in it."""
    info = zipfile.ZipInfo(name, DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    info.create_system = 3
    archive.writestr(info, data, compresslevel=9)
