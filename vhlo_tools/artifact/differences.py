"""Differences between two programs, and short descriptions of attributes and types."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, Literal, get_args

from vhlo_tools.artifact.numbering import FileNumbering, ValueNumbering
from vhlo_tools.bytecode import File, Head, Operation, Printer, Value, digest, element_texts, entry_name, program_name
from vhlo_tools.files import View, view
from vhlo_tools.records import dataclass
from vhlo_tools.spec import known_dialects

# Data class of a difference between two programs

DifferenceKind = Literal[
    "version",
    "module attribute",
    "function",
    "signature",
    "function attribute",
    "argument attribute",
    "result attribute",
    "alias",
    "donor",
    "constant",
    "op",
    "location",
]

#: The kinds, in the order in which they are shown.
DIFFERENCE_KINDS: tuple[DifferenceKind, ...] = get_args(DifferenceKind)


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between two programs.

    Attributes:
        kind: The kind of the difference.
        path: Its location: ``module``, ``@main argument 0 tf.aliasing_output``, or an op from its function inwards, as
            in ``@main/3:stablehlo.while/1/0:stablehlo.add``, followed by the part of it. Positions are those in the
            first program, or in the second for parts that only that has.
        before: The text for the first program; ``None`` if it lacks the part.
        after: The text for the second program; ``None`` if it lacks the part.
    """

    kind: DifferenceKind
    path: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        where = f"{self.kind}: {self.path}: " if self.path else f"{self.kind}: "
        if self.before is None:
            return f"{where}added {self.after}"
        if self.after is None:
            return f"{where}removed {self.before}"
        return f"{where}{self.before} -> {self.after}"


class Differences(list[Difference]):
    """A list of differences, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        # Imported here, as it is for notebooks alone.
        from vhlo_tools.markup import table

        rows = ((each.kind, each.path, each.before, each.after) for each in self)
        return table("differences", ("kind", "where", "before", "after"), rows) if self else "<p>no differences</p>"


# Short descriptions of attributes and types, in StableHLO syntax if possible

# Tensors with more elements are described by their digest.
_MOST_ELEMENTS: Final = 16
_LONGEST: Final = 400
# Attributes without a specification are printed up to this size.
_LONGEST_ENTRY: Final = 1 << 16
_DEEPEST: Final = 100
_DIGITS: Final = 16
_NAMES_SHOWN: Final = 4
# What VHLO attributes begin with whose dialect goes without saying.
_MARKS: Final = frozenset({"#vhlo", "#vhlo.bool_v1", "#vhlo.float_v1", "#vhlo.integer_v1", "#vhlo.string_v1"})


class Describer:
    """Describer of ops, attributes and types of one file.

    ``digests`` tells large constants apart by digests, for which they are read; without, their sizes are shown.
    """

    def __init__(self, numbering: FileNumbering, *, digests: bool = True) -> None:
        self.numbering = numbering
        self._digests = digests
        self._file = numbering.file
        self._printer = Printer(numbering.file)
        self.type: Callable[[int], str] = self._printer.short_type

    @classmethod
    def of_one(cls, file: File) -> Describer:
        """Return a describer of a file that is compared with no other, and of which no constant is read."""
        return cls(FileNumbering(file, ValueNumbering()), digests=False)

    def types(self, indices: Iterable[int]) -> str:
        return f"({', '.join(map(self.type, indices))})"

    def location(self, index: int | None) -> str:
        return "unknown" if index is None else shortened(self._printer.location(index))

    def attribute(self, index: int) -> str:
        """Large attributes are shown by their digest."""
        return shortened(self._attribute(index, 0))

    def kind(self, index: int) -> str:
        return entry_name(self._file, "attribute", self._file.attributes[index])

    def op(self, op: Operation) -> str:
        """Use the name in programs, with the types of the results."""
        name = program_name(self.numbering.name(op))
        return shortened(f"{name} : {', '.join(map(self.type, op.results))}" if op.results else name)

    def properties(self, op: Operation | Head) -> str | None:
        """Format properties of an unknown form as hexadecimal digits."""
        own = self.numbering.opaque_properties(op)
        return None if own is None else shortened(f"0x{own.hex()}")

    def ops(self, ops: Iterable[Head]) -> str:
        """Return the number of ops, and the most frequent op names."""
        counts = Counter(program_name(self.numbering.name(op)) for op in ops)
        most = [f"{number} {name}" for name, number in counts.most_common(_NAMES_SHOWN)]
        if len(counts) > _NAMES_SHOWN:
            most.append("...")
        number = counts.total()
        return f"{number} op{'s' if number > 1 else ''}: {', '.join(most)}" if counts else "no ops"

    def _attribute(self, index: int, depth: int) -> str:
        value = self.numbering.decode("attribute", index)
        if depth > _DEEPEST:
            raise self._file.attributes[index].malformed(
                f"attributes nest deeper than {_DEEPEST} levels, or in a cycle"
            )
        if value is not None and value.name in ("tensor_v1", "dense"):
            return self._tensor(value)
        if (elements := self._file.elements(index)) is not None:
            return f"[{self._joined((('', each) for each in elements), depth)}]"
        if (held := self._file.dictionary(index)) is not None:
            return f"{{{self._joined(held.items(), depth)}}}"
        data = view(self._file.attributes[index].data)
        if len(data) > _LONGEST_ENTRY:
            return f"{self.kind(index)}, {self._identity(data)}"
        if value is not None and value.name == "type_v1":
            return self.type(value.field("value"))
        if value is not None and value.dialect not in known_dialects():
            return self._fields(value, depth)
        # Without the redundant prefix of the dialect.
        text = self._printer.attribute(index)
        mark, _, body = text.partition("<")
        if not text.endswith(">") or mark not in _MARKS:
            return text
        return body[:-1].partition(" ")[2] if mark == "#vhlo" else body[:-1]

    def _fields(self, value: Value, depth: int) -> str:
        """Format an attribute of another dialect by its fields."""
        parts = []
        for field, content in zip(value.encoding.fields, value.fields, strict=True):
            if content is None:
                continue
            if "attribute" in field.kind:
                items = [("", each) for each in (content if field.is_list else (content,))]
                text = self._joined(items, depth)
            elif field.kind == "string":
                text = self._file.string(content)
            else:
                text = ", ".join(map(str, content)) if field.is_list else str(content)
            parts.append(f"{field.name} = {f'[{text}]' if field.is_list else text}")
        return f"{value.name}<{', '.join(parts)}>"

    def _joined(self, items: Iterable[tuple[str, int]], depth: int) -> str:
        parts: list[str] = []
        size = 0
        for name, index in items:
            parts.append(f"{name} = {self._attribute(index, depth + 1)}" if name else self._attribute(index, depth + 1))
            size += len(parts[-1])
            if size > 2 * _LONGEST:
                parts.append("...")
                break
        return ", ".join(parts)

    def _tensor(self, value: Value) -> str:
        text, shape, element = self._printer.builtin_tensor(value.field("type"))
        whole = view(value.field("data"))
        if not self._digests and len(whole) > _LONGEST_ENTRY:
            # Finding its shortest form would read it.
            return f"{text}, {len(whole)} bytes"
        data = self.numbering.elements(value)
        number = math.prod(shape)
        shown = element_texts(data, element, _MOST_ELEMENTS)
        if shown is None or number < 0:
            return f"{text}, {self._identity(data)}"
        body = shown[0] if len(shown) == 1 and (number > 1 or not shape) else f"[{', '.join(shown)}]" if shown else ""
        return f"dense<{body}> : {text}"

    def _identity(self, data: View) -> str:
        size = f"{len(data)} bytes"
        return f"{size}, sha256 {digest(data)[:_DIGITS]}" if self._digests else size


def shortened(text: str) -> str:
    """Return ``text``, or its beginning with a digest that distinguishes it from others with the same beginning."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 40]}... (sha256 {digest(memoryview(text.encode()))[:_DIGITS]})"
