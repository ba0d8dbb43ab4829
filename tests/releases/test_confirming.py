"""Real releases that confirm what the specification says, for `check`, `migrate` and from Python."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES, FEATURES
from support.vhlo_process import vhlo_process as run_vhlo

import vhlo_tools as vt
from vhlo_tools.releases import confirming

pytestmark = pytest.mark.releases

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


def test_migrate_refuses_one_too(tmp_path: Path) -> None:
    vt.serialize(EXAMPLES / "saxpy.mlir").save(tmp_path / "a.mlirbc")
    done = vhlo("migrate", tmp_path, "--target", "1.9.0", "--confirm-with", OLD)
    assert done.returncode == 2
    assert f"{OLD} is older than every target" in done.stderr
    with pytest.raises(vt.SettingsError, match="older than every target"):
        list(vt.migrate(tmp_path, "1.9.0", confirm_with=[OLD]))


def test_a_package_that_reads_no_artifacts_is_never_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VHLO_TOOLS_CACHE", str(tmp_path / "cache"))
    done = vhlo("check", EXAMPLES / "saxpy.mlir", "--confirm-with", "packaging==24.0", "--target", "1.0.0")
    assert done.returncode == 2
    assert "packaging==24.0 does not read artifacts: expected a release of jax, jaxlib" in done.stderr
    assert not (tmp_path / "cache").exists()


def test_a_release_that_does_not_start_refuses_no_artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error, and no finding about a program."""
    python = tmp_path / "cache" / "environments" / "jaxlib-0.8.3-py311" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/bin/false")
    (python.parents[1] / "companions.txt").write_text("msgspec")
    monkeypatch.setenv("VHLO_TOOLS_CACHE", str(tmp_path / "cache"))
    done = vhlo("check", EXAMPLES / "saxpy.mlir", "--confirm-with", NEW)
    assert done.returncode == 2, done.stdout
    assert f"{NEW} does not start: ended with exit code 1" in done.stdout
    assert "1 cannot be checked" in done.stdout
    assert "refused_by_release" not in done.stdout


def test_threads_confirm_with_one_process() -> None:
    artifact = vt.serialize(EXAMPLES / "saxpy.mlir", OLD)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: vt.confirm(artifact, OLD), range(32)))


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


def test_a_release_that_somebody_kills_has_refused_nothing() -> None:
    artifact = vt.serialize(EXAMPLES / "saxpy.mlir", OLD)
    assert vt.confirm(artifact, OLD)
    process = confirming.process_of(OLD)
    child = process._child
    assert child is not None
    child.send_signal(signal.SIGSTOP)  # so that it reads nothing before it is killed
    threading.Timer(0.5, child.kill).start()
    assert vt.confirm(artifact, OLD)  # by a new process

    over = threading.Event()

    def kill_all() -> None:
        while not over.wait(0.01):
            if process._child is not None:
                process._child.kill()

    assert process._child is not None
    process._child.send_signal(signal.SIGSTOP)
    killer = threading.Thread(target=kill_all)
    killer.start()
    try:
        with pytest.raises(vt.ReleaseEnvironmentError, match="was killed while it read"):
            vt.confirm(artifact, OLD)
    finally:
        over.set()
        killer.join()
    assert vt.confirm(artifact, OLD)
