"""The library that pages contain comes from npm or the cache, and is the one that is expected; or a reason is given."""

from __future__ import annotations

import shutil
from pathlib import Path

import page_assets
import pytest
from page_assets import PACKAGE, AssetError, ensure_assets

from vhlo_tools.viewing import ELK

needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="no npm is on this machine")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout without the files, and a cache without the package."""
    monkeypatch.setenv("VHLO_TOOLS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "checkout" / "vhlo_tools" / "viewing").mkdir(parents=True)
    return tmp_path / "checkout"


def test_script_and_package_name_the_same_library() -> None:
    assert f"{ELK.name}@{ELK.version}" == PACKAGE


@needs_npm
def test_the_library_is_fetched_once(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ensure_assets(checkout)
    assert sorted(path.name for path in folder.iterdir()) == ["LICENSE.md", "elk-worker.min.js"]
    assert (tmp_path / "cache" / f"{PACKAGE}.tgz").is_file()
    # Another checkout has it from the cache, without npm; and one that has it needs neither.
    monkeypatch.setenv("PATH", str(tmp_path))
    other = tmp_path / "other"
    (other / "vhlo_tools" / "viewing").mkdir(parents=True)
    assert ensure_assets(other).is_dir()
    (tmp_path / "cache" / f"{PACKAGE}.tgz").unlink()
    assert ensure_assets(other) == other / "vhlo_tools" / "viewing" / "elkjs"


def test_without_npm_there_is_a_reason(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AssetError, match="npm, which fetches elkjs@.*, is not on this machine: install node and npm"):
        ensure_assets(checkout)
    monkeypatch.setattr(page_assets, "ensure_assets", lambda: ensure_assets(checkout))
    assert page_assets.main() == 1
    assert capsys.readouterr().err.endswith("pages will have no picture of the graph\n")


def test_another_package_is_refused(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    npm = programs / "npm"
    npm.write_text("#!/bin/sh\necho other > elkjs.tgz\necho elkjs.tgz\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    with pytest.raises(AssetError, match="its SHA-256 is [0-9a-f]{64} instead of"):
        ensure_assets(checkout)
    assert not (tmp_path / "cache").exists()


def test_a_failure_of_npm_is_told(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    npm = programs / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error network' >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    with pytest.raises(AssetError, match=r"npm cannot fetch elkjs@.*: npm error network"):
        ensure_assets(checkout)
