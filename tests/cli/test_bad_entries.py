"""Folders that hold more than files: one bad entry stops no other, in any command that reads a folder."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.plain_permissions import PLAIN
from support.vhlo_process import warm_python

import vhlo_tools as vt

PROGRAM = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"
#: Of four bytes each: more than the 4096 of a path, and more than the calls that Python lets be within each other.
DEEPEST = 1100

AS_ANYBODY = f"{PLAIN}\nimport sys\nfrom vhlo_tools.cli.main import main\nsys.exit(main(sys.argv[1:]))"


def listening(path: Path) -> None:
    here = os.open(path.parent, os.O_RDONLY)
    try:
        # Paths of sockets are short.
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


def nested(path: Path) -> None:
    """Make folders in folders, deeper than a path can name."""
    path.mkdir()
    here = os.open(path, os.O_RDONLY)
    for _ in range(DEEPEST):
        os.mkdir("ddd", dir_fd=here)
        below = os.open("ddd", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def loop(path: Path) -> None:
    path.symlink_to(path.with_name("other.mlirbc"))
    path.with_name("other.mlirbc").symlink_to(path)


def unreadable(path: Path) -> None:
    path.mkdir()
    shutil.copy(next(path.parent.glob("**/*good*.mlirbc")), path / "hidden.mlirbc")
    path.chmod(0)


def not_utf8(path: Path) -> None:
    path.with_name(os.fsdecode(b"\xff\xfe.mlirbc")).touch()


#: How each entry is made, and whether it is an error: the others are skipped, or are no programs.
ENTRIES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "FIFO": (os.mkfifo, False),
    "socket": (listening, False),
    "link to a device": (lambda path: path.symlink_to("/dev/zero"), False),
    "link to itself": (lambda path: path.symlink_to(path), False),
    "loop of links": (loop, False),
    "link to nothing": (lambda path: path.symlink_to("nothing"), True),
    "link to the folder": (lambda path: path.symlink_to("."), False),
    "folder with a suffix": (lambda path: path.mkdir(), False),
    "unreadable folder": (unreadable, True),
    # Deeper than a path can name: where it ends is an error.
    "nested folders": (nested, True),
    "empty file": (lambda path: path.touch(), True),
    "name that is not UTF-8": (not_utf8, True),
    "unreadable file": (lambda path: path.touch(0), True),
}

#: The commands, the list in their reports, and whether an item of it is fine.
COMMANDS: dict[str, tuple[str, str, Callable[[Any], bool]]] = {
    "check": ("check FOLDER --target 1.0.0 --output-format json", "files", lambda said: said["ok"]),
    "migrate": ("migrate FOLDER --target 1.0.0 -j 1 --dry-run --output-format json", "files", lambda said: said["ok"]),
    "store": (
        "store status FOLDER --as-of 2025-01-01 --output-format json",
        "files",
        lambda said: said["status"] != "unreadable",
    ),
    "golden": ("golden check FOLDER --output-format json", "records", lambda said: said["passed"]),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("entries") / "good"
    artifact = vt.serialize(PROGRAM, "0.9.0")
    for name in ("a_good", "z_good"):
        vt.record_golden(folder, artifact, name=name)
        vt.serialize(PROGRAM, "1.9.0").save(folder / f"{name}.mlirbc")
    return folder


@pytest.fixture
def store(good: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("store") / "store"
    shutil.copytree(good, folder)
    yield folder
    # pytest could not remove folders nested so deeply.
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=False, capture_output=True)
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def run(store: Path, command: str) -> subprocess.CompletedProcess[str]:
    words = [str(store) if each == "FOLDER" else each for each in command.split()]
    return warm_python().run(AS_ANYBODY, *words)


@pytest.mark.parametrize("command", COMMANDS)
def test_bad_entries_stop_no_other(command: str, store: Path) -> None:
    for number, (make, _) in enumerate(ENTRIES.values()):
        make(store / f"m{number}.mlirbc")
    line, items, is_fine = COMMANDS[command]
    result = run(store, line)
    assert "Traceback" not in result.stderr
    said = json.loads(result.stdout)[items]
    fine = {Path(each.get("path") or each["name"]).name for each in said if is_fine(each)}
    assert {each.removesuffix(".mlirbc") for each in fine} >= {"a_good", "z_good"}
    bad = [str(each.get("path") or each["name"]) for each in said if not is_fine(each)]
    # Only folders are golden records; one that cannot be read may be one.
    errors = [
        number
        for number, (name, (_, is_error)) in enumerate(ENTRIES.items())
        if is_error and (command != "golden" or name == "unreadable folder")
    ]
    assert len(bad) == len(errors), bad
    assert result.returncode == 2
    for number, name in enumerate(ENTRIES):
        is_named = any(f"m{number}.mlirbc" in each for each in bad)
        assert is_named == (number in errors and name != "name that is not UTF-8"), name


def test_a_record_in_the_place_of_another_kind_of_file(store: Path) -> None:
    for name, make in (("m", os.mkfifo), ("n", listening), ("o", lambda path: path.symlink_to(path))):
        (store / name).mkdir(mode=0o777)
        make(store / name / "golden.json")
    result = run(store, COMMANDS["golden"][0])
    said = json.loads(result.stdout)["records"]
    assert [(each["name"], each["readable"]) for each in said] == [
        ("a_good", True), ("m", False), ("n", False), ("o", False), ("z_good", True)
    ]  # fmt: skip
    assert result.returncode == 2
