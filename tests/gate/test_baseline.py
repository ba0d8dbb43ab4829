"""The baseline: known findings pass, new ones fail, and what is gone is said."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from support.gate_programs import GOOD, blocked, check, check_json, write

ASKED = ("m.mlir", "--target", "1.3.0", "--baseline", "known.json")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with a program that has two findings, both known."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "m.mlir", blocked(10, 20))
    assert check(capsys, *ASKED, "--update-baseline")[0] == 0
    return tmp_path


def entries(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "known.json").read_text())["findings"]
    return found


def test_known_findings_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, *ASKED) == (0, "m.mlir: ok for 1.3.0 (1 known)\nchecked 1 program: no errors\n", "")


def test_one_line_for_each_kind_of_finding(folder: Path) -> None:
    content = hashlib.sha256((folder / "m.mlir").read_bytes()).hexdigest()
    assert (folder / "known.json").read_text() == (
        '{\n  "format": 2,\n  "programs": [\n'
        f'    {{"file": "m.mlir", "content": "{content}", "functions": 1}}\n'
        '  ],\n  "findings": [\n'
        '    {"file": "m.mlir", "target": "1.3.0", "feature": "tan", "op": "stablehlo.tan", "function": "main", '
        '"path": "@main/stablehlo.tan", "source": "model.py", "count": 2}\n'
        "  ]\n}\n"
    )


def test_lines_may_shift(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "m.mlir", blocked(110, 120))
    assert check(capsys, *ASKED)[0] == 0


def test_a_further_one_of_the_same_kind_is_new(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "m.mlir", blocked(10, 20, 30))
    code, out, _ = check(capsys, *ASKED)
    assert code == 1
    assert out.startswith("m.mlir: 1 error for 1.3.0 (1 known)\n")
    (file,) = check_json(capsys, *ASKED)["files"]
    assert [(each["baseline"], each["location"]) for each in file["findings"]] == [
        ("new", "model.py:30:3"),
        ("known", "model.py:10:3"),
        ("known", "model.py:20:3"),
    ]


def test_of_several_on_one_line_those_beyond_the_known_are_new(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder / "m.mlir", blocked(10, 10, 10, 10, 10))
    (file,) = check_json(capsys, *ASKED)["files"]
    assert [(each["baseline"], each["count"]) for each in file["findings"]] == [("new", 3), ("known", 2)]


def test_another_target_and_another_file_are_new(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, *ASKED, "--target", "1.2.0")[0] == 1
    write(folder / "other.mlir", blocked(10))
    assert check(capsys, "other.mlir", *ASKED)[0] == 1


def test_it_does_not_matter_how_a_file_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check(capsys, str(folder / "m.mlir"), *ASKED[1:])[0] == 0
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert check(capsys, "../m.mlir", "--target", "1.3.0", "--baseline", "../known.json")[0] == 0


def test_what_is_stale_fails_on_request(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, *ASKED, "--fail-on-stale")[0] == 0
    write(folder / "m.mlir", GOOD)
    assert check(capsys, *ASKED)[0] == 0
    code, _, err = check(capsys, *ASKED, "--fail-on-stale")
    assert (code, "known.json is stale" in err) == (1, True)
    assert check(capsys, *ASKED, "--fail-on-stale", "--exit-zero")[0] == 0
    assert check(capsys, *ASKED, "--fail-on-stale", "--update-baseline")[0] == 0
    assert check(capsys, *ASKED, "--fail-on-stale")[0] == 0


def test_what_is_gone_is_stale_until_the_baseline_is_updated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "m.mlir", blocked(10))
    code, _, err = check(capsys, *ASKED)
    assert (code, err) == (
        0,
        "vhlo: note: known.json is stale: m.mlir for 1.3.0 no longer has tan in @main/stablehlo.tan; "
        "--update-baseline removes it\n",
    )
    check(capsys, *ASKED, "--update-baseline")
    assert [each["count"] for each in entries(folder)] == [1]
    write(folder / "m.mlir", GOOD)
    check(capsys, *ASKED, "--update-baseline")
    assert (folder / "known.json").read_text() == '{\n  "format": 2,\n  "programs": [],\n  "findings": []\n}\n'


def known(capsys: pytest.CaptureFixture[str], *paths: str) -> tuple[int, str]:
    """Check against the baseline; return the exit code, and what is said of stale findings."""
    code, _, err = check(capsys, *paths, *ASKED[1:], "--fail-on-stale")
    return code, err


def test_a_program_that_moves_keeps_what_is_known(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "exports").mkdir()
    (folder / "m.mlir").rename(folder / "exports/model.mlir")
    assert known(capsys, "exports") == (0, "")
    assert check(capsys, "exports", *ASKED[1:], "--update-baseline")[0] == 0
    assert [each["file"] for each in entries(folder)] == ["exports/model.mlir"]
    assert json.loads((folder / "known.json").read_text())["programs"][0]["file"] == "exports/model.mlir"


def test_one_that_moves_and_changes_is_known_by_its_name_and_its_functions(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "m.mlir").unlink()
    write(folder / "exports/m.mlir", blocked(30, 40))
    assert known(capsys, "exports") == (0, "")
    private = "func.func private @other(%a: tensor<4xf32>) { return }"
    write(folder / "exports/m.mlir", blocked(30, 40) + private)
    code, err = known(capsys, "exports")
    assert (code, "m.mlir for 1.3.0 no longer has tan in @main/stablehlo.tan (2 times)" in err) == (1, True)
    (folder / "exports/m.mlir").rename(folder / "exports/another.mlir")
    write(folder / "exports/another.mlir", blocked(30, 40))
    assert known(capsys, "exports")[0] == 1


def test_a_copy_of_a_program_that_is_still_there_is_another_program(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder / "copy.mlir", blocked(10, 20))
    assert known(capsys, "m.mlir") == (0, "")
    assert known(capsys, "copy.mlir")[0] == 1


def test_what_two_programs_share_is_known_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.mlir").unlink()
    for name in ("a.mlir", "b.mlir"):
        write(folder / name, blocked(10, 20))
    code, out, _ = check(capsys, ".", *ASKED[1:])
    assert (code, out.splitlines()[0]) == (1, "a.mlir: ok for 1.3.0 (1 known)")


def test_programs_that_change_places_keep_what_is_known(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "good.mlir", GOOD)
    (folder / "m.mlir").rename(folder / "other.mlir")
    (folder / "good.mlir").rename(folder / "m.mlir")
    assert known(capsys, ".") == (0, "")


def test_baselines_of_the_first_format_know_programs_by_their_paths(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads((folder / "known.json").read_text())
    del document["programs"]
    write(folder / "known.json", json.dumps(document | {"format": 1}))
    assert known(capsys, "m.mlir") == (0, "")
    (folder / "m.mlir").rename(folder / "moved.mlir")
    assert known(capsys, "moved.mlir")[0] == 1


def test_what_was_not_asked_is_kept_unless_its_file_is_gone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "other.mlir", blocked(10))
    asked = ("other.mlir", "--target", "1.2.0", "--baseline", "known.json")
    assert check(capsys, *asked, "--update-baseline")[0] == 0
    assert [(each["file"], each["target"]) for each in entries(folder)] == [
        ("m.mlir", "1.3.0"),
        ("other.mlir", "1.2.0"),
    ]
    (folder / "m.mlir").unlink()
    assert "m.mlir for 1.3.0 no longer has tan" in check(capsys, *asked)[2]
    check(capsys, *asked, "--update-baseline")
    assert [each["file"] for each in entries(folder)] == ["other.mlir"]


def test_a_file_that_cannot_be_read_keeps_what_is_known(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = entries(folder)
    write(folder / "m.mlir", "nonsense")
    assert check(capsys, *ASKED, "--update-baseline")[0] == 2
    assert entries(folder) == before


def test_notes_are_never_known_and_allowed_findings_neither(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = "%0 = stablehlo.custom_call @kernel(%a) : (tensor<4xf32>) -> tensor<4xf32>"
    write(folder / "m.mlir", f"func.func @main(%a: tensor<4xf32>) {{ {call} return }}")
    check(capsys, *ASKED, "--update-baseline")
    assert entries(folder) == []
    write(folder / "m.mlir", blocked(10))
    check(capsys, *ASKED, "--update-baseline", "--allow", "tan")
    assert entries(folder) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "known.json: the baseline does not exist: --update-baseline writes it"),
        ("{", "known.json is not a baseline: expected JSON"),
        pytest.param("[" * 100_000, "known.json is not a baseline: expected JSON: it nests too deeply", id="deep"),
        ('{"format": 1, "format": 2}', "the key 'format' occurs twice"),
        ("[]", 'known.json is not a baseline: expected an object with "format" and "findings"'),
        ('{"format": 3, "findings": []}', "expected a baseline of format 1 or 2, found 3"),
        ('{"format": 2, "programs": {}, "findings": []}', "expected a list of programs, found {}"),
        ('{"format": 2, "programs": [3], "findings": []}', "programs[0]: expected a file, its content as SHA-256"),
        (
            '{"format": 2, "programs": [{"file": "a", "content": "00", "functions": 1}], "findings": []}',
            "programs[0]: expected a file, its content as SHA-256",
        ),
        ('{"format": 1, "findings": [3]}', "findings[0]: expected an object"),
        ('{"format": 1, "findings": [{"file": "a", "target": "b", "count": 1}]}', "findings[0]: feature is missing"),
        (
            '{"format": 1, "findings": [{"file": "a", "target": "b", "feature": "c", "count": 0}]}',
            "findings[0]: expected a count of 1 or more, found 0",
        ),
        (
            '{"format": 1, "findings": [{"file": "a", "target": "b", "feature": "c", "count": 1, "line": "1"}]}',
            "findings[0]: line is unknown",
        ),
        (
            '{"format": 1, "findings": [{"file": "a", "target": 1, "feature": "c", "count": 1}]}',
            "findings[0]: expected a string as target, found 1",
        ),
    ],
)
def test_what_is_no_baseline(text: str | None, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if text is None:
        (folder / "known.json").unlink()
    else:
        write(folder / "known.json", text)
    code, out, err = check(capsys, *ASKED)
    assert (code, out) == (2, "")
    assert message in err


def test_findings_need_not_fail(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("m.mlir", "--target", "1.3.0", "--exit-zero")
    assert check(capsys, *asked)[0] == 0
    write(folder / "m.mlir", "nonsense")
    assert check(capsys, *asked)[0] == 2
    assert check(capsys, "m.mlir", "--target", "1.x", "--exit-zero")[0] == 2
