"""The commands whose growth is measured, and the sizes: data.

What runs a program on an engine (`run`, `verify`, `golden`) is not here, for it costs what the engine takes; `opt` and
`translate` are the library's own passes, and `store`, `migrate` and `check` of many files have benchmarks of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from turns import RAW, VHLO

#: The versions that artifacts are written at, and moved down to.
NEW, OLD = "1.9.0", "1.4.0"

_KILOBYTE, _MEGABYTE, _GIGABYTE = 1 << 10, 1 << 20, 1 << 30
#: Bytes of constants.
SIZES: Final = (_KILOBYTE, 64 * _KILOBYTE, _MEGABYTE, 64 * _MEGABYTE, _GIGABYTE, 4 * _GIGABYTE)
OPS: Final = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
#: Beyond this a program runs once, and only where the command is one that is to hold a tenth of a kilobyte for each op.
MANY_OPS: Final = 1_000_000
OPS_OF_SHAPES: Final = (10, 10_000, 100_000)
#: Beyond this the library needs more memory than machines of developers have.
LARGEST_FOR_LIBRARY: Final = 64 * _MEGABYTE

Family = Literal["ops", "constants", "shapes"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command on one artifact."""

    name: str  # what it is called in tables
    #: the program and its arguments. In braces are files: ``{artifact}``; ``{copy}``, another with the same bytes;
    #: ``{changed}``, one with another op in the middle; ``{moving}``, one of which a quarter is of ops that older
    #: versions have in another form; ``{text}``, the program as MLIR text; and what is written, ``{to}``, and names
    #: that begin with it
    arguments: tuple[str, ...]
    writes: bool  # whether it writes a file: the pictures keep those that do apart from the others
    families: tuple[Family, ...] = ("ops", "constants")  # the artifacts that it is measured on
    before: tuple[str, ...] = ()  # arguments of what is run first, and not measured
    codes: tuple[int, ...] = (0,)  # the exit codes that are as they should be
    most: int | None = None  # the most bytes of constants; ``None`` if there is no limit
    most_ops: int | None = MANY_OPS  # the most ops; ``None`` if there is no limit
    beside: str = "library"  # the command that does the same, or as much, with the library alone

    def suits(self, family: str, size: int) -> bool:
        """Return whether it is measured on an artifact of this size."""
        kind = family if family in ("ops", "constants") else "shapes"
        limit = {"constants": self.most, "ops": self.most_ops}.get(family)
        return kind in self.families and (limit is None or size <= limit)


_ALL: Final[tuple[Family, ...]] = ("ops", "constants", "shapes")
_EXTERNALIZE: Final = (*VHLO, "constants", "externalize", "{artifact}", "--min-size", "1")

COMMANDS: Final = (
    Command("cp", ("cp", "{artifact}", "{to}"), writes=True, most_ops=None),
    Command("library", (*RAW, "round-trip", "{artifact}", "{to}", OLD), True, _ALL, most=LARGEST_FOR_LIBRARY),
    Command("inspect", (*VHLO, "inspect", "{artifact}"), False, _ALL, most_ops=None),
    Command(
        "check", (*VHLO, "check", "{artifact}", "--no-cache", "--target", OLD), False, _ALL, codes=(0, 1), most_ops=None
    ),
    Command("diff", (*VHLO, "diff", "{artifact}", "{copy}"), False, _ALL, most_ops=None),
    Command("diff, changed", (*VHLO, "diff", "{artifact}", "{changed}"), False, ("ops",), codes=(1,)),
    Command("alias show", (*VHLO, "alias", "show", "{artifact}"), False),
    Command("constants list", (*VHLO, "constants", "list", "{artifact}"), False, most_ops=None),
    Command("store status", (*VHLO, "store", "status", "{artifact}"), False, codes=(0, 1)),
    Command(
        "manifest check",
        (*VHLO, "manifest", "check", "{artifact}"),
        False,
        before=(*VHLO, "manifest", "write", "{artifact}"),
    ),
    Command("manifest write", (*VHLO, "manifest", "write", "{artifact}"), writes=True),
    Command(
        "retarget down", (*VHLO, "retarget", "{artifact}", "--target", OLD, "-o", "{to}"), True, _ALL, most_ops=None
    ),
    Command(
        "retarget down, a quarter moves", (*VHLO, "retarget", "{moving}", "--target", OLD, "-o", "{to}"), True, ("ops",)
    ),
    Command("retarget up", (*VHLO, "retarget", "{artifact}", "--target", "current", "-o", "{to}"), True, _ALL),
    Command("strip", (*VHLO, "retarget", "{artifact}", "--strip-debug-info", "-o", "{to}"), True, _ALL, most_ops=None),
    Command(
        "alias set",
        (*VHLO, "alias", "set", "{artifact}", "--alias", "0=0", "-o", "{to}"),
        writes=True,
        # It holds the artifact twice.
        most=_GIGABYTE,
    ),
    Command("migrate", (*VHLO, "migrate", "{artifact}", "--target", OLD, "-j", "1", "--output-dir", "{to}"), True),
    Command(
        "externalize", (*_EXTERNALIZE, "-o", "{to}", "--weights", "{to}.weights"), writes=True, families=("constants",)
    ),
    Command(
        "restore",
        (*VHLO, "constants", "restore", "{to}.less", "--weights", "{to}.weights", "-o", "{to}"),
        writes=True,
        families=("constants",),
        before=(*_EXTERNALIZE, "-o", "{to}.less", "--weights", "{to}.weights"),
        # The artifact, its weights and the result are there at once.
        most=_GIGABYTE,
    ),
    Command(
        "extract",
        (*VHLO, "constants", "extract", "{artifact}", "-o", "{to}.safetensors"),
        writes=True,
        families=("constants",),
    ),
    Command(
        "serialize",
        (*VHLO, "serialize", "{text}", "--target", NEW, "-o", "{to}"),
        writes=True,
        most=LARGEST_FOR_LIBRARY,
        beside="library, serialize",
    ),
    Command("library, serialize", (*RAW, "serialize", "{text}", "{to}", NEW), writes=True, most=LARGEST_FOR_LIBRARY),
    Command(
        "deserialize",
        (*VHLO, "deserialize", "{artifact}", "-o", "{to}"),
        writes=True,
        most=LARGEST_FOR_LIBRARY,
        beside="library, print",
    ),
    Command("library, print", (*RAW, "print", "{artifact}", "{to}"), writes=True, most=LARGEST_FOR_LIBRARY),
)


def turns_of(family: str, size: int, *, quick: bool) -> int:
    """Return how often a command is run: what takes long is disturbed less, and would take too long."""
    many = {"ops": MANY_OPS, "constants": _GIGABYTE}.get(family, OPS_OF_SHAPES[-1])
    return 1 if quick or size >= many else 3
