"""Lists of backups: what a name in one hides, and what it does not."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from support.corpus import EXAMPLES

from vhlo_tools.files import list_backups, programs_at

PROGRAM = (EXAMPLES / "convnet.bc").read_bytes()


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_bytes(PROGRAM)


def found(path: Path | str, *, ordered: bool = True) -> set[str]:
    return {Path(each).name for each in programs_at(str(path), ordered=ordered)}


@pytest.mark.parametrize(
    "name",
    [
        "plain.mlirbc",
        "no_suffix",
        "with space",
        "two\nlines",
        "100%",
        "%0A",
        "naïve",
        os.fsdecode(b"\xff\xfe"),
        "-",
        "\r",
    ],
)
@pytest.mark.parametrize("suffix", [".bak", "~", "_old", "\n", os.fsdecode(b"\xfe")])
def test_names_of_any_bytes_are_listed(name: str, suffix: str, tmp_path: Path) -> None:
    fill(tmp_path, name, name + suffix, f"{name}.other")
    assert found(tmp_path) == {name, name + suffix, f"{name}.other"}
    list_backups(str(tmp_path), [name + suffix])
    assert found(tmp_path) == found(tmp_path, ordered=False) == {name, f"{name}.other"}
    assert found(tmp_path / "**") == {name, f"{name}.other"}


def test_lists_only_grow(tmp_path: Path) -> None:
    fill(tmp_path, "a", "b", "a.bak", "b.bak")
    list_backups(str(tmp_path), ["a.bak"])
    list_backups(str(tmp_path), ["b.bak"])
    assert found(tmp_path) == {"a", "b"}
    assert (tmp_path / ".vhlo-backups").read_text() == "a.bak\nb.bak\n"


def test_each_folder_has_its_own_list(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    fill(tmp_path, "a", "a.bak")
    fill(below, "a", "a.bak", "c", "c.bak")
    list_backups(str(below), ["a.bak"])
    paths = {os.path.relpath(each, tmp_path) for each in programs_at(str(tmp_path))}
    assert paths == {"a", "a.bak", "below/a", "below/c", "below/c.bak"}
    assert {os.path.relpath(each, tmp_path) for each in programs_at(f"{tmp_path}/**")} == paths


def test_a_line_that_was_cut_short_is_no_name(tmp_path: Path) -> None:
    """A run was killed within a write, and the next one appended."""
    fill(tmp_path, "a", "a.bak", "a.bak2", "b", "b.bak")
    (tmp_path / ".vhlo-backups").write_bytes(b"a.bak")
    assert "a.bak" in found(tmp_path)
    list_backups(str(tmp_path), ["b.bak"])
    assert found(tmp_path) == {"a", "a.bak", "a.bak2", "b"}


def test_a_backup_that_is_named_counts(tmp_path: Path) -> None:
    fill(tmp_path, "a", "a.bak")
    list_backups(str(tmp_path), ["a.bak"])
    assert found(tmp_path / "a.bak") == {"a.bak"}


@pytest.mark.parametrize(
    ("hidden", "beside"),
    [
        # Nothing that it could be a backup of.
        ("program.mlirbc", []),
        ("program.mlirbc", ["other.mlirbc"]),
        # A result beside its source, as `migrate` writes it; and files made to hide another.
        ("net.mlirbc", ["net.mlir"]),
        ("net.mlirbc", ["net"]),
        ("net.mlirbc", ["n"]),
        ("net.jax_export", ["net.mlir", "net"]),
    ],
)
def test_a_list_hides_no_program_that_is_loaded_by_its_own_name(hidden: str, beside: list[str], tmp_path: Path) -> None:
    fill(tmp_path, hidden, *beside)
    list_backups(str(tmp_path), [hidden])
    assert found(tmp_path) == {hidden, *beside}


def test_what_a_backup_was_made_from_is_a_program(tmp_path: Path) -> None:
    fill(tmp_path, "a.bak", "b.bak")
    (tmp_path / "a").write_text("notes")
    (tmp_path / "b").mkdir()
    list_backups(str(tmp_path), ["a.bak", "b.bak"])
    assert found(tmp_path) == {"a.bak", "b.bak"}
    # Nor do a path, an empty line, the file itself, or what is no list.
    list_backups(str(tmp_path), ["../a.bak", "", "a.bak/", "."])
    assert found(tmp_path) == {"a.bak", "b.bak"}


def test_a_backup_may_have_the_suffix_of_what_it_was_made_from(tmp_path: Path) -> None:
    fill(tmp_path, "net.mlirbc", "net.mlirbc.old.mlirbc")
    list_backups(str(tmp_path), ["net.mlirbc.old.mlirbc"])
    assert found(tmp_path) == {"net.mlirbc"}


@pytest.mark.parametrize("line", [b"a\n", b"%41\n", b"\n", b"x" * (1 << 22) + b"\n"])
def test_a_long_list_takes_no_memory(line: bytes, tmp_path: Path) -> None:
    fill(tmp_path, "a", "a.bak")
    (tmp_path / ".vhlo-backups").write_bytes(line * ((1 << 22) // len(line)) + b"a.bak\n")
    tracemalloc.start()
    tracemalloc.reset_peak()
    assert found(tmp_path) == {"a"}
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_hostile_lists(tmp_path: Path) -> None:
    """What is no regular file is not read, nor written through."""
    fill(tmp_path, "a", "a.bak")
    lists, elsewhere = tmp_path / ".vhlo-backups", tmp_path / "elsewhere"
    elsewhere.write_bytes(b"a.bak\n")
    lists.symlink_to(elsewhere)
    assert found(tmp_path) == {"a", "a.bak"}
    with pytest.raises(OSError, match="symbolic links"):
        list_backups(str(tmp_path), ["a.bak"])
    assert elsewhere.read_bytes() == b"a.bak\n"
    lists.unlink()
    os.mkfifo(lists)
    assert found(tmp_path) == {"a", "a.bak"}
    with pytest.raises(OSError, match="it is a FIFO"):
        list_backups(str(tmp_path), ["a.bak"])
    lists.unlink()
    lists.mkdir()
    assert found(tmp_path) == {"a", "a.bak"}
    with pytest.raises(OSError, match="directory"):
        list_backups(str(tmp_path), ["a.bak"])
    lists.rmdir()
    lists.write_bytes(os.urandom(1 << 16) + b"\n%zz\na.bak\n\0\n")
    assert found(tmp_path) == {"a"}
