"""The aims, and what is compared for them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from aim_pairs import CASES
from aims import AIMS
from growth_commands import COMMANDS
from revisions import package_at
from support.processes import Run
from turns import Process, ratio, take_turns

ROOT = Path(__file__).parents[2]


def test_aims_are_of_what_is_measured() -> None:
    assert len({each.name for each in AIMS}) == len(AIMS)
    assert {each.subject for each in AIMS if each.group == "calls"} == set(CASES)
    commands = {each.name for each in COMMANDS}
    assert {each.subject for each in AIMS if each.group in ("processes", "a million ops")} <= commands


def test_ratios_are_those_of_turns() -> None:
    # The machine was slower in the second turn; nothing else was.
    ours = [Run(1.0, 10, 0.5), Run(4.0, 10, 2.0), Run(1.0, 10, 0.5)]
    raw = [Run(2.0, 20, 2.0), Run(8.0, 20, 8.0), Run(2.0, 20, 2.0)]
    assert (ratio(ours, raw, "seconds"), ratio(ours, raw, "cpu"), ratio(ours, raw, "peak")) == (0.5, 0.25, 0.5)


def test_processes_take_turns(tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    write = "open(sys.argv[1], 'a').write(sys.argv[2])"
    processes = {
        name: Process(
            (sys.executable, "-c", f"import sys; {write}; open(sys.argv[3], 'x')", str(log), name, str(out)), output=out
        )
        for name in "ab"
    }
    runs = take_turns(processes, 2)
    assert log.read_text() == "ababab"
    assert [len(each) for each in runs.values()] == [2, 2]
    take_turns(processes, 1, warm=False)
    assert log.read_text() == "abababab"


@pytest.mark.long
def test_a_process_imports_the_package_of_a_revision(tmp_path: Path) -> None:
    with package_at("HEAD") as package:
        assert package is not None
        assert {each.name for each in package.iterdir()} == {"vhlo_tools", "dialect_specs", "benchmarks", "tests"}
        seen = tmp_path / "seen"
        script = "import sys, vhlo_tools; open(sys.argv[1], 'w').write(vhlo_tools.__file__)"
        Process((sys.executable, "-P", "-c", script, str(seen)), package=package).run()
        assert seen.read_text() == str(package / "vhlo_tools" / "__init__.py")
    assert not package.exists()


def test_no_revision_is_no_package() -> None:
    with package_at(None) as package:
        assert package is None


def test_an_unknown_revision_is_named() -> None:
    with pytest.raises(SystemExit, match="no package at 'gone': .*Expected a commit"), package_at("gone"):
        pass
