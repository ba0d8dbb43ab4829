"""Chromium is found by its name on PATH or by a variable; where it can be neither found nor installed, that is said."""

from __future__ import annotations

import os
from pathlib import Path

import find_chromium
import pytest


def program(folder: Path, name: str, text: str = "exit 0") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(find_chromium.CHROMIUM, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_it_is_found_on_the_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert find_chromium.find_chromium() is None
    chrome = program(tmp_path, "google-chrome")
    assert find_chromium.main() == 0
    assert capsys.readouterr().out == f"{chrome}\n"
    assert find_chromium.install_chromium() == chrome


def test_one_that_is_named_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "chromium")
    mine = program(tmp_path, "mine")
    monkeypatch.setenv(find_chromium.CHROMIUM, str(mine))
    assert find_chromium.find_chromium() == mine
    monkeypatch.setenv(find_chromium.CHROMIUM, str(tmp_path / "gone"))
    with pytest.raises(find_chromium.MissingChromiumError, match="gone, which is no program"):
        find_chromium.find_chromium()


def test_without_apt_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert find_chromium.main() == 1
    assert "only root installs it, with apt-get: install it, or name the program in VHLO" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="apt-get is tried by root alone")
def test_root_has_it_installed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program(
        tmp_path,
        "apt-get",
        f"[ $1 = update ] || {{ echo x > {tmp_path}/chromium; /bin/chmod +x {tmp_path}/chromium; }}",
    )
    assert find_chromium.main() == 0
    assert capfd.readouterr().out == f"{tmp_path}/chromium\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="apt-get is tried by root alone")
def test_an_installation_that_fails_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program(tmp_path, "apt-get", "exit 100")
    assert find_chromium.main() == 1
    assert "could not be: Command" in capfd.readouterr().err
    program(tmp_path, "apt-get")
    assert find_chromium.main() == 1
    assert "brought no program named chromium or" in capfd.readouterr().err
