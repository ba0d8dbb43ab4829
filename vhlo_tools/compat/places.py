"""Where an op stands, in the program and in the user's source."""

from __future__ import annotations

from typing import Final

from vhlo_tools.bytecode import File, Operation, Place
from vhlo_tools.bytecode.printing import inherent_attributes
from vhlo_tools.findings import SourceLocation

__all__ = ["Places", "attributes_of", "program_name"]

_DEEPEST: Final = 1000
# Functions are ops of another dialect in StableHLO programs.
_PROGRAM_NAMES: Final = {"func": "func.func", "call": "func.call", "return": "func.return"}
# What a location holds, in the order in which MLIR prints it: of a call site, where the callee stands comes first.
_PARTS: Final = {"callsite": ("callee", "caller"), "fused": ("locations",), "name": ("child",)}


def attributes_of(file: File, op: Operation) -> dict[str, int]:
    """Return all attributes of ``op`` by name, wherever its version of the format keeps them.

    Raises:
        MalformedArtifactError: If they are damaged.
    """
    found = dict(inherent_attributes(file, op))
    dictionary = file.decode("attribute", op.attributes) if op.attributes is not None else None
    if dictionary is not None and dictionary.name not in ("dictionary", "dict_v1"):
        raise file.attributes[op.attributes or 0].malformed(
            f"{dictionary.dialect}.{dictionary.name} stands where the dictionary of an op belongs"
        )
    for key, value in dictionary.field("elements") if dictionary else ():
        found[_text(file, key) or ""] = value
    return found


def program_name(name: str) -> str:
    """Return the op of a program that stands as the VHLO op ``name``, with dialect and version, in an artifact."""
    dialect, _, op = name.partition(".")
    if dialect != "vhlo":
        return name
    base = op.rpartition("_v")[0] or op
    return _PROGRAM_NAMES.get(base, f"stablehlo.{base}")


class Places:
    """The places of ops in a file.

    Args:
        file: The file.
        name: What the program is called, for places in a program that had no file.
    """

    def __init__(self, file: File, name: str) -> None:
        self._file = file
        self._name = name
        self._sources: dict[int, SourceLocation | None] = {}
        # By the identity of ops, which live as long as the file.
        self._symbols: dict[int, str | None] = {}
        # Of each function: the functions that call it, and where.
        self._calls: dict[str, list[tuple[str | None, int]]] = {}

    def source(self, location: int) -> SourceLocation | None:
        """Return the first place in a file that a location names, in the order in which MLIR prints it."""
        if location not in self._sources:
            self._sources[location] = self._first(location)
        return self._sources[location]

    def _first(self, location: int) -> SourceLocation | None:
        pending, seen = [location], set[int]()
        while pending and len(seen) < _DEEPEST:
            index = pending.pop()
            value = self._file.decode("attribute", index)
            if value is None or index in seen:
                continue
            seen.add(index)
            if value.name in ("file_line_col", "file_line_col_range"):
                if value.name == "file_line_col":
                    line, column = value.field("line"), value.field("column")
                else:
                    line, column = (*value.field("lines_and_columns"), 0, 0)[:2]
                file = _text(self._file, value.field("file")) or ""
                if line:
                    return SourceLocation(self._name if file in ("-", "<stdin>", "") else file, line, column)
            for part in reversed(_PARTS.get(value.name, ())):
                held = value.field(part)
                pending += reversed(held) if isinstance(held, tuple) else (held,)
        return None

    def path(self, place: Place) -> str:
        """Return where an op stands in the program, from its function inwards."""
        steps: list[str] = []
        at: Place | None = place
        while at is not None:
            function = self._symbol(at.op)
            if function is not None:
                steps.append(f"@{function}")
                break
            if at.around is not None:
                steps.append(f"{at.number}:{program_name(self._file.op_name(at.op.name))}")
                if self._symbol(at.around.op) is None and at.around.around is not None:
                    steps.append(str(at.region))
            at = at.around
        return "/".join(reversed(steps))

    def function(self, place: Place) -> str | None:
        """Return the function that an op stands in, or that it is; ``None`` outside of any."""
        at: Place | None = place
        while at is not None:
            found = self._symbol(at.op)
            if found is not None:
                return found
            at = at.around
        return None

    def called(self, place: Place) -> None:
        """Take note of a call."""
        attributes = attributes_of(self._file, place.op)
        for key in ("callee", "decomposition"):
            callee = _text(self._file, attributes[key]) if key in attributes else None
            if callee is not None:
                self._calls.setdefault(callee, []).append((self.function(place), place.op.location))

    def call_of(self, function: str | None) -> SourceLocation | None:
        """Return where a function is called from the user's source, through other functions where need be.

        Frameworks put library code into private functions, whose ops carry no place of the user's source; the calls
        of them do. Every call must have been noted.
        """
        pending, seen = [function], set[str | None]()
        while pending:
            name = pending.pop(0)
            if name is None or name in seen:
                continue
            seen.add(name)
            for caller, location in self._calls.get(name, ()):
                source = self.source(location)
                if source is not None:
                    return source
                pending.append(caller)
        return None

    def _symbol(self, op: Operation) -> str | None:
        if id(op) not in self._symbols:
            self._symbols[id(op)] = self._symbol_of(op)
        return self._symbols[id(op)]

    def _symbol_of(self, op: Operation) -> str | None:
        if not self._file.op_name(op.name).startswith("vhlo.func_v"):
            return None
        index = attributes_of(self._file, op).get("sym_name")
        return _text(self._file, index) if index is not None else None


def _text(file: File, index: int) -> str | None:
    value = file.decode("attribute", index)
    if value is None or value.name not in ("string", "string_v1"):
        return None
    return file.string(value.field("value"))
