"""Which tests run: samples of short runs, and the rooms that a change can break."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.corpus import ROOT
from support.selection import ACROSS, broken_by, layers_of

LAYERS = (frozenset({"cli"}), frozenset({"api"}), frozenset({"compat", "aliasing"}), frozenset({"bytecode", "errors"}))

TESTS = """
import pytest

@pytest.mark.sample(3)
@pytest.mark.parametrize("one", range(2))
@pytest.mark.parametrize("other", range(5))
def test_many(one, other): ...

@pytest.mark.sample(9)
@pytest.mark.parametrize("one", range(2))
def test_few(one): ...

@pytest.mark.long
def test_long(): ...

def test_plain(): ...
"""


@pytest.fixture
def collected(tmp_path: Path) -> Any:
    """Return a function that says which of some tests run with options."""
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\nmarkers =\n  sample(n)\n  long\n  releases\n")

    def collect(*options: str) -> tuple[list[str], str]:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "support.selection", "-p", "no:cacheprovider", "-v", *options],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
            capture_output=True,
            text=True,
            check=False,
        )
        return re.findall(r"::(\S+) PASSED", done.stdout), done.stdout + done.stderr

    return collect


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["vhlo_tools/bytecode/primitives.py"], {"bytecode", "compat", "aliasing", "api", "cli"}),
        (["vhlo_tools/errors.py"], {"errors", "compat", "aliasing", "api", "cli"}),
        (["vhlo_tools/api/running.py", "vhlo_tools/compat/targets.py"], {"compat", "api", "cli"}),
        (["vhlo_tools/cli/main.py"], {"cli"}),
    ],
)
def test_a_room_breaks_itself_and_those_above(files: list[str], expected: set[str]) -> None:
    found = broken_by(files, LAYERS)
    assert found is not None
    assert found & {room for layer in LAYERS for room in layer} == expected
    assert found >= ACROSS
    own = broken_by(files, LAYERS, above=False)
    assert own == frozenset({file.split("/")[1].removesuffix(".py") for file in files})


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("tests/bytecode/test_reader.py", {"bytecode"}),
        ("tests/test_errors.py", {"test_errors.py"}),
        ("tests/conformance/check_hlo.py", {"conformance"}),
        ("docs/ci.md", {"docs", "site"}),
        ("README.md", {"docs", "site", "test_release.py"}),
        (".ci/full.toml", set[str]()),
    ],
)
def test_what_is_not_of_the_package_breaks_its_own_tests(file: str, expected: set[str]) -> None:
    assert broken_by([file], LAYERS) == frozenset(expected)


@pytest.mark.parametrize(
    "file", ["pyproject.toml", "tests/conftest.py", "tests/support/corpus.py", "vhlo_tools/__init__.py", "new/file.py"]
)
def test_what_may_concern_all_breaks_all(file: str) -> None:
    assert broken_by([file], LAYERS) is None
    assert broken_by(["docs/ci.md", file], LAYERS) is None


def test_every_folder_of_tests_has_a_room_or_is_across_rooms() -> None:
    """Otherwise, a change would run the tests of no room."""
    rooms = {room for layer in layers_of((ROOT / "pyproject.toml").read_text()) for room in layer}
    folders = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/test_*.py")}
    # Frameworks have a step each; these two have the tests of tools beside the package.
    assert folders - rooms - ACROSS == {"frontends", "scripts", "corpus_tools", "mutation"}


def test_a_sample_is_spread_evenly(collected: Any) -> None:
    passed, said = collected("--length=short")
    assert passed == ["test_many[0-0]", "test_many[1-1]", "test_many[3-0]", "test_few[0]", "test_few[1]", "test_plain"]
    assert "8 tests, which `--length long` runs: test_some.py 8" in said


def test_the_lengths_are_all_together(collected: Any) -> None:
    short, long, every = (collected(f"--length={each}")[0] for each in ("short", "long", "all"))
    assert len(every) == 14
    assert sorted(short + long) == sorted(every)


def test_who_names_a_path_has_all_of_its_tests(collected: Any) -> None:
    assert len(collected()[0]) == 6
    assert len(collected("tests/test_some.py")[0]) == 14
    assert len(collected("tests/test_some.py", "--length=short")[0]) == 6


def test_workers_leave_the_same(collected: Any) -> None:
    passed, said = collected("-n2")
    assert "8 tests, which `--length long` runs" in said, said
    assert "6 passed" in said, passed


def test_an_unknown_revision_is_an_error(collected: Any) -> None:
    _, said = collected("--changed=nothing-of-that-name")
    assert "--changed=nothing-of-that-name" in said
    assert "Traceback" not in said
