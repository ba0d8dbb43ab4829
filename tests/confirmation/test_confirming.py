"""Real releases that confirm what the specification says, for `check`, `migrate` and from Python."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from corpus import EXAMPLES, FEATURES
from vhlo_process import vhlo as run_vhlo

import vhlo_tools as vt

pytestmark = [pytest.mark.releases, pytest.mark.one_python]

OLD, NEW = "jaxlib==0.4.31", "jaxlib==0.8.3"
#: It has no bindings of Shardy: what the specification leaves to the consumer, it refuses.
WITHOUT_SHARDY = "torch-mlir==20261001"
SHARDED = EXAMPLES / "sharded_matmul.mlir"


def vhlo(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    done = run_vhlo(*map(str, arguments), **options)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_release_confirms() -> None:
    confirmation = vt.confirm(EXAMPLES / "saxpy.mlir", OLD)
    assert confirmation
    assert str(confirmation) == f"{OLD} reads {EXAMPLES / 'saxpy.mlir'}"
    newest = vt.serialize(FEATURES / "dot_algorithm.mlir")
    assert not vt.confirm(newest, OLD)
    assert "does not read" in str(vt.confirm(newest, OLD))
    assert vt.confirm(vt.serialize(EXAMPLES / "convnet.bc"), OLD, target=OLD)
    with pytest.raises(vt.DowngradeError):
        vt.confirm(FEATURES / "dot_algorithm.mlir", OLD)


def test_damaged_bytes_are_refused_before_a_release_sees_them() -> None:
    with pytest.raises(vt.MalformedArtifactError):
        vt.confirm(bytes(vt.serialize(EXAMPLES / "saxpy.mlir"))[:60], OLD)


def test_check_asks_a_release(tmp_path: Path) -> None:
    plain = tmp_path / "plain.mlirbc"
    vt.serialize(EXAMPLES / "saxpy.mlir").save(plain)
    sharded = tmp_path / "sharded.mlirbc"
    vt.serialize(SHARDED, allow_other_dialects=True).save(sharded)
    done = vhlo(
        "check", plain, sharded, "--target", "1.13.0", "--confirm-with", f"{NEW},{WITHOUT_SHARDY}", "--format", "json"
    )
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    findings = [each for each in found["findings"] if each["level"] == "error"] if "findings" in found else []
    text = vhlo("check", plain, sharded, "--target", "1.13.0", "--confirm-with", f"{NEW},{WITHOUT_SHARDY}").stdout
    assert "refused_by_release" in done.stdout
    assert WITHOUT_SHARDY in text
    assert "sdy" in text
    assert NEW not in text
    assert not [each for each in findings if each["path"] == str(plain)]


def test_check_without_a_target_asks_whether_the_release_reads_what_is_written_for_it(tmp_path: Path) -> None:
    done = vhlo("check", EXAMPLES / "saxpy.mlir", "--confirm-with", OLD)
    assert done.returncode == 0, done.stdout + done.stderr
    done = vhlo("check", FEATURES / "dot_algorithm.mlir", "--confirm-with", OLD)
    assert done.returncode == 1
    assert "dot_algorithm" in done.stdout


def test_a_release_that_would_be_asked_nothing_is_refused() -> None:
    done = vhlo("check", EXAMPLES / "saxpy.mlir", "--target", "1.9.0", "--confirm-with", OLD)
    assert done.returncode == 2
    assert f"{OLD} is older than every target" in done.stderr


def test_the_settings_name_releases(tmp_path: Path) -> None:
    settings = tmp_path / "vhlo-tools.toml"
    vt.serialize(EXAMPLES / "saxpy.mlir").save(tmp_path / "a.mlirbc")
    settings.write_text(f'paths = ["a.mlirbc"]\ntarget = "{OLD}"\nconfirm-with = "{OLD}"\n')
    done = vhlo("check", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    settings.write_text(f'paths = ["a.mlirbc"]\ntarget = "{OLD}"\nconfirm-with = ["jaxlib"]\n')
    done = vhlo("check", cwd=tmp_path)
    assert done.returncode == 2
    assert "confirm-with[0]: expected a release such as jaxlib==0.4.31, found 'jaxlib'" in done.stderr


def test_what_a_release_confirmed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run starts no release: it works without its environment."""
    monkeypatch.delenv("VHLO_TOOLS_NO_CACHE", raising=False)
    vt.serialize(EXAMPLES / "saxpy.mlir").save(tmp_path / "a.mlirbc")
    arguments = ("check", "a.mlirbc", "--target", OLD, "--confirm-with", OLD, "--format", "json")
    first = vhlo(*arguments, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    second = vhlo(*arguments, cwd=tmp_path)
    assert second.stdout == first.stdout
    assert (tmp_path / ".vhlo-cache").is_dir()


@pytest.mark.parametrize("jobs", [1, 2])
def test_migrate_moves_what_releases_read(tmp_path: Path, jobs: int) -> None:
    plain, sharded, current = (tmp_path / f"{name}.mlirbc" for name in ("plain", "sharded", "current"))
    vt.serialize(EXAMPLES / "saxpy.mlir", "1.0.0").save(plain)
    vt.serialize(SHARDED, "1.12.0", allow_other_dialects=True).save(sharded)
    vt.serialize(SHARDED, "1.13.0", allow_other_dialects=True).save(current)
    before = sharded.read_bytes()
    arguments = ("migrate", tmp_path, "--target", "1.13.0", "--confirm-with", WITHOUT_SHARDY, "--format", "json")
    done = vhlo(*arguments, "-j", str(jobs))
    assert done.returncode == 1, done.stderr
    files = {Path(each["path"]).stem: each for each in json.loads(done.stdout)["files"]}
    assert files["plain"]["status"] == "moved"
    assert vt.open_artifact(plain).version == vt.Version("1.13.0")
    for name in ("sharded", "current"):
        assert files[name]["status"] == "blocked"
        assert [each["feature"] for each in files[name]["findings"] if each["level"] == "error"] == [
            "refused_by_release"
        ]
    assert sharded.read_bytes() == before
