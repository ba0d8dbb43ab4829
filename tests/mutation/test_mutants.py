"""The tables of mutation testing; what makes mutants of them is an extra, and runs on request."""

from __future__ import annotations

from collections import Counter

import pytest
from mutant_tables import ROOT, Equivalent, Part, load_equivalents, load_plan


def test_every_module_is_in_one_part_with_tests_of_its_own() -> None:
    plan = load_plan()
    modules = Counter(module for part in plan.parts for module in part.source_files())
    assert [module for module, count in modules.items() if count > 1] == []
    for part in plan.parts:
        assert part.source_files(), part
        tests = part.test_files(part.source_files()[0])
        assert tests, part
        for file in (*part.source_files(), *tests):
            assert (ROOT / file).is_file(), file


def test_modules_beside_those_of_a_part_are_in_another_part() -> None:
    """So that a new module is not forgotten where the table names files."""
    modules = {module for part in load_plan().parts for module in part.source_files()}
    folders = {(ROOT / module).parent for module in modules}
    beside = {each.relative_to(ROOT).as_posix() for folder in folders for each in folder.glob("*.py")}
    assert {module for module in beside - modules if not module.endswith("__init__.py")} == set()


def test_the_tests_named_after_a_module_come_first() -> None:
    part = Part("aliasing", ("vhlo_tools/aliasing",), ("tests/aliasing",))
    first, *others = part.test_files("vhlo_tools/aliasing/shapes.py")
    assert first == "tests/aliasing/test_shapes.py"
    assert others == sorted(others)


@pytest.mark.parametrize("entry", load_equivalents(), ids=lambda entry: f"{entry.file}: {entry.mutant}")
def test_equivalent_mutants_are_of_lines_that_are_there(entry: Equivalent) -> None:
    lines = [line.strip() for line in (ROOT / entry.file).read_text().splitlines()]
    pairs = Counter(zip(["", *lines], lines, strict=False))
    found = sum(count for (above, line), count in pairs.items() if line == entry.line and entry.above in ("", above))
    assert found == 1
    assert entry.mutant != entry.line
    assert entry.reason.endswith(".")
