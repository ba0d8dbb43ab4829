"""One store with files of all kinds: every command, in every format, counts the same programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.store_of_kinds import Counts, fill

from vhlo_tools.cli.main import main

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from one_store import differs, rows

#: Each kind of file four times.
NUMBER = 80


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Counts]:
    folder = tmp_path_factory.mktemp("store")
    return folder, fill(folder, NUMBER)


@pytest.mark.parametrize("what", [what for what, _ in rows("STORE")])
def test_every_command_counts_the_same(what: str, store: tuple[Path, Counts]) -> None:
    folder, written = store
    found = dict(rows(str(folder)))[what]()
    assert not differs(found, written), found
    assert max(found) > 0


def test_the_summary_of_a_check(store: tuple[Path, Counts], capsys: pytest.CaptureFixture[str]) -> None:
    folder, (good, broken, others) = store
    assert main(["check", str(folder), "--target", "1.9.0", "--no-cache"]) == 2
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"checked {good + broken} programs: {broken} cannot be checked; {others} other files are no programs"
    )
    assert main(["check", str(folder), "--target", "1.9.0", "--show-files", "--output-format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (len(shown["files"]), len(shown["unrecognised"])) == (good + broken, others)


def test_what_is_no_program_may_fail_the_check(store: tuple[Path, Counts]) -> None:
    folder = str(store[0] / "0" / "0")
    arguments = ["check", folder, "--target", "1.9.0", "--exclude", "*.mlir*", "--exclude", "notes*"]
    assert main(arguments) == 0
    assert main([*arguments, "--fail-on-unrecognised"]) == 2
    others = ("README.md", "*.safetensors", "*.npy", "pointer", "empty")
    excluded = [each for name in others for each in ("--exclude", name)]
    assert main([*arguments, "--fail-on-unrecognised", *excluded]) == 0
