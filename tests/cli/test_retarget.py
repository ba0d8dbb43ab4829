"""``vhlo retarget`` as a command: engines, reports, and what becomes of the output when things go wrong."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from support.corpus import EXAMPLES
from support.large_artifacts import write_artifact_of_constants
from support.processes import run_measured
from support.vhlo_process import warm_python

import vhlo_tools as vt
from vhlo_tools.artifact import JaxContainer
from vhlo_tools.cli.main import main

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
from vhlo_tools.artifact import JaxContainer
from vhlo_tools.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
VHLO = [sys.executable, "-m", "vhlo_tools.cli.main"]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.mlirbc"
    write_artifact_of_constants(path, 8 << 20, 2, "1.9.0")
    return path


@pytest.mark.parametrize("engine", ["auto", "bytes", "mlir"])
def test_engines_give_the_same_program(large: Path, tmp_path: Path, engine: str) -> None:
    out = tmp_path / "out.mlirbc"
    assert main(["retarget", str(large), "--target", "0.9.0", "--engine", engine, "-o", str(out)]) == 0
    assert vt.open_artifact(out).bytecode_version == 0
    assert vt.diff(large, out, ignore=["version"]) == []


def test_a_report_with_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "a.mlirbc", tmp_path / "b.mlirbc"
    vt.serialize(EXAMPLES / "transformer_step.mlir", "1.9.0").save(source)
    command = ["retarget", str(source), "--target", "1.4.0", "-o", str(out), "--output-format", "json"]
    assert main(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["version"], report["bytecode_version"], report["size"]) == ("1.4.0", 6, out.stat().st_size)
    (note,) = report["findings"]
    assert (note["feature"], note["level"]) == ("range_locations", "note")
    assert main([*command[:3], "0.9.0", *command[4:6], "--force"]) == 1
    assert "stablehlo.gather" in capsys.readouterr().err
    assert vt.open_artifact(out).version == vt.Version("1.4.0")


@pytest.mark.parametrize("name", ["keras_mlp.mlirbc", "symbolic_export.jax_export"])
def test_source_locations_are_removed_at_any_version(name: str, tmp_path: Path) -> None:
    """Alone that keeps the version; with a target it is what both steps give."""
    alone, moved, both, apart = (str(tmp_path / each) for each in ("alone", "moved", "both", "apart"))
    source, strip = str(EXAMPLES / name), "--strip-debug-info"
    assert main(["retarget", source, strip, "-o", alone]) == 0
    is_jax = name.endswith(".jax_export")
    stripped = JaxContainer.open(source).stripped().chunks if is_jax else [bytes(vt.strip(source))]
    assert Path(alone).read_bytes() == b"".join(bytes(each) for each in stripped)
    assert main(["retarget", source, "--target", "1.21.0", "-o", moved]) == 0
    assert main(["retarget", moved, strip, "-o", apart]) == 0
    assert main(["retarget", source, "--target", "1.21.0", strip, "-o", both, "--manifest"]) == 0
    assert Path(both).read_bytes() == Path(apart).read_bytes() != Path(moved).read_bytes()
    made = json.loads(Path(f"{both}.manifest.json").read_text())["made"]
    assert (made["command"], made["target"], made["options"]) == ("retarget", "1.21.0", {"strip_debug_info": True})


def test_what_is_known_of_readers_stays_known_where_locations_are_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "a.mlirbc", tmp_path / "b.mlirbc"
    vt.serialize(EXAMPLES / "transformer_step.mlir", "1.9.0").save(source)
    command = ["retarget", str(source), "--target", "1.4.0", "-o", str(out), "--format", "json", "--strip-debug-info"]
    assert main(command) == 0
    assert [each["feature"] for each in json.loads(capsys.readouterr().out)["findings"]] == ["range_locations"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --target, or --strip-debug-info, which keeps the version"),
        (["--strip-debug-info", "--expand"], "--expand needs --target: --strip-debug-info alone keeps the version"),
        (["--strip-debug-info", "--engine", "mlir"], "--engine needs --target"),
        (["--strip-debug-info", "--as-of", "2025-01-01"], "--as-of needs --target"),
    ],
)
def test_what_needs_a_target(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["retarget", str(EXAMPLES / "keras_mlp.mlirbc"), "-o", str(out), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_an_artifact_may_replace_itself(large: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.mlirbc"
    path.write_bytes(large.read_bytes())
    assert main(["retarget", str(path), "--target", "1.0.0", "-o", str(path)]) == 2
    assert main(["retarget", str(path), "--target", "1.0.0", "-o", str(path), "--force"]) == 0
    assert vt.open_artifact(path).version == vt.Version("1.0.0")
    assert vt.diff(path, large, ignore=["version"]) == []


def test_a_full_disk(large: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no device that is always full")
    assert main(["retarget", str(large), "--target", "1.0.0", "-o", "/dev/full", "--force"]) == 2
    assert "No space left on device" in capsys.readouterr().err


def test_a_disk_that_fills_up_half_way(large: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for the end of the disk; the kernel's copy meets it as well."""
    out = tmp_path / "out.mlirbc"
    result = warm_python().run(LIMITED, "retarget", str(large), "--target", "1.0.0", "-o", str(out))
    assert result.returncode == 2
    assert "File too large" in result.stderr
    assert "out.mlirbc" in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [3, 300])
def test_constants_are_not_held(tmp_path: Path, number: int) -> None:
    """Whatever is done to an artifact of 160 MB takes less than 100 MB above an idle interpreter."""
    source, copy, out = (tmp_path / name for name in ("a.mlirbc", "b.mlirbc", "c.mlirbc"))
    write_artifact_of_constants(source, 160 << 20, number, "1.9.0")
    os.link(source, copy)
    idle = run_measured([sys.executable, "-c", "pass"]).peak
    assert idle < 50 << 20
    for arguments in (
        ["inspect", str(source)],
        ["check", str(source), "--target", "0.9.0"],
        ["retarget", str(source), "--target", "0.9.0", "-o", str(out)],
        ["retarget", "--strip-debug-info", str(source), "-o", str(out), "--force"],
        ["diff", str(source), str(copy)],
        ["diff", str(source), str(out), "--ignore", "version"],
    ):
        assert run_measured([*VHLO, *arguments]).peak - idle < 100 << 20, arguments[0]
