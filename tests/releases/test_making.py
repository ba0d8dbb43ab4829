from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.release_environments import SCRIPT, run_in

from vhlo_tools import ReleaseEnvironmentError
from vhlo_tools.releases import PackageRelease, environment, environments_folder

SMALL = "packaging==24.0"  # pure Python without requirements: an environment of it is made in a moment


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VHLO_TOOLS_CACHE", str(tmp_path / "the cache"))
    return tmp_path / "the cache" / "environments"


def version_in(requirement: str, package: str) -> str:
    ended = run_in(requirement, f"from importlib.metadata import version; print(version({package!r}))")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.decode().strip()


@pytest.mark.parametrize(
    ("text", "package", "version"),
    [("jaxlib==0.4.31", "jaxlib", "0.4.31"), ("Torch_MLIR == 20261001", "torch-mlir", "20261001")],
)
def test_a_release_is_parsed(text: str, package: str, version: str) -> None:
    release = PackageRelease.parse(text)
    assert (release.package, str(release.version)) == (package, version)
    assert PackageRelease.parse(str(release)) == release


@pytest.mark.parametrize(
    "text",
    [
        "",
        "jaxlib",
        "jaxlib>=0.4.31",
        "jaxlib==0.4.*",
        "jaxlib==0.4,==0.5",
        "jaxlib[x]==0.4.31",
        "../x==1",
        "jaxlib==../x",
    ],
)
def test_what_is_no_release_is_refused(text: str) -> None:
    with pytest.raises(ReleaseEnvironmentError, match=r"is not a release such as 'jaxlib==0\.4\.31'"):
        PackageRelease.parse(text)


def test_only_old_jaxlibs_are_kept_from_numpy_2() -> None:
    assert PackageRelease.parse("jaxlib==0.4.25").requirements() == ["jaxlib==0.4.25", "msgspec", "numpy<2"]
    assert PackageRelease.parse("jaxlib==0.4.26").requirements() == ["jaxlib==0.4.26", "msgspec"]


def test_environments_have_a_folder_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VHLO_TOOLS_CACHE", str(tmp_path))
    assert environments_folder() == tmp_path / "environments"


@pytest.mark.releases
def test_a_jaxlib_runs_and_nothing_leaks_into_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    script = tmp_path / "a script.py"
    script.write_text(
        "import os, sys\n"
        "from jaxlib.mlir import ir\n"
        "from jaxlib.mlir.dialects import stablehlo\n"
        "from jaxlib.version import __version__\n"
        "assert not {'PYTHONPATH', 'VIRTUAL_ENV'} & set(os.environ)\n"
        "print(__version__, sys.argv[1:], sys.stdin.read())\n"
    )
    ended = run_in("jaxlib==0.8.3", script, "an argument", input=b"the input")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout == b"0.8.3 ['an argument'] the input\n"


@pytest.mark.releases
def test_a_release_older_than_any_supported_python() -> None:
    assert version_in("jaxlib==0.4.13", "jaxlib") == "0.4.13"
    assert version_in("jaxlib==0.4.13", "numpy").startswith("1.")


@pytest.mark.releases
def test_an_environment_is_made_once_and_then_needs_no_network(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = environment(SMALL)
    assert python.is_relative_to(cache)
    made = python.lstat()
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("PATH", "")
    assert environment(SMALL) == python
    assert python.lstat() == made
    assert version_in(SMALL, "packaging") == "24.0"


@pytest.mark.releases
def test_what_an_interrupted_run_or_a_lost_interpreter_left_is_made_anew(cache: Path) -> None:
    python = environment(SMALL)
    python.unlink()
    python.symlink_to("no such interpreter")
    made = python.parent.parent
    partial = made.with_name(f"{made.name}.partial")
    (partial / "bin").mkdir(parents=True)
    assert environment(SMALL) == python
    assert version_in(SMALL, "packaging") == "24.0"
    assert not partial.exists()


@pytest.mark.releases
def test_two_processes_at_once_get_the_same(cache: Path) -> None:
    command = [sys.executable, str(SCRIPT), SMALL]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate() for process in both]
    assert {process.returncode for process in both} == {0}, outputs
    assert {said for said, _ in outputs} == {f"{environment(SMALL)}\n"}
    # One of them made it.
    assert sum("making an environment" in said for _, said in outputs) == 1


@pytest.mark.releases
def test_a_release_that_does_not_exist_is_refused_in_uvs_words(cache: Path) -> None:
    with pytest.raises(ReleaseEnvironmentError, match=r"(?s)packaging==0\.0\.1 cannot be .*no version of packaging"):
        environment("packaging==0.0.1")
    assert [entry.name for entry in cache.iterdir()] == ["packaging-0.0.1.lock"]


def test_a_cache_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("VHLO_TOOLS_CACHE", str(tmp_path / "file"))
    with pytest.raises(ReleaseEnvironmentError, match=r"(?s)can be made in .*file/environments .*_CACHE"):
        environment(SMALL)
