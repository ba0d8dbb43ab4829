"""The gate on a repository of many artifacts: with what earlier runs found and without, of a change, and by formats.

All artifacts differ, so that none is known from another one. What is compared takes turns, so that a machine that gets
slower gets slower for all. Files are in the memory of the system, for `sha256sum` as for the gate.
"""

from __future__ import annotations

import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench_migrate import FROM, make_templates
from support.processes import Run, run_measured
from turns import VHLO

import vhlo_tools as vt

BENCHMARKS: Final = Path(__file__).parent
#: Every program passes for the first; for the second, those that JAX wrote have findings.
TARGETS: Final = (FROM, "1.4.0")
#: An argument has this name, with the number of the artifact.
NAME: Final = "marker%08d"
#: A program with findings for the last target, and the formats of what is said of it.
FINDINGS: Final = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tan %a : tensor<4xf32>
  %1 = stablehlo.convert %0 : (tensor<4xf32>) -> tensor<4xf8E3M4>
  %2 = stablehlo.convert %1 : (tensor<4xf8E3M4>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}"""
OLDEST: Final = "1.0.0"
FORMATS: Final = ("text", "concise", "json", "jsonl", "github", "gitlab", "sarif", "junit")
#: So many programs differ in the pull request, and one of them is worse.
CHANGED: Final = 20

_RAW: Final = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from support.raw import RawLibrary
from vhlo_tools.bindings import get_provider
raw = RawLibrary(get_provider())
context = raw.context()
for path in sorted(Path(sys.argv[2]).rglob("*.mlirbc")):
    raw.stablehlo.deserialize_portable_artifact(context, path.read_bytes())
"""


def run(pairs: int, *, quick: bool) -> None:
    """Measure, and print a line for each question."""
    files = 1_000 if quick else 10_000
    with tempfile.TemporaryDirectory() as folder:
        store, cache = Path(folder, "store"), Path(folder, "cache")
        size = fill(store, make_templates(Path(folder, "templates")), files)
        print(f"{files} artifacts, {size / 1e6:.0f} MB; medians of {pairs}, seconds (seconds of processor time):")
        hashed = [sha256sum(store) for _ in range(pairs)]
        say("sha256sum", hashed, hashed)
        tests = str(BENCHMARKS.parent / "tests")
        say(
            "the library's reader alone",
            [run_measured([sys.executable, "-c", _RAW, tests, str(store)])],
            hashed,
        )
        for target in TARGETS:
            runs: dict[str, list[Run]] = {"cold, -j 1": [], "cold, -j 2": [], "warm": [], "warm, -j 2": []}
            for _ in range(pairs):
                for jobs in ("1", "2"):
                    shutil.rmtree(cache, ignore_errors=True)
                    runs[f"cold, -j {jobs}"].append(check(store, target, cache, "-j", jobs))
                runs["warm"].append(check(store, target, cache, "-j", "1"))
                runs["warm, -j 2"].append(check(store, target, cache, "-j", "2"))
            for name, taken in runs.items():
                say(f"check --target {target}, {name}", taken, hashed)
        pull_request(store, cache, pairs, hashed)
        formats(Path(folder, "found"), files, pairs)


def fill(store: Path, templates: Sequence[Path], number: int) -> int:
    """Write so many artifacts, no two of them alike, and return their size."""
    marker = NAME % 0
    contents = [(each.name, bytes(vt.open_artifact(each).with_names({0: marker}, {}))) for each in templates]
    size = 0
    for index in range(number):
        name, data = contents[index % len(contents)]
        place = store / f"{index // 500}" / f"{index}-{name}"
        place.parent.mkdir(parents=True, exist_ok=True)
        assert data.count(marker.encode()) == 1
        size += place.write_bytes(data.replace(marker.encode(), (NAME % index).encode()))
    return size


def pull_request(store: Path, cache: Path, pairs: int, hashed: Sequence[Run]) -> None:
    """Measure the gate of a change of some programs."""
    # Nothing tidies up in the background, where the folder is removed.
    settings = ("user.name=a", "user.email=a@example.com", "core.compression=0", "gc.auto=0", "maintenance.auto=false")
    git = ("git", *(word for each in settings for word in ("-c", each)), "-C", str(store))
    for command in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "all")):
        subprocess.run([*git, *command], check=True)
    changed = sorted(store.rglob("*ops600.mlirbc"))[:CHANGED]
    vt.serialize("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }", FROM).save(
        changed[0], force=True
    )
    for path in changed[1:]:
        path.write_bytes(path.read_bytes().replace(b"marker0", b"marker9"))
    for name, emptied in (("cold", True), ("warm", False)):
        runs = []
        for _ in range(pairs):
            if emptied:
                shutil.rmtree(cache, ignore_errors=True)
            runs.append(check(store, TARGETS[0], cache, "--against", "HEAD"))
        say(f"check --against HEAD, {len(changed)} changed, {name}", runs, hashed)


def formats(folder: Path, files: int, pairs: int) -> None:
    """Measure the gate where every program has findings, in each format."""
    store, template = folder / "store", folder / "tan.mlirbc"
    folder.mkdir()
    vt.serialize(FINDINGS, FROM).save(template)
    fill(store, [template], files)
    hashed = [sha256sum(store) for _ in range(pairs)]
    for name in FORMATS:
        runs = [check(store, OLDEST, None, "--format", name) for _ in range(pairs)]
        say(f"check --target {OLDEST} --format {name}, findings in each", runs, hashed)


def check(store: Path, target: str, cache: Path | None, *options: str) -> Run:
    """Run the gate, in the folder of the store."""
    kept = ["--cache-dir", str(cache)] if cache else ["--no-cache"]
    command = [*VHLO, "check", ".", "--target", target, *kept, *options]
    line = f"cd {shlex.quote(str(store))} && exec {shlex.join(command)}"
    # Findings, which some programs have, make it 1.
    return run_measured(["sh", "-c", line], codes=(0, 1))


def sha256sum(store: Path) -> Run:
    """Let the usual program hash every file."""
    return run_measured(["sh", "-c", f"find {shlex.quote(str(store))} -name '*.mlirbc' -print0 | xargs -0 sha256sum"])


def say(name: str, runs: Sequence[Run], hashed: Sequence[Run]) -> None:
    """Print what runs took, beside hashing."""
    seconds, cpu = (statistics.median(getattr(each, field) for each in runs) for field in ("seconds", "cpu"))
    ratios = [statistics.median(getattr(each, field) for each in hashed) for field in ("seconds", "cpu")]
    peak = max(each.peak for each in runs) / 1e6
    print(
        f"  {name}: {seconds:.2f} ({cpu:.2f}); {seconds / ratios[0]:.2f} ({cpu / ratios[1]:.2f}) times sha256sum; "
        f"{peak:.0f} MB at the most",
        flush=True,
    )
