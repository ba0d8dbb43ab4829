"""What is kept for the user: where, by whom it may be written, and what is read of it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vhlo_tools.files.caches import DigestSet, cache_folder

pytestmark = pytest.mark.every_python


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


@pytest.fixture
def digests(tmp_path: Path) -> DigestSet:
    return DigestSet(tmp_path / "made" / "by it", "known")


def test_the_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VHLO_TOOLS_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("VHLO_TOOLS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "vhlo-tools"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, by its specification
    assert cache_folder().is_absolute()


def test_what_was_added_is_there_for_other_processes_too(digests: DigestSet) -> None:
    assert digest("a") not in digests
    digests.add(digest("a"))
    digests.add(digest("b"))
    assert digest("a") in digests
    assert digest("b") in digests
    assert digest("c") not in digests
    assert digest("a")[16:] + digest("b")[:16] not in digests
    script = (
        "import sys; from pathlib import Path; from vhlo_tools.files.caches import DigestSet; "
        "print(bytes.fromhex(sys.argv[2]) in DigestSet(Path(sys.argv[1]), 'known'))"
    )
    command = [sys.executable, "-c", script, str(digests.folder), digest("a").hex()]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "True\n"


def test_what_several_processes_add_at_once_is_there(digests: DigestSet) -> None:
    script = (
        "import hashlib, sys; from pathlib import Path; sys.stdin.read(1); "
        "from vhlo_tools.files.caches import DigestSet; "
        "[DigestSet(Path(sys.argv[1]), 'known').add(hashlib.sha256(f'{sys.argv[2]} {number}'.encode()).digest()) "
        "for number in range(200)]"
    )
    adding = [
        subprocess.Popen([sys.executable, "-c", script, str(digests.folder), name], stdin=subprocess.PIPE)
        for name in "abcd"
    ]
    # None begins before all have been told to.
    for process in adding:
        assert process.stdin is not None
        process.stdin.close()
    assert [process.wait() for process in adding] == [0, 0, 0, 0]
    assert all(digest(f"{name} {number}") in digests for name in "abcd" for number in range(200))


def test_only_the_user_can_read_and_write_what_is_made(digests: DigestSet) -> None:
    digests.add(digest("a"))
    assert digests.folder.stat().st_mode & 0o777 == 0o700
    assert (digests.folder / "known").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("writable", ["the folder", "the file"])
@pytest.mark.parametrize("by", [0o020, 0o002], ids=["a group", "everybody"])
def test_what_others_can_write_is_empty(digests: DigestSet, writable: str, by: int) -> None:
    digests.add(digest("a"))
    path = digests.folder if writable == "the folder" else digests.folder / "known"
    path.chmod(path.stat().st_mode | by)
    assert digest("a") not in digests
    before = (digests.folder / "known").read_bytes()
    digests.add(digest("b"))
    assert (digests.folder / "known").read_bytes() == before


def test_a_link_or_a_pipe_is_not_followed(digests: DigestSet, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(digest("a"))
    digests.folder.mkdir(mode=0o700, parents=True)
    (digests.folder / "known").symlink_to(tmp_path / "elsewhere")
    assert digest("a") not in digests
    digests.add(digest("b"))
    assert (tmp_path / "elsewhere").read_bytes() == digest("a")
    (digests.folder / "known").unlink()
    os.mkfifo(digests.folder / "known", 0o600)
    assert digest("a") not in digests
    digests.add(digest("b"))


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a file").write_bytes(b"")
    digests = DigestSet(tmp_path / "a file" / "folder", "known")
    digests.add(digest("a"))
    assert digest("a") not in digests


def test_a_digest_that_was_written_in_part_empties_it(digests: DigestSet) -> None:
    digests.add(digest("a"))
    with (digests.folder / "known").open("ab") as file:
        file.write(b"of a full disk")
    assert digest("a") in digests
    digests.add(digest("b"))
    assert (digests.folder / "known").read_bytes() == b""
    digests.add(digest("c"))
    assert digest("c") in digests


def test_it_forgets_the_older_half_when_it_is_large(digests: DigestSet) -> None:
    digests.add(digest("0"))
    many = [digest(str(number)) for number in range(1 << 15)]
    (digests.folder / "known").write_bytes(b"".join(many))
    assert many[0] in digests
    digests.add(digest("last"))
    assert many[0] not in digests
    assert many[-1] in digests
    assert digest("last") in digests
    assert (digests.folder / "known").stat().st_size == 32 * ((1 << 14) + 1)
    assert [path.name for path in digests.folder.iterdir()] == ["known"]
