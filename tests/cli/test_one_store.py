"""One store with files of all kinds: every command, in every format, counts the same programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml
from support.store_of_kinds import Counts, fill

from vhlo_tools.cli.main import main

#: Each kind of file four times.
NUMBER = 80


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Counts]:
    folder = tmp_path_factory.mktemp("store")
    return folder, fill(folder, NUMBER)


@pytest.fixture
def said(store: tuple[Path, Counts], capsys: pytest.CaptureFixture[str]) -> Any:
    def say(*command: str) -> str:
        main([each if each != "STORE" else str(store[0]) for each in command])
        return capsys.readouterr().out

    return say


CHECK = ("check", "STORE", "--target", "1.9.0", "--no-cache", "-j", "1")


def test_check(store: tuple[Path, Counts], said: Any) -> None:
    good, broken, others = store[1]
    summary = {"programs": good + broken, "ok": good, "unreadable": broken, "blocked": 0, "warned": 0}
    summary["unrecognised"] = others
    report = json.loads(said(*CHECK, "--output-format", "json"))
    assert report["summary"] == summary
    assert len(report["files"]) == good + broken
    lines = [json.loads(line) for line in said(*CHECK, "--output-format", "jsonl").splitlines()]
    assert [each["reason"] is None for each in lines[:-1]].count(False) == broken
    assert lines[-1]["summary"] == summary
    last = said(*CHECK).splitlines()[-1]
    assert last == (
        f"checked {good + broken} programs: {broken} cannot be checked; {others} other files are no programs"
    )
    run = json.loads(said(*CHECK, "--output-format", "sarif"))["runs"][0]
    assert len(run["artifacts"]) == good + broken
    assert [each["ruleId"] for each in run["results"]] == ["unreadable"] * broken
    cases = [case for suite in JUnitXml.fromstring(said(*CHECK, "--output-format", "junit").encode()) for case in suite]
    assert len(cases) == good + broken
    assert sum(case.name == "readable" for case in cases) == broken
    for output_format, number in (("github", broken), ("gitlab", broken)):
        text = said(*CHECK, "--output-format", output_format)
        assert (len(json.loads(text)) if output_format == "gitlab" else len(text.splitlines())) == number
    shown = json.loads(said(*CHECK, "--show-files", "--output-format", "json"))
    assert (len(shown["files"]), len(shown["unrecognised"])) == (good + broken, others)


def test_what_is_no_program_may_fail_the_check(store: tuple[Path, Counts]) -> None:
    folder = str(store[0] / "0" / "0")
    arguments = ["check", folder, "--target", "1.9.0", "--exclude", "*.mlir*", "--exclude", "notes*"]
    assert main(arguments) == 0
    assert main([*arguments, "--fail-on-unrecognised"]) == 2
    others = ("README.md", "*.safetensors", "*.npy", "pointer", "empty")
    excluded = [each for name in others for each in ("--exclude", name)]
    assert main([*arguments, "--fail-on-unrecognised", *excluded]) == 0


def test_store_status(store: tuple[Path, Counts], said: Any) -> None:
    good, broken, others = store[1]
    report = json.loads(said("store", "status", "STORE", "--output-format", "json"))
    assert len(report["files"]) == good + broken
    assert report["summary"]["unreadable"] == broken
    assert report["summary"]["unrecognised"] == others
    assert f"{broken} unreadable; {others} other files are no programs" in said("store", "status", "STORE")


def test_migrate(store: tuple[Path, Counts], said: Any) -> None:
    good, broken, others = store[1]
    command = ("migrate", "STORE", "--target", "1.9.0", "--dry-run", "-j", "1")
    report = json.loads(said(*command, "--output-format", "json"))
    assert len(report["files"]) == good + broken
    assert report["summary"]["files"]["unreadable"] == broken
    assert report["summary"]["unrecognised"] == others
    assert f"{broken} unreadable" in (last := said(*command).splitlines()[-1])
    assert f"; {others} other files are no programs" in last
