"""jax.export files at the command line: inspected, moved and stripped as what they are."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax
import jax.export
import pytest
from support.corpus import EXAMPLES
from support.large_artifacts import write_artifact_of_constants
from support.processes import run_measured

import vhlo_tools as vt
from vhlo_tools.artifact import JaxContainer
from vhlo_tools.cli.main import main
from vhlo_tools.files.jax_export import replace_modules
from vhlo_tools.files.mapping import join

LOSS = EXAMPLES / "jax_store" / "loss.jax_export"
VHLO = [sys.executable, "-m", "vhlo_tools.cli.main"]


@pytest.mark.parametrize("engine", ["auto", "bytes", "mlir"])
def test_retarget_gives_back_such_a_file(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "loss.jax_export"
    command = ["retarget", str(LOSS), "--target", "1.1.0", "--engine", engine, "-o", str(out)]
    assert main([*command, "--output-format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["kind"], report["version"], report["size"]) == ("jax-export", "1.1.0", out.stat().st_size)
    assert {artifact.version for artifact in JaxContainer.open(out).artifacts} == {vt.Version("1.1.0")}
    exported = jax.export.deserialize(bytearray(out.read_bytes()))
    assert exported.vjp().vjp().fun_name


def test_what_stands_in_the_way_is_said_of_all_artifacts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "in.jax_export", tmp_path / "out.jax_export"
    step = bytes(vt.serialize(EXAMPLES / "transformer_step.mlir", "1.9.0"))
    source.write_bytes(join(replace_modules(LOSS.read_bytes(), lambda number, old: [old if number == 1 else step])))
    assert main(["retarget", str(source), "--target", "1.0.0", "-o", str(out)]) == 1
    error = capsys.readouterr().err
    assert f"{source} cannot be written for 1.0.0" in error
    assert f"the vjp in the vjp in {source} cannot be written for 1.0.0" in error
    # The same reason is given once.
    assert error.count("stablehlo.gather") == 1
    assert not out.exists()


def test_strip_gives_back_such_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "loss.jax_export"
    assert main(["retarget", "--strip-debug-info", str(LOSS), "-o", str(out), "--output-format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["kind"], report["size"]) == ("jax-export", out.stat().st_size)
    assert out.stat().st_size < LOSS.stat().st_size
    assert jax.export.deserialize(bytearray(out.read_bytes())).fun_name == "loss"
    assert main(["retarget", "--strip-debug-info", str(EXAMPLES / "saxpy.mlir"), "-o", str(out), "--force"]) == 2
    assert "is text: expected a portable artifact" in capsys.readouterr().err


def test_inspect_shows_how_it_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "-a", str(LOSS)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "in tree:             (({'hidden': f32[6,4], 'output': f32[4]}, f32[8,6], f32[8]), {})" in lines
    assert "  args[0]['output']: f32[4], number 1 of main" in lines
    assert lines.count("vjp:") == 2
    assert "    result[4]: f32[8], number 4 of main" not in lines
    assert main(["inspect", "-a", str(EXAMPLES / "jax_store" / "evaluate.jax_export")]) == 0
    assert "  args[1]: u32[2], dropped" in capsys.readouterr().out.splitlines()
    assert main(["inspect", str(EXAMPLES / "jax_store" / "gelu.jax_export"), "--output-format", "json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert (described["main_arguments"], described["platforms"]) == (["platform index", "args[0]"], ["cpu", "cuda"])


def test_serialize_takes_the_artifact_out(tmp_path: Path) -> None:
    out = tmp_path / "loss.mlirbc"
    assert main(["serialize", str(LOSS), "--target", "1.1.0", "-o", str(out)]) == 0
    assert vt.diff(vt.open_artifact(out), vt.open_artifact(LOSS), ignore=["version"]) == []


def test_constants_in_such_a_file_are_not_held(tmp_path: Path) -> None:
    """What is done to a file with three artifacts of 120 MB takes less than 100 MB above an idle interpreter."""
    large, source, out = (tmp_path / name for name in ("large.mlirbc", "in.jax_export", "out.jax_export"))
    write_artifact_of_constants(large, 120 << 20, 2, "1.9.0")
    artifact = vt.open_artifact(large)
    JaxContainer.open(LOSS).with_artifacts(lambda _: artifact).save(source)
    assert source.stat().st_size > 3 * (120 << 20)
    large.unlink()
    idle = run_measured([sys.executable, "-c", "pass"]).peak
    for arguments in (
        ["inspect", str(source)],
        ["retarget", str(source), "--target", "0.9.0", "-o", str(out)],
        ["retarget", "--strip-debug-info", str(source), "-o", str(out), "--force"],
    ):
        assert run_measured([*VHLO, *arguments]).peak - idle < 100 << 20, arguments[0]
    assert JaxContainer.open(out).version == vt.Version("1.9.0")
