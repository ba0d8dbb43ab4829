"""``vhlo check``: the gate, its exit codes and what it prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES, FEATURES
from support.terminals import Terminal
from support.vhlo_process import called, standard_files, vhlo

import vhlo_tools as vt
from vhlo_tools.cli.main import main

SAXPY, TAN = str(EXAMPLES / "saxpy.mlir"), str(FEATURES / "tan.mlir")
SHARDED = str(EXAMPLES / "sharded_matmul.mlir")


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["check", *arguments])
    return code, capsys.readouterr().out


def findings(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    main(["check", *arguments, "--output-format", "json"])
    (file,) = json.loads(capsys.readouterr().out)["files"]
    found: list[dict[str, Any]] = file["findings"]
    return found


def test_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(capsys, SAXPY, "--target", "0.9.0") == (0, f"{SAXPY}: ok for 0.9.0\nchecked 1 program: no errors\n")


def test_what_stands_in_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.mlir").write_text(
        Path(TAN).read_text().replace(": tensor<4xf32>\n", ': tensor<4xf32> loc("m.py":42:1)\n')
    )
    code, out = checked(capsys, "model.mlir", "--target", "1.3.0")
    assert code == 1
    assert out.splitlines() == [
        "model.mlir: 1 error for 1.3.0",
        "  error: tan, since 1.4.0",
        "    stablehlo.tan needs StableHLO 1.4.0: the op tan",
        "      m.py:42:1 in @main",
        "    -> write tan(x) as sine(x) / cosine(x); or rewrite it with --expand; or",
        "       choose 1.4.0 or later",
        "checked 1 program: 1 has errors",
    ]


@pytest.mark.parametrize(
    "path", [*sorted(EXAMPLES.glob("*.mlir")), *sorted(FEATURES.glob("*.mlir"))], ids=lambda p: p.name
)
def test_text_fits_80_columns(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.chdir(path.parent)
    try:
        _, out = checked(capsys, path.name, "--target", "0.9.0")
    except SystemExit:
        pytest.fail("a usage error")
    assert [line for line in out.splitlines() if len(line) > 80] == []


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    (finding,) = findings(capsys, TAN, "--target", "1.3.0")
    assert finding == {
        "feature": "tan",
        "level": "error",
        "kind": "op",
        "message": "stablehlo.tan needs StableHLO 1.4.0: the op tan",
        "op": "stablehlo.tan",
        "path": "@main/0:stablehlo.tan",
        "function": "main",
        "location": f"{TAN}:2:8",
        "introduced": "1.4.0",
        "target": "1.3.0",
        "count": 1,
        "remedy": "write tan(x) as sine(x) / cosine(x); or rewrite it with --expand; or choose 1.4.0 or later",
        "unknown": False,
    }


def test_several_targets_make_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = checked(capsys, SAXPY, TAN, "--target", "1.3.0", "--target", "1.4.0")
    assert code == 1
    rows = [line.rsplit(None, 2) for line in out.splitlines()[:3]]
    assert rows == [["program", "1.3.0", "1.4.0"], [SAXPY, "yes", "yes"], [TAN, "no", "yes"]]
    assert f"{TAN}: 1 error for 1.3.0" in out


def test_the_question_of_a_reader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "saxpy.mlirbc")
    vt.serialize(EXAMPLES / "transformer_step.mlir", "1.10.0").save(path)
    assert main(["check", path, "--target", "jaxlib==0.4.31"]) == 0
    capsys.readouterr()
    found = findings(capsys, path, "--readable-by", "jaxlib==0.4.31")
    assert {each["feature"] for each in found} >= {"range_locations", "dot_algorithm", "result_accuracy"}
    assert {each["level"] for each in found} == {"error"}
    assert "vhlo retarget" in found[0]["remedy"]
    assert main(["check", path, "--readable-by", "1.10.0"]) == 0


def test_folders_and_globs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a folder"
    (folder / "deep").mkdir(parents=True)
    vt.serialize(SAXPY).save(folder / "deep" / "artifact.without_suffix")
    (folder / "b.mlir").write_text(Path(TAN).read_text())
    (folder / "notes.txt").write_text("not a program")
    code, out = checked(capsys, str(folder), "--target", "1.4.0", "--output-format", "json")
    assert code == 0
    assert [Path(each["path"]).name for each in json.loads(out)["files"]] == ["b.mlir", "artifact.without_suffix"]
    code, out = checked(capsys, str(folder / "**" / "*.mlir"), "--target", "1.3.0", "--output-format", "json")
    assert (code, len(json.loads(out)["files"])) == (1, 1)


def test_what_a_migration_leaves_does_not_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytes(vt.serialize(SAXPY))
    for name in ("model.mlirbc", "model.mlirbc.orig", ".vhlo-1234.mlirbc"):
        (tmp_path / name).write_bytes(data)
    code, out = checked(capsys, str(tmp_path), "--target", "1.4.0")
    assert (code, out.splitlines()[-1], len(out.splitlines())) == (0, "checked 1 program: no errors", 2)
    # Unless it is named.
    code, out = checked(capsys, str(tmp_path / "model.mlirbc.orig"), "--target", "1.4.0")
    assert (code, out.splitlines()[0]) == (0, f"{tmp_path / 'model.mlirbc.orig'}: ok for 1.4.0")


def test_a_bad_file_does_not_hide_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.mlirbc"
    bad.write_bytes(bytes(vt.serialize(SAXPY))[:100])
    code, out = checked(capsys, str(bad), TAN, "--target", "1.3.0")
    assert code == 2
    assert f"{bad}: cannot be checked" in out
    assert f"{TAN}: 1 error for 1.3.0" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([SAXPY], "expected a PATH, and --target or --readable-by"),
        (["--target", "1.0.0"], "expected a PATH"),
        ([SAXPY, "--target", "1.x"], "1.x"),
        (["nothing/*.mlir", "--target", "1.0.0"], "not a file, not a folder with programs"),
        (["--explain", "tanh"], "'tanh' is not a feature"),
        (["--explain", "alias"], "did you mean alias_and_donor"),
        (["--explain", "dot_algoritm"], "did you mean dot_algorithm"),
    ],
)
def test_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = checked(capsys, "--explain", "mesh_replica_groups")
    assert code == 0
    assert "mesh_replica_groups (attribute), since StableHLO 1.16.0" in out
    assert "on the ops: all_gather, all_reduce" in out
    code, out = checked(capsys, "--explain", "tan", "--output-format", "json")
    assert json.loads(out)["introduced"] == "1.4.0"
    code, out = checked(capsys, "--explain", "rewritten")
    assert out.startswith("rewritten (note)\n  Something that no artifact can hold was rewritten")
    code, out = checked(capsys, "--explain", "withdrawn_trace_v1", "--output-format", "json")
    assert (json.loads(out)["id"], json.loads(out)["level"]) == ("withdrawn_trace_v1", "error")


def test_other_dialects_of_programs_and_of_artifacts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shardings of several devices stay where readers know them; an artifact that holds other dialects keeps them."""
    assert main(["check", SHARDED, "--target", "1.12.0"]) == 0
    assert main(["check", SHARDED, "--target", "1.12.0", "--no-legalize"]) == 1
    assert main(["check", SHARDED, "--target", "1.12.0", "--allow-other-dialects"]) == 0
    capsys.readouterr()
    levels = {each["level"] for each in findings(capsys, SHARDED, "--target", "1.10.0", "--allow-other-dialects")}
    assert levels == {"warning"}
    path = str(tmp_path / "sharded.mlirbc")
    vt.serialize(SHARDED, allow_other_dialects=True).save(path)
    assert main(["check", path, "--target", "1.12.0"]) == 0


def test_attributes_that_a_round_trip_changes_or_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "p.mlir"
    program.write_text("func.func @main(%a: tensor<4xf32> {my.x = array<i64: 1, 2>}) { return }")
    (finding,) = findings(capsys, str(program), "--target", "1.0.0")
    assert (finding["level"], finding["feature"]) == ("warning", "attribute_fidelity")
    assert finding["message"].startswith("my.x of argument 0 of @main is an array<i64>, which")
    back = str(vt.deserialize(vt.serialize(program)))
    assert "my.x = dense<[1, 2]> : tensor<2xi64>" in back
    signature = "(%a: tensor<4xf32> {my.x}) -> (tensor<4xf32> {my.y = array<i32: 1>})"
    program.write_text(f"func.func @main{signature} {{ return %a : tensor<4xf32> }}")
    found = findings(capsys, str(program), "--target", "1.0.0", "--no-legalize")
    assert [each["message"] for each in found] == [
        "my.x of argument 0 of @main is a unit attribute, which VHLO cannot represent",
        "my.y of result 0 of @main is an array<i32>, which VHLO cannot represent",
    ]
    found = findings(capsys, str(program), "--target", "1.0.0")
    assert [(each["level"], each["message"]) for each in found] == [
        ("note", "my.x of argument 0 of @main contains unit, which is encoded as true"),
        ("note", "my.y of result 0 of @main contains array<i32>, which is encoded as a dense tensor"),
    ]


def test_require() -> None:
    artifact = vt.serialize(TAN, "1.4.0")
    assert str(vt.require(artifact, "1.4.0")) == "1.4.0"
    with pytest.raises(
        vt.UnsupportedFeatureError, match=r"cannot be read by jaxlib==0.4.26 \(StableHLO 0.19.4\)"
    ) as refused:
        vt.require(bytes(artifact), "jaxlib==0.4.26")
    assert [finding.feature for finding in refused.value.findings] == ["tan"]


def test_custom_calls_are_noted(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / "custom_calls.mlir")
    found = findings(capsys, path, "--target", "1.12.0", "--allow-other-dialects")
    assert {each["level"] for each in found} == {"note"}
    messages = [each["message"] for each in found]
    assert any("a custom call of lapack_spotrf_ffi (API_VERSION_ORIGINAL)" in message for message in messages)
    assert main(["check", path, "--target", "1.12.0", "--allow-other-dialects"]) == 0
    assert "note: custom_call" in capsys.readouterr().out


def test_progress_is_shown_on_a_terminal_that_does_not_show_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        (tmp_path / f"{number}.mlir").write_text(Path(SAXPY).read_text())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")

    def check(*options: str, shows_report: bool = False) -> int:
        def run(files: tuple[int, int, int]) -> int:
            with standard_files(files[0], terminal.inside if shows_report else files[1], terminal.inside):
                return main(["check", ".", "--target", "1.9.0", "-j", "1", *options])

        return called(run, folder=tmp_path).returncode

    with Terminal(100) as terminal:
        for options in (("-o", "report.txt"), ()):
            assert check(*options) == 0
            assert "3/3" in terminal.shown()
        # A terminal that shows the report has no place for a bar.
        assert check(shows_report=True) == 0
        assert "/3" not in terminal.shown()
    # Nor has a log, for a run as short as this.
    done = vhlo("check", ".", "--target", "1.9.0", "-j", "1", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
