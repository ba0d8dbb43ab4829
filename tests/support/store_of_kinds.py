"""A store with files of all kinds, as grown stores have: programs of each format under any name, and other files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import vhlo_tools as vt
from support.corpus import EXAMPLES

_TEXT: Final = (EXAMPLES / "saxpy.mlir").read_text()
_HLO: Final = (
    "HloModule m, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n\nENTRY e {\n"
    "  a = f32[2]{0} parameter(0)\n  ROOT r = f32[2]{0} add(a, a)\n}\n"
)
_POINTER: Final = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12\n"


def _artifact(version: str) -> bytes:
    return bytes(vt.serialize(_TEXT, version))


def _export() -> bytes:
    return (EXAMPLES / "jax_store" / "gelu.jax_export").read_bytes()


#: The names of programs that can be read, by their contents; the first of each kind has the usual suffix.
_GOOD: Final[tuple[tuple[str, Callable[[], bytes]], ...]] = (
    ("old.mlirbc", lambda: _artifact("0.9.0")),
    ("new.mlirbc", lambda: _artifact("1.9.0")),
    ("artifact.bin", lambda: _artifact("1.4.0")),
    ("bytecode", lambda: (EXAMPLES / "convnet.bc").read_bytes()),
    ("text.mlir", _TEXT.encode),
    ("text.txt", lambda: f"// exported\n\n{_TEXT}".encode()),
    ("dump.hlo", _HLO.encode),
    ("module_0001.before_optimizations.txt", _HLO.encode),
    ("gelu.jax_export", _export),
    ("gelu", _export),
)
#: Those of programs that cannot be read: by their names they are programs.
_BROKEN: Final[tuple[tuple[str, Callable[[], bytes]], ...]] = (
    ("torn.mlirbc", lambda: _artifact("1.0.0")[:60]),
    ("pointer.mlirbc", _POINTER.encode),
    ("page.mlir", lambda: b"<!DOCTYPE html>\n<html></html>"),
    ("empty.mlir", lambda: b""),
    ("notes.jax_export", lambda: b"notes"),
)
_OTHERS: Final[tuple[tuple[str, Callable[[], bytes]], ...]] = (
    ("README.md", lambda: b"# Models\n\nmodule `net` is ...\n"),
    ("weights.safetensors", lambda: b"\x08\0\0\0\0\0\0\0{}      "),
    ("values.npy", lambda: b"\x93NUMPY\1\0"),
    ("pointer", _POINTER.encode),
    ("empty", lambda: b""),
)
_KINDS: Final = {"good": _GOOD, "broken": _BROKEN, "others": _OTHERS}


class Counts(NamedTuple):
    """How many files a store has."""

    good: int  # programs
    broken: int  # programs by their names, which cannot be read
    others: int

    @property
    def programs(self) -> int:
        return self.good + self.broken


def fill(folder: Path, number: int) -> Counts:
    """Write ``number`` files to folders of a folder, in turn of each kind."""
    made = {kind: [(name, data()) for name, data in files] for kind, files in _KINDS.items()}
    turns = [(kind, name, data) for kind, files in made.items() for name, data in files]
    counts = dict.fromkeys(_KINDS, 0)
    for each in range(number):
        kind, name, data = turns[each % len(turns)]
        path = folder / f"{each // len(turns) % 7}" / f"{each // len(turns)}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        counts[kind] += 1
    return Counts(**counts)
