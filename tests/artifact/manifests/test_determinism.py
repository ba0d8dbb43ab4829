"""The same program, options and library give the same bytes, and the same manifest: in any process, on any day.

``VHLO_TOOLS_EVERY_VERSION=1`` takes every program of the corpus, of the features and of the examples, at every version.
``VHLO_TOOLS_FAKETIME`` may name the library of libfaketime, which moves the clocks of C++ as well as those of Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

import pytest
from support.corpus import FEATURES, ROOT, example_programs, some_versions
from support.corpus_files import corpus_files

WORK = ROOT / "tests" / "support" / "repeated_work.py"
ALL = bool(os.environ.get("VHLO_TOOLS_EVERY_VERSION"))
#: One in so many files, each of another version, program and producer.
SAMPLED = 1 if ALL else 60
#: Of the programs that are text.
SAMPLED_TEXTS = 1 if ALL else 6

#: The processes that are compared with the first: the options, and what else is different. Each has other hashes.
OTHERS: Mapping[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "hashes, another folder, day, zone, language and order": (
        ("--reversed", "--day=400"),
        {"PYTHONHASHSEED": "1", "TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
    ),
    "hashes and threads": (("--threads",), {"PYTHONHASHSEED": "2", "OMP_NUM_THREADS": "1", "LC_ALL": "C"}),
}


def tasks(folder: Path) -> list[str]:
    """Return what to convert: files of the corpus on bytes, and texts by the library."""
    found = []
    for number, (name, data) in enumerate(corpus_files(ordinary=False)):
        if number % SAMPLED == 0:
            path = folder / f"{number}.mlirbc"
            path.write_bytes(data)
            versions = some_versions(name) if ALL else some_versions(name)[:: 2 + number % 3]
            found += [f"retarget\t{version}\t{path}" for version in versions] + [f"strip\t-\t{path}"]
    programs = [*example_programs(), *sorted(FEATURES.glob("*.mlir"))]
    for program in programs:
        if crc32(program.name.encode()) % SAMPLED_TEXTS and program.suffix != ".jax_export":
            continue
        versions = some_versions(program.name) if ALL else some_versions(program.name)[::4]
        found += [f"{way}\t{version}\t{program}" for version in versions for way in ("serialize", "expand")]
    return found


def results(todo: list[str], folder: Path, options: tuple[str, ...], others: Mapping[str, str]) -> list[str]:
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", **others}
    library = os.environ.get("VHLO_TOOLS_FAKETIME")
    if library is not None and options:
        environment |= {"LD_PRELOAD": library, "FAKETIME": "+400d", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    done = subprocess.run(
        [sys.executable, str(WORK), *options],
        input="".join(f"{task}\n" for task in todo),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def todo(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return tasks(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def first(todo: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return results(todo, tmp_path_factory.mktemp("first") / "here", (), {})


def test_there_is_much_to_compare(todo: list[str], first: list[str]) -> None:
    written = [each for each in first if not each.split()[0].endswith("Error")]
    assert len(first) == len(todo)
    assert len(written) > 150
    # Many producers wrote the same program, which is the same at every version then.
    assert len(set(written)) > (0.2 if ALL else 0.6) * len(written)


@pytest.mark.parametrize("other", OTHERS)
def test_any_process_writes_the_same(todo: list[str], first: list[str], other: str, tmp_path: Path) -> None:
    again = results(todo, tmp_path / "somewhere else", *OTHERS[other])
    assert [task for task, one, two in zip(todo, first, again, strict=True) if one != two] == []


def test_the_clocks_of_a_child_are_moved(tmp_path: Path) -> None:
    code = (
        "import repeated_work as work, time, datetime; work.move_clocks(400); print(time.time(), datetime.date.today())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(WORK.parent)))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    said, day = done.stdout.split()
    assert 399 < (float(said) - time.time()) / 86_400 < 401
    assert day == time.strftime("%Y-%m-%d", time.gmtime(time.time() + 400 * 86_400))
