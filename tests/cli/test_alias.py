"""`vhlo alias` from end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.aliasing import Alias, Donor
from vhlo_tools.artifact import JaxContainer
from vhlo_tools.cli.main import main
from vhlo_tools.files import read_signature

PROGRAM = """
func.func @main(%a: tensor<4xf32> loc("weights"), %b: tensor<4xf32>, %c: tensor<8xf32>)
    -> (tensor<4xf32> {jax.result_info = "new"}, tensor<4xf32>) {
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
"""


@pytest.fixture
def artifact(tmp_path: Path) -> str:
    path = tmp_path / "in.mlirbc"
    vt.serialize(PROGRAM, "0.9.0").save(path)
    return str(path)


@pytest.fixture
def out(tmp_path: Path) -> str:
    return str(tmp_path / "out.mlirbc")


def shown(path: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["alias", "show", path, "--output-format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_set_show_convert_and_clear(artifact: str, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alias", "show", artifact]) == 0
    assert capsys.readouterr().out == "no aliases, no donors\n"
    assert main(["alias", "set", artifact, "-o", out, "--alias", "0=0", "--donor", "1"]) == 0
    opened = vt.open_artifact(out)
    assert (opened.aliases().aliases, opened.aliases().donors) == ((Alias((0,), 0),), (Donor(1),))
    assert str(opened.version) == "0.9.0"
    assert main(["alias", "show", out]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["output", "parameter", "shape", "kind", "written", "on", "name"],
        ["{0}", "0", "f32[4]", "may-alias", "argument", "weights"],
        ["1", "f32[4]", "donor", "argument"],
    ]
    # An existing output is not replaced unasked.
    assert main(["alias", "convert", out, "-o", out, "--form", "module"]) == 2
    assert main(["alias", "convert", out, "-o", out, "--form", "module", "--force"]) == 0
    assert "mhlo.input_output_alias" in str(vt.deserialize(out))
    (alias,) = shown(out, capsys)["aliases"]
    assert alias == {
        "output_index": [0],
        "parameter_number": 0,
        "parameter_index": [],
        "kind": "may-alias",
        "form": "module",
        "name": "weights",
        "shape": "f32[4]",
        "output_shape": "f32[4]",
        "output_name": "new",
    }
    assert main(["alias", "clear", out, "-o", out, "--force"]) == 0
    assert vt.diff(out, artifact, locations=True) == []


def test_spellings_of_aliases(artifact: str, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    for text, alias in (
        ("1=0", Alias((1,), 0)),
        (" 1 = 0 ", Alias((1,), 0)),
        ("{1}=0", Alias((1,), 0)),
        ("{1}=(0,{})", Alias((1,), 0)),
        ("{1}=(0,{}),must-alias", Alias((1,), 0, (), "must-alias")),
        ("{1}=0,must-alias", Alias((1,), 0, (), "must-alias")),
        ("{1}=(0,{},may-alias)", Alias((1,), 0)),
    ):
        assert main(["alias", "set", artifact, "-o", out, "--alias", text, "--force"]) == 0
        assert vt.open_artifact(out).aliases().aliases == (alias,)
    for text in ("", "x", "1", "1=", "{1}=(0,{}),may", "{1}=(0)", "1=0,must-alias", "{1}=0 {0}=1"):
        assert main(["alias", "set", artifact, "-o", out, "--alias", text, "--force"]) == 2
        assert "expected" in capsys.readouterr().err
    assert main(["alias", "set", artifact, "-o", out, "--donor", "x", "--force"]) == 2
    assert main(["alias", "set", artifact, "-o", out, "--donor", "(1,{})", "--force"]) == 0
    assert vt.open_artifact(out).aliases().donors == (Donor(1),)


def test_one_result_is_number_0(tmp_path: Path, out: str) -> None:
    path = tmp_path / "one.mlirbc"
    vt.serialize("func.func private @main(tensor<4xf32>) -> tensor<4xf32>").save(path)
    for text in ("0=0", "{}=0", "{}=(0,{})"):
        assert main(["alias", "set", str(path), "-o", out, "--alias", text, "--force"]) == 0
        assert vt.open_artifact(out).aliases().aliases == (Alias((), 0),)


def test_set_replaces_or_keeps(artifact: str, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alias", "set", artifact, "-o", out, "--alias", "0=0", "--form", "module"]) == 0
    assert main(["alias", "set", out, "-o", out, "--alias", "1=1", "--keep", "--force"]) == 0
    assert vt.open_artifact(out).aliases().aliases == (Alias((0,), 0), Alias((1,), 1))
    assert vt.open_artifact(out).declared_aliases().declared.form == "module"
    assert main(["alias", "set", out, "-o", out, "--alias", "1=0", "--keep", "--force"]) == 2
    assert "output {1} is aliased with parameter 0 and with parameter 1" in capsys.readouterr().err
    assert main(["alias", "set", out, "-o", out, "--alias", "1=0", "--force"]) == 0
    assert vt.open_artifact(out).aliases().aliases == (Alias((1,), 0),)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--alias", "2=0"], "there is no output {2}"),
        (["--alias", "0=3"], "there is no parameter 3: the program has 3"),
        (["--alias", "0=2"], "parameter 2 at {} is f32[8] of 32"),
        (["--alias", "{0}=(0,{}),must-alias", "--form", "argument"], "of the module (the form module)"),
        (["--donor", "0", "--alias", "0=0"], "is a donor and has an alias"),
        ([], "expected --alias or --donor"),
    ],
)
def test_what_is_refused(
    artifact: str, out: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["alias", "set", artifact, "-o", out, *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not Path(out).exists()


def test_reports_as_json(artifact: str, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alias", "set", artifact, "-o", out, "--donor", "2", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["output"], report["kind"]) == (True, out, "portable-artifact")
    assert report["aliases"] == []
    assert [each["parameter_number"] for each in report["donors"]] == [2]
    assert [each["feature"] for each in report["findings"]] == ["alias_unusable_donor"]


def test_programs_that_are_no_artifacts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text(PROGRAM.replace('loc("weights")', "{tf.aliasing_output = 5 : i32}"))
    (alias,) = shown(str(path), capsys)["aliases"]
    assert (alias["output_index"], alias["output_shape"], alias["output_name"]) == ([5], None, None)
    assert main(["check", str(path), "--target", "current"]) == 1
    assert "error: alias_output_index" in capsys.readouterr().out
    # Text is made an artifact first, and then changed.
    assert main(["alias", "clear", str(path), "-o", str(tmp_path / "out")]) == 2
    assert "`vhlo serialize` converts it" in capsys.readouterr().err


def test_calls_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "call.mlir"
    path.write_text("""func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.custom_call @fill(%a) {output_operand_aliases = [
        #stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]}
        : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }""")
    assert main(["alias", "show", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "no aliases, no donors",
        "@main/0:stablehlo.custom_call, fill:",
        "  result {} over operand (0, {})",
    ]


def test_files_of_jax(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers are those of main and those of the caller, and the file remains one of jax."""
    source, out = EXAMPLES / "jax_store" / "train_step.jax_export", str(tmp_path / "out.jax_export")
    before = shown(str(source), capsys)
    assert before["aliases"]
    assert all(each["caller_argument"] is not None and each["name"].startswith("args") for each in before["aliases"])
    assert main(["alias", "convert", str(source), "-o", out, "--form", "module"]) == 0
    after = shown(out, capsys)
    assert [{**each, "form": "argument"} for each in after["aliases"]] == before["aliases"]
    assert main(["alias", "convert", out, "-o", out, "--form", "argument", "--force"]) == 0
    assert shown(out, capsys) == before
    assert vt.diff(out, source) == []
    assert main(["alias", "clear", out, "-o", out, "--force"]) == 0
    assert shown(out, capsys)["aliases"] == []
    one, other = JaxContainer.open(out), JaxContainer.open(source)
    assert read_signature(one.export) == read_signature(other.export)
    assert one.artifacts[1:] == other.artifacts[1:]
    assert main(["alias", "show", str(source)]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == [
        *("output", "parameter", "argument", "shape", "kind", "written", "on", "name")
    ]


def test_arguments_of_callers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A platform index before them, and one of them dropped: main counts otherwise."""
    import jax
    import jax.export

    def step(unused: Any, state: Any, *, batch: Any) -> Any:
        return {"loss": batch.sum(), "state": state + batch}

    shape = jax.ShapeDtypeStruct((4,), "float32")
    exported = jax.export.export(jax.jit(step), platforms=("cpu", "cuda"))(shape, shape, batch=shape)
    source, out = tmp_path / "in.jax_export", str(tmp_path / "out.jax_export")
    source.write_bytes(exported.serialize())
    assert main(["alias", "set", str(source), "-o", out, "--alias", "1=1", "--donor", "2", "--caller"]) == 0
    found = shown(out, capsys)
    (alias,), (donor,) = found["aliases"], found["donors"]
    assert (alias["parameter_number"], alias["caller_argument"], alias["name"]) == (1, 1, "args[1]")
    assert (alias["output_index"], alias["output_name"]) == ([1], "result['state']")
    assert (donor["parameter_number"], donor["caller_argument"], donor["name"]) == (2, 2, "kwargs['batch']")
    assert "tf.aliasing_output = 1" in jax.export.deserialize(bytearray(Path(out).read_bytes())).mlir_module()
    for arguments, message in (
        (["--donor", "0"], "argument 0 of the caller, args[0], was removed: main does not use it"),
        (["--donor", "3"], "the caller has no argument 3: it has 3"),
        (["--alias", "2=1"], "the caller has no result 2: it has 2"),
    ):
        assert main(["alias", "set", str(source), "-o", out, "--force", "--caller", *arguments]) == 2
        assert message in capsys.readouterr().err


def test_callers_of_what_has_none(artifact: str, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alias", "set", artifact, "-o", out, "--donor", "0", "--caller"]) == 2
    assert "of the caller" in capsys.readouterr().err


def test_calls_are_set_and_cleared(tmp_path: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "call.mlirbc")
    vt.serialize(
        """func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.custom_call @fill(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }""",
        "0.9.0",
    ).save(path)
    place = "@main/0:stablehlo.custom_call"
    assert main(["alias", "show", path, "--calls"]) == 0
    assert capsys.readouterr().out.splitlines() == ["no aliases, no donors", f"{place}, fill: no aliases"]
    for call in ("fill", place):
        assert main(["alias", "set", path, "-o", out, "--call", call, "--alias", "0=1", "--force"]) == 0
        (shown_call,) = shown(out, capsys)["calls"]
        assert (shown_call["path"], shown_call["target"]) == (place, "fill")
        assert [(each["output_index"], each["parameter_number"]) for each in shown_call["aliases"]] == [([], 1)]
    assert main(["alias", "clear", out, "-o", out, "--force"]) == 0
    assert len(shown(out, capsys)["calls"]) == 1
    assert main(["alias", "set", out, "-o", out, "--call", "fill", "--alias", "{}=(0,{})", "--force"]) == 0
    assert [each["parameter_number"] for each in shown(out, capsys)["calls"][0]["aliases"]] == [0]
    assert main(["alias", "clear", out, "-o", out, "--call", "fill", "--force"]) == 0
    assert vt.diff(out, path, locations=True) == []
    for arguments, message in (
        (
            ["--call", "file", "--alias", "0=0"],
            f"there is no custom call file: expected a path or a target; the program has {place}",
        ),
        (["--call", "fill", "--alias", "0=2"], "there is no operand 2: the call has 2"),
        (["--call", "fill", "--alias", "{}=(0,{}),may-alias"], "an alias of a custom call is always a must-alias"),
        (["--call", "fill", "--donor", "0"], "a custom call can only have aliases"),
        (["--call", "fill"], "expected --alias"),
    ):
        assert main(["alias", "set", path, "-o", out, "--force", *arguments]) == 2
        assert message in capsys.readouterr().err


def test_programs_without_main(tmp_path: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "two.mlirbc")
    function = (
        "func.func @{}(%x: tensor<f32> {{tf.aliasing_output = 0 : i32}}) -> tensor<f32> {{ return %x : tensor<f32> }}"
    )
    vt.serialize(f"{function.format('a')} {function.format('b')}").save(path)
    assert main(["alias", "show", path]) == 0
    assert capsys.readouterr().out == "no function main, so no aliases, no donors\n"
    assert main(["alias", "set", path, "-o", out, "--alias", "0=0"]) == 2
    assert f"{path} has no function main, so it cannot have aliases" in capsys.readouterr().err
    assert main(["check", path, "--target", "current"]) == 0
    said = capsys.readouterr().out
    assert "tf.aliasing_output of argument 0 of @b is silently ignored" in said
    assert "finds no function main" in said.replace("\n   ", "")
