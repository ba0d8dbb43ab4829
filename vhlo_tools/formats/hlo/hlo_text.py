"""The first line of HLO text: the name, signature and aliases of a module.

``HloModule NAME, input_output_alias={...}, buffer_donor={...}, entry_computation_layout={(f32[4]{0})->f32[4]{0}}``,
with more attributes in any order. Source: ``xla/hlo/parser/hlo_parser.cc`` in openxla/xla.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vhlo_tools.aliasing import (
    Array,
    Opaque,
    Signature,
    Tuple,
    format_aliases,
    parse_aliases,
    parse_donors,
)
from vhlo_tools.errors import AliasError
from vhlo_tools.formats.hlo.header import HloHeader

if TYPE_CHECKING:
    from vhlo_tools.aliasing import (
        Shape,
    )

_ALIASES: Final = "input_output_alias"
_DONORS: Final = "buffer_donor"
_LAYOUT: Final = "entry_computation_layout"
_HEAD: Final = re.compile(r"\s*HloModule\s+([^\s,]+)")
_ENTRY: Final = re.compile(r"^[ \t]*ENTRY\b[^\n]*\n", re.MULTILINE)
_INSTRUCTION: Final = re.compile(r"\s*(ROOT\s+)?%?[\w.-]+\s*=")
_PARAMETER: Final = re.compile(r"\s*parameter\(\s*(\d{1,9})\s*\)")
_DEEPEST: Final = 100
#: `<=` and a number of 64 bits: Python refuses to convert very long numbers.
_LONGEST_SIZE: Final = 21


def read_hlo_text(text: str) -> HloHeader:
    """Return the header, without XLA.

    The signature is that of ``entry_computation_layout`` or, where that is missing, of the instructions of the entry
    computation; ``None`` if these have an unknown form.
    """
    header = parse_header(text.lstrip().partition("\n")[0])
    return header if header.signature else replace(header, signature=_entry_signature(text))


def parse_header(line: str) -> HloHeader:
    match = _HEAD.match(line)
    if match is None:
        raise AliasError(f"{line[:60]!r} is not the first line of HLO text: expected HloModule NAME, ...")
    aliases, donors, layout = (_attribute(line, name) for name in (_ALIASES, _DONORS, _LAYOUT))
    return HloHeader(
        name=match[1],
        aliases=tuple(parse_aliases(aliases[2])) if aliases else (),
        donors=tuple(parse_donors(donors[2])) if donors else (),
        signature=_signature(layout[2]) if layout else None,
    )


def with_long_aliases(text: str) -> str:
    """Write aliases in the long form, the only one that XLA's own parser reads."""
    end = text.find("\n")
    line = text if end < 0 else text[:end]
    found = _attribute(line, _ALIASES)
    if found is None:
        return text
    start, stop, body = found
    return f"{text[:start]}{format_aliases(parse_aliases(body))}{text[stop:]}"


def _attribute(line: str, name: str) -> tuple[int, int, str] | None:
    """Return the start and the end of the value of an attribute in braces, and the value."""
    match = re.search(rf"[,\s]{name}\s*=\s*(?=\{{)", line)
    if match is None:
        return None
    depth = 0
    for at in range(match.end(), len(line)):
        depth += (line[at] == "{") - (line[at] == "}")
        if depth == 0:
            return match.end(), at + 1, line[match.end() : at + 1]
    raise AliasError(f"the braces of {name} are not closed in the first line of the HLO text")


def _signature(text: str) -> Signature:
    """Parse a signature, as in ``{(f32[4]{0}, s32[])->(f32[4]{0})}``."""
    reader = _Shapes(text[1:-1])
    parameters = reader.shape(0)
    reader.expect("->")
    result = reader.shape(0)
    if not isinstance(parameters, Tuple):
        raise reader.malformed()
    return Signature(parameters.elements, result)


def _entry_signature(text: str) -> Signature | None:
    """Return the signature of the entry computation by its instructions."""
    entry = _ENTRY.search(text)
    if entry is None:
        return None
    parameters: dict[int, Shape] = {}
    result: Shape | None = None
    for line in _lines(text, entry.end()):
        if (instruction := _INSTRUCTION.match(line)) is None:
            continue
        reader = _Shapes(line, instruction.end())
        try:
            shape = reader.shape(0)
        except AliasError:
            return None
        if parameter := reader.match(_PARAMETER):
            parameters[int(parameter[1])] = shape
        if instruction[1]:
            result = shape
    if result is None or sorted(parameters) != list(range(len(parameters))):
        return None
    return Signature(tuple(parameters[number] for number in range(len(parameters))), result)


def _lines(text: str, start: int) -> Iterator[str]:
    """Yield the lines of the computation whose first line ends at ``start``."""
    while start < len(text):
        stop = text.find("\n", start)
        line = text[start : stop if stop >= 0 else len(text)]
        if line.strip() == "}":
            return
        yield line
        start += len(line) + 1


class _Shapes:
    """Reader of consecutive shapes."""

    # A layout may hold a shape with a layout of its own: `f32[2]{0:P(u8[8]{0})}`.
    _ARRAY: Final = re.compile(r"([a-z]\w*)\[([^\]]*)\](\{(?:[^{}]|\{[^{}]*\})*\})?")
    _COMMENT: Final = re.compile(r"\s*(/\*[^*]*\*/\s*)*")

    def __init__(self, text: str, start: int = 0) -> None:
        self._text = text
        self._at = start

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return pattern.match(self._text, self._at)

    def malformed(self) -> AliasError:
        return AliasError(f"expected an HLO shape, found {self._text[self._at : self._at + 60]!r}")

    def expect(self, sign: str) -> None:
        if not self._skip(sign):
            raise self.malformed()

    def shape(self, depth: int) -> Shape:
        if depth > _DEEPEST:
            raise AliasError(f"shapes nest deeper than {_DEEPEST}")
        if self._skip("("):
            elements: list[Shape] = []
            while not self._skip(")"):
                if elements:
                    self.expect(",")
                elements.append(self.shape(depth + 1))
            return Tuple(tuple(elements))
        self._skip("")
        match = self._ARRAY.match(self._text, self._at)
        if match is None:
            raise self.malformed()
        # `<=8` and `?` are dynamic sizes.
        sizes = [size.strip() for size in match[2].split(",") if size.strip()]
        if any(len(size) > _LONGEST_SIZE for size in sizes):
            raise self.malformed()
        self._at = match.end()
        if match[1] in ("token", "opaque"):
            return Opaque(f"{match[1]}[]")
        static = (int(size) if size.isdecimal() else None for size in sizes)
        bounds = (int(size[2:]) if size[:2] == "<=" and size[2:].isdecimal() else None for size in sizes)
        return Array.of_hlo(match[1], tuple(static), tuple(bounds))

    def _skip(self, sign: str) -> bool:
        """Skip white space, comments such as ``/*index=5*/``, and ``sign`` if it comes next."""
        space = self._COMMENT.match(self._text, self._at)
        at = space.end() if space else self._at
        if self._text.startswith(sign, at):
            self._at = at + len(sign)
            return True
        return False
