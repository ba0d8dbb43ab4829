"""``vhlo diff`` as a command, and artifacts in git."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from support.corpus import EXAMPLES, ROOT
from support.forked_python import COMMAND
from support.json_records import body
from support.vhlo_process import warm_python

import vhlo_tools as vt
from vhlo_tools.cli.main import main

SAXPY = EXAMPLES / "saxpy.mlir"


@pytest.fixture
def changed(tmp_path: Path) -> str:
    path = tmp_path / "changed.mlir"
    path.write_text(SAXPY.read_text().replace("stablehlo.add", "stablehlo.subtract"))
    return str(path)


def test_programs_of_any_kind(changed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = str(tmp_path / "saxpy.mlirbc")
    vt.serialize(SAXPY, "1.4.0").save(artifact)
    assert main(["diff", str(SAXPY), str(SAXPY)]) == 0
    assert main(["diff", str(SAXPY), artifact]) == 0
    assert main(["diff", artifact, artifact]) == 0
    assert capsys.readouterr().out == ""
    assert main(["diff", artifact, changed]) == 1
    out = capsys.readouterr().out
    assert out.startswith("op: 1 difference\n  @main/2:stablehlo.add\n    - stablehlo.add : ")
    assert "\n    + stablehlo.subtract : " in out
    assert max(map(len, out.splitlines())) <= 80


def test_versions_count_unless_ignored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = str(tmp_path / "one.mlirbc"), str(tmp_path / "other.mlirbc")
    vt.serialize(SAXPY, "0.9.0").save(one)
    vt.serialize(SAXPY, "1.9.0").save(other)
    assert main(["diff", one, other]) == 1
    assert capsys.readouterr().out == "version: 1 difference\n    - 0.9.0\n    + 1.9.0\n"
    assert main(["diff", one, other, "--ignore", "version"]) == 0
    assert main(["diff", one, other, "--ignore", "nonsense"]) == 2


def test_as_json(changed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(SAXPY), changed, "--output-format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["equal"] is False
    (found,) = report["differences"]
    assert (found["kind"], found["path"]) == ("op", "@main/2:stablehlo.add")
    assert found.keys() == {"kind", "path", "before", "after"}
    assert main(["diff", changed, changed, "--format", "json"]) == 0
    assert body(capsys.readouterr().out) == {"equal": True, "differences": []}


def test_what_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    garbage, broken = tmp_path / "garbage.mlirbc", tmp_path / "broken.mlir"
    garbage.write_bytes(b"ML\xefR\x0dStableHLO_v1.4.0\0\xff")
    broken.write_text("func.func @main(%a: tensor<f32>) { return %a")
    vt.serialize(SAXPY).save(tmp_path / "damaged.mlirbc")
    damaged = bytearray((tmp_path / "damaged.mlirbc").read_bytes())
    section = next(each for each in vt.open_artifact(bytes(damaged)).sections if each.name == "ir")
    damaged[section.offset + 2] ^= 0xFE
    (tmp_path / "damaged.mlirbc").write_bytes(damaged)
    # Both at one version, so that they are compared as bytes.
    one = str(tmp_path / "one.mlirbc")
    vt.serialize(SAXPY).save(one)
    assert main(["diff", one, str(tmp_path / "damaged.mlirbc")]) == 2
    assert "damaged.mlirbc: " in capsys.readouterr().err
    for path in (garbage, broken, tmp_path / "missing"):
        assert main(["diff", str(SAXPY), str(path)]) == 2, path
        assert str(path) in capsys.readouterr().err
    assert main(["diff", "-", "-"]) == 2


def test_an_array_that_comes_back_as_a_tensor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, artifact = tmp_path / "program.mlir", tmp_path / "artifact.mlirbc"
    program.write_text("func.func @main(%a: tensor<f32> {some.list = array<i64: 1, 2>}) { return }")
    vt.serialize(program).save(artifact)
    assert main(["diff", str(program), str(program)]) == 0
    assert main(["diff", str(program), str(artifact)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "argument attribute: 1 difference",
        "  @main argument 0 some.list",
        "    - array<i64: 1, 2>",
        "    + a dense tensor",
    ]
    assert vt.diff(artifact, vt.deserialize(artifact), ignore=["argument attribute"]) == []


def test_programs_that_no_artifact_can_hold() -> None:
    program = """func.func @main() -> tensor<2xf32> attributes {some.list = array<i32: 1>} {
        %0 = stablehlo.constant dense_resource<blob> : tensor<2xf32>
        return %0 : tensor<2xf32>
      }
      {-# dialect_resources: { builtin: { blob: "0x040000000000803F00000040" } } #-}"""
    assert vt.diff(program, program) == []
    assert [each.path for each in vt.diff(program, program.replace("i32: 1", "i32: 2"))] == ["@main some.list"]
    (found,) = vt.diff(program, program.replace("803F", "8040"))
    assert found.path.startswith("@main/0:stablehlo.constant")


def test_kinds_to_ignore_are_known() -> None:
    with pytest.raises(ValueError, match="'nonsense' is not a kind of difference: expected one of version"):
        vt.diff(SAXPY, SAXPY, ignore=["nonsense"])  # type: ignore[list-item]


def documented_command() -> str:
    """Return what the documentation says to type to have git show artifacts."""
    lines = (ROOT / "docs" / "artifacts.md").read_text().splitlines()
    (command,) = (line.removeprefix("$ ") for line in lines if line.startswith("$ git config "))
    return command


def test_git_shows_artifacts_as_text(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    def git(*arguments: str) -> str:
        result = subprocess.run(["git", *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stdout

    git("init", "-q")
    git("config", "user.email", "someone@example.org")
    git("config", "user.name", "Someone")
    (tmp_path / ".gitattributes").write_text((ROOT / ".gitattributes").read_text())
    program = tmp_path_factory.mktemp("bin") / "vhlo"
    warm_python().write_program(program, COMMAND)
    # As documented, but for the program: git hands the value to a shell.
    *words, value = shlex.split(documented_command())[1:]
    git(*words, value.replace("vhlo ", f"{shlex.quote(str(program))} ", 1))
    artifact = tmp_path / "saxpy.mlirbc"
    vt.serialize(SAXPY, "1.4.0").save(artifact)
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    vt.serialize(SAXPY.read_text().replace("stablehlo.add", "stablehlo.subtract"), "1.4.0").save(artifact, force=True)
    lines = git("diff").splitlines()
    assert next(each for each in lines if each.startswith("-    ")).split(" = ")[1].startswith('"vhlo.add_v1"')
    assert next(each for each in lines if each.startswith("+    ")).split(" = ")[1].startswith('"vhlo.subtract_v1"')
