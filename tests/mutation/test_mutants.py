"""Mutation testing: its tables, and the order of tests; what makes mutants is an extra, and runs on request."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from clean_runs import PYTEST, try_unchanged
from mutant_tables import ROOT, Equivalent, Part, load_equivalents, load_plan


def test_every_module_is_in_one_part_with_tests_of_its_own() -> None:
    plan = load_plan()
    modules = Counter(module for part in plan.parts for module in part.source_files())
    assert [module for module, count in modules.items() if count > 1] == []
    for part in plan.parts:
        assert part.source_files(), part
        tests = part.test_files()
        assert tests, part
        for file in (*part.source_files(), *tests):
            assert (ROOT / file).is_file(), file


def test_modules_beside_those_of_a_part_are_in_another_part() -> None:
    """So that a new module is not forgotten where the table names files."""
    modules = {module for part in load_plan().parts for module in (*part.source_files(), *part.without)}
    folders = {(ROOT / module).parent for module in modules}
    beside = {each.relative_to(ROOT).as_posix() for folder in folders for each in folder.glob("*.py")}
    assert {module for module in beside - modules if not module.endswith("__init__.py")} == set()


MODULE = """
THREE = 3
def half(n):
    return n // 2
def third(n):
    return n // THREE
"""
TESTS = """
import pytest, time
from vhlo_tools.numbers import half, third

def test_half_slowly(): assert not time.sleep(0.6) and half(4) == 2
@pytest.mark.parametrize("n", ["'a b'\\n", "- [::]"])
def test_neither(n): pass
def test_third(): assert not time.sleep(0.3) and third(6) == 2
def test_half(): assert half(6) == 3
"""
ENDLESS = """
from hypothesis import given, strategies
@given(strategies.integers())
def test_endless(n):
    while n is not None:
        try:
            n += 1
        except Exception:
            pass
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with a module of two functions and their tests."""
    copy = tmp_path / "copy"
    files = {"vhlo_tools/numbers.py": MODULE, "tests/test_numbers.py": TESTS}
    empty = dict.fromkeys(("vhlo_tools/__init__.py", "vhlo_tools/pytest_plugin.py"), "")
    ini = f"[pytest]\npythonpath = {ROOT / 'tests' / 'mutation'}\nmarkers = releases\n"
    for name, text in {**files, **empty, "pytest.ini": ini}.items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(text)
    return copy


def test_the_tests_of_a_line_come_first_and_the_quickest_of_them(checkout: Path) -> None:
    clean = try_unchanged(Part("numbers", ("vhlo_tools",), ("tests",)), checkout)

    def order(line: str) -> list[str]:
        names = clean.order("vhlo_tools/numbers.py", MODULE.splitlines().index(line) + 1)
        assert len(names) == len(set(names)) == 5
        return [re.sub(r"^tests/test_numbers.py::test_|\[.*", "", name) for name in names]

    assert order("    return n // 2")[:2] == ["half", "half_slowly"]
    assert order("    return n // THREE")[0] == "third"
    # No test executes this one: Python does, on import.
    assert order("THREE = 3") == ["half", "third", "half_slowly", "neither", "neither"]


def test_tests_run_in_an_order_and_no_longer_than_they_may(checkout: Path) -> None:
    (checkout / "tests" / "test_endless.py").write_text(ENDLESS)
    limits = {"test_numbers.py::test_neither[- [::]]": 60, "test_endless.py::test_endless": 0.5}
    (checkout / "limits").write_text(json.dumps({f"tests/{name}": limit for name, limit in limits.items()}))
    command = [sys.executable, *shlex.split(PYTEST), "--limits=limits", "tests"]
    ran = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False, timeout=120)
    assert "FAILED tests/test_endless.py::test_endless - covering.TooLongError" in ran.stdout
    assert "1 failed, 1 passed" in ran.stdout


@pytest.mark.parametrize("entry", load_equivalents(), ids=lambda entry: f"{entry.file}: {entry.mutant}")
def test_equivalent_mutants_are_of_lines_that_are_there(entry: Equivalent) -> None:
    lines = [line.strip() for line in (ROOT / entry.file).read_text().splitlines()]
    pairs = Counter(zip(["", *lines], lines, strict=False))
    found = sum(count for (above, line), count in pairs.items() if line == entry.line and entry.above in ("", above))
    assert found == 1
    assert entry.mutant != entry.line
    assert entry.reason.endswith(".")
