from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vhlo_tools import system
from vhlo_tools.files.atomic_writes import opened_folder, write_atomically, write_in
from vhlo_tools.files.mapping import map_file, slices

pytestmark = pytest.mark.every_python


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_writes_all_chunks(tmp_path: Path) -> None:
    write_atomically(tmp_path / "out", [b"ab", memoryview(b"cd")])
    assert (tmp_path / "out").read_bytes() == b"abcd"
    assert names_in(tmp_path) == ["out"]


def test_an_existing_file_stays_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError, match="--force"):
        write_atomically(path, [b"new"])
    assert path.read_bytes() == b"old"
    write_atomically(path, [b"new"], force=True)
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("force", [False, True])
def test_a_failure_leaves_nothing_behind(tmp_path: Path, force: bool) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("interrupted")

    path = tmp_path / "out"
    if force:
        path.write_bytes(b"old")
    with pytest.raises(RuntimeError):
        write_atomically(path, chunks(), force=force)
    assert names_in(tmp_path) == (["out"] if force else [])
    assert not force or path.read_bytes() == b"old"


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out"

    def chunks() -> Iterator[bytes]:
        path.write_bytes(b"somebody else's")
        yield b"ours"

    with pytest.raises(FileExistsError):
        write_atomically(path, chunks())
    assert path.read_bytes() == b"somebody else's"
    assert names_in(tmp_path) == ["out"]


def test_permissions_are_those_of_any_new_file_and_are_kept(tmp_path: Path) -> None:
    usual, ours = tmp_path / "usual", tmp_path / "ours"
    usual.write_bytes(b"")
    write_atomically(ours, [b""])
    assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
    ours.chmod(0o640)
    write_atomically(ours, [b"new"], force=True)
    assert stat.S_IMODE(ours.stat().st_mode) == 0o640


def test_a_link_keeps_being_one(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(link, [b"new"], force=True)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


KILLED = """
import signal, sys, time
from pathlib import Path
from vhlo_tools.files.atomic_writes import write_atomically
from vhlo_tools.files.mapping import map_file, slices

# Whoever runs tests in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def chunks():
    yield bytes(1 << 22)
    print("half", flush=True)
    # A signal that comes just before a sleep is heard behind it.
    while True:
        time.sleep(0.05)

write_atomically(Path(sys.argv[1]), chunks(), force=bool(sys.argv[2]))
"""


@pytest.mark.parametrize("force", ["", "force"])
@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_process_leaves_nothing_behind(tmp_path: Path, signal_: signal.Signals, force: str) -> None:
    path = tmp_path / "out"
    if force:
        path.write_bytes(b"old")
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, path, force], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout
    assert process.stdout.readline() == b"half\n"
    process.send_signal(signal_)
    assert process.wait(timeout=60) != 0
    process.stdout.close()
    assert names_in(tmp_path) == (["out"] if force else [])
    assert not force or path.read_bytes() == b"old"


def test_where_files_need_a_name_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on file systems and platforms that know no nameless files."""
    monkeypatch.delattr(os, "O_TMPFILE")
    write_atomically(tmp_path / "out", [b"new"])
    write_atomically(tmp_path / "out", [b"newer"], force=True)
    assert (tmp_path / "out").read_bytes() == b"newer"
    assert names_in(tmp_path) == ["out"]


def test_a_large_range_of_a_file_is_copied(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(5 << 20))
    data = map_file(source)
    write_atomically(tmp_path / "out", [b"head", data[123 : 3 << 20], b"between", data[1 << 20 :]])
    whole = source.read_bytes()
    assert (tmp_path / "out").read_bytes() == b"head" + whole[123 : 3 << 20] + b"between" + whole[1 << 20 :]
    assert b"".join(slices(data)) == whole


def test_a_device_is_written_and_not_replaced() -> None:
    write_atomically(Path(os.devnull), [b"gone"], force=True)
    assert not Path(os.devnull).is_file()


@pytest.mark.skipif(not system.FOLDER, reason="the system names no files in a folder that is open")
def test_a_folder_that_is_opened_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "real/below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    for path in ("link", "link/below", "link/new"):
        with pytest.raises(OSError, match="has become a link"), opened_folder(tmp_path / path, make=True):
            pass
    assert [each.name for each in (tmp_path / "real").iterdir()] == ["below"]
    with opened_folder(tmp_path / "real/below") as folder:
        (tmp_path / "real/below").rename(tmp_path / "moved")
        (tmp_path / "real/below").symlink_to(tmp_path)
        write_in(folder, "file", [b"bytes"], force=False)
        with pytest.raises(FileExistsError):
            write_in(folder, "file", [b"other"], force=False)
    assert (tmp_path / "moved/file").read_bytes() == b"bytes"
    assert not (tmp_path / "file").exists()


def test_folders_that_were_made_in_vain_are_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for path in ("a/b/c", "mine/b", "mine"):
        with pytest.raises(RuntimeError), opened_folder(tmp_path / path, make=True):
            raise RuntimeError
    assert [each.name for each in tmp_path.rglob("*")] == ["mine"]
