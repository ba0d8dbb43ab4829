"""Migrations of whole stores: beside the work alone, beside a shell loop, with more processes, and with more files.

Stores are made afresh for each run. What is compared takes turns, so that a machine that gets slower gets slower for
all.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from support.large_artifacts import write_artifact_of_constants, write_artifact_of_ops
from support.processes import Run, run_measured

import vhlo_tools as vt

ROOT: Final = Path(__file__).parents[1]
FROM: Final = "1.13.0"
TARGET: Final = "1.4.0"
VHLO: Final = [sys.executable, "-m", "vhlo_tools.cli.main"]

#: Of artifacts of 10 to 200 kB: so many ops, and so many bytes of constants.
OPS: Final = (600, 900, 1_500, 2_500, 4_000, 6_000, 8_000, 11_500)
CONSTANTS: Final = (20_000, 60_000, 120_000, 190_000)

_SMALL: Final = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""

#: So many files are moved by the shell loop, whose time grows with their number.
LOOPED: Final = 40

#: So many names has a file.
LINKED: Final = 10_000

_RAW: Final = """
import sys
from pathlib import Path
import vhlo_tools as vt
for path in sorted(Path(sys.argv[1]).rglob("*.mlirbc")):
    vt.retarget(path, sys.argv[2]).save(path, force=True)
"""

#: What the library does to show that two artifacts are one program: it reads both.
_RAW_VERIFIED: Final = """
import sys
from pathlib import Path
import vhlo_tools as vt
from support.raw import RawLibrary
from vhlo_tools.bindings import get_provider
library = RawLibrary(get_provider())
context = library.context()
for path in sorted(Path(sys.argv[1]).rglob("*.mlirbc")):
    moved = vt.retarget(path, sys.argv[2])
    for each in (path.read_bytes(), bytes(moved)):
        library.stablehlo.deserialize_portable_artifact(context, each)
    moved.save(path, force=True)
"""


def run(pairs: int, *, quick: bool) -> None:
    """Measure, and print a line for each question."""
    with tempfile.TemporaryDirectory() as folder:
        templates = make_templates(Path(folder) / "templates")
        files = 400 if quick else 2_000
        store = Path(folder) / "store"
        times: dict[str, list[float]] = {"one": [], "two": [], "raw": [], "loop": []}
        for turn in range(pairs):
            runs: list[tuple[str, Callable[[], None]]] = [
                ("one", lambda: migrate(store, 1)),
                ("two", lambda: migrate(store, 2)),
                ("raw", lambda: raw(store)),
            ]
            for name, function in runs if turn % 2 else reversed(runs):
                fill(store, templates, files)
                times[name].append(timed(function))
                check(store, files)
            fill(store, templates, LOOPED)
            times["loop"].append(timed(lambda: shell_loop(store)) * files / LOOPED)
        size = sum(each.stat().st_size for each in templates) / len(templates)
        medians = {name: statistics.median(each) for name, each in times.items()}
        print(f"{files} artifacts of {size / 1000:.0f} kB on average, {FROM} to {TARGET}; medians of {pairs}:")
        print(f"  vhlo migrate -j 1: {medians['one']:.1f} s; -j 2: {medians['two']:.1f} s")
        print(f"  the work alone, in one process: {medians['raw']:.1f} s; a shell loop: {medians['loop']:.0f} s")
        print(f"  -j 1 / -j 2: {ratio(times['one'], times['two']):.2f} (at least 1.7)")
        print(f"  shell loop / -j 2: {ratio(times['loop'], times['two']):.0f} (at least 20)")
        small = Path(folder) / "small.mlirbc"
        vt.serialize(_SMALL, FROM).save(small)
        overhead("-j 1", store, templates, files, pairs, (), _RAW)
        overhead("-j 1 of small files", store, [small], 1_000 if quick else 10_000, pairs, (), _RAW)
        overhead("-j 1 --verify", store, templates, files, pairs, ("--verify",), _RAW_VERIFIED)
        for number in (1_000, 10_000 if quick else 100_000):
            print(f"  {number} small files: {peak(Path(folder) / f'many{number}', number) / 1e6:.0f} MB at the most")


def make_templates(folder: Path) -> list[Path]:
    """Write the artifacts that stores are made of."""
    folder.mkdir()
    for number in OPS:
        write_artifact_of_ops(folder / f"ops{number}.mlirbc", number, FROM)
    for size in CONSTANTS:
        write_artifact_of_constants(folder / f"constants{size}.mlirbc", size, 3, FROM)
    vt.serialize(ROOT / "examples" / "transformer_step.mlir", FROM).save(folder / "transformer_step.mlirbc")
    vt.serialize(ROOT / "examples" / "convnet.bc", FROM).save(folder / "convnet.mlirbc")
    return sorted(folder.iterdir())


def fill(store: Path, templates: list[Path], number: int) -> None:
    """Make a store of so many files anew."""
    shutil.rmtree(store, ignore_errors=True)
    for index in range(number):
        template = templates[index % len(templates)]
        place = store / f"{index // 500}" / f"{index}-{template.name}"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(template, place)
    os.sync()


def check(store: Path, number: int) -> None:
    """See that every file was moved."""
    versions = [vt.open_artifact(each).version for each in store.rglob("*.mlirbc")]
    assert versions == [vt.Version(TARGET)] * number


def timed(function: Callable[[], None]) -> float:
    """Return how many seconds a function takes."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def migrate(store: Path, jobs: int) -> None:
    """Migrate a store with the command."""
    command = [*VHLO, "migrate", str(store), "--target", TARGET, "-j", str(jobs)]
    subprocess.run(command, check=True, capture_output=True)


def overhead(
    name: str, store: Path, templates: list[Path], files: int, pairs: int, options: Sequence[str], loop: str
) -> None:
    """Print what a migration takes beside a loop that does the same work and writes safely, in one process."""
    commands = {
        "ours": [*VHLO, "migrate", str(store), "--target", TARGET, "-j", "1", *options],
        "loop": [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}){loop}",
            str(store),
            TARGET,
        ],
    }
    taken: dict[str, list[Run]] = {name: [] for name in commands}
    for turn in range(pairs):
        for which in commands if turn % 2 else reversed(commands):
            fill(store, templates, files)
            taken[which].append(run_measured(commands[which]))
            check(store, files)
    ours, others = taken["ours"], taken["loop"]
    wall = ratio([each.seconds for each in ours], [each.seconds for each in others])
    cpu = ratio([each.cpu for each in ours], [each.cpu for each in others])
    each = statistics.median(each.cpu for each in ours) / files * 1e3
    print(f"  {name} / a loop: {wall:.2f} in time, {cpu:.2f} in CPU; {each:.2f} ms of CPU for each file")


def raw(store: Path) -> None:
    """Move every file of a store in one process that does nothing else."""
    subprocess.run([sys.executable, "-c", _RAW, str(store), TARGET], check=True, capture_output=True)


def shell_loop(store: Path) -> None:
    """Move every file of a store by a command for each."""
    vhlo = f"'{sys.executable}' -m vhlo_tools.cli.main"
    loop = f'for each in */*.mlirbc; do {vhlo} retarget "$each" --target {TARGET} -o "$each" --force || exit 1; done'
    subprocess.run(["sh", "-c", loop], cwd=store, check=True, capture_output=True)


def peak(store: Path, number: int) -> int:
    """Return the most memory that a process of the migration of many small files takes."""
    store.mkdir()
    artifact = vt.serialize("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }", FROM)
    for index in range(number):
        # Names of one file, of which there cannot be too many; each becomes a file of its own.
        place, first = (store / f"{each}.mlirbc" for each in (index, index - index % LINKED))
        artifact.save(place) if place == first else os.link(first, place)
    return run_measured([*VHLO, "migrate", str(store), "--target", TARGET, "-j", "2"]).peak


def ratio(ours: list[float], others: list[float]) -> float:
    """Return the median of the ratios, turn by turn."""
    return statistics.median(a / b for a, b in zip(ours, others, strict=True))
