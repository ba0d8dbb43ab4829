"""The first line of HLO text: what a module is called, takes, gives and aliases.

``HloModule NAME, input_output_alias={...}, buffer_donor={...}, entry_computation_layout={(f32[4]{0})->f32[4]{0}}``,
with more attributes in any order. Source: ``xla/hlo/parser/hlo_parser.cc`` in openxla/xla.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from vhlo_tools.aliasing.config import Alias, Donor
from vhlo_tools.aliasing.hlo_form import format_aliases, parse_aliases, parse_donors
from vhlo_tools.aliasing.shapes import Array, Opaque, Shape, Signature, Tuple
from vhlo_tools.errors import AliasError

__all__ = ["HloHeader", "parse_header", "with_long_aliases"]

_ALIASES: Final = "input_output_alias"
_DONORS: Final = "buffer_donor"
_LAYOUT: Final = "entry_computation_layout"
_HEAD: Final = re.compile(r"\s*HloModule\s+([^\s,]+)")
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class HloHeader:
    """The first line of HLO text.

    Attributes:
        name: The name of the module.
        aliases: Which outputs may be written over which inputs.
        donors: Which inputs are given away.
        signature: What the entry takes and gives; ``None`` if the line does not say.
    """

    name: str
    aliases: tuple[Alias, ...]
    donors: tuple[Donor, ...]
    signature: Signature | None


def parse_header(line: str) -> HloHeader:
    """Return what the first line of HLO text says.

    Raises:
        AliasError: If it is of another form.
    """
    match = _HEAD.match(line)
    if match is None:
        raise AliasError(f"{line[:60]!r} is no first line of HLO text: expected HloModule NAME, ...")
    aliases, donors, layout = (_attribute(line, name) for name in (_ALIASES, _DONORS, _LAYOUT))
    return HloHeader(
        name=match[1],
        aliases=tuple(parse_aliases(aliases[2])) if aliases else (),
        donors=tuple(parse_donors(donors[2])) if donors else (),
        signature=_signature(layout[2]) if layout else None,
    )


def with_long_aliases(text: str) -> str:
    """Return HLO text with its aliases in the one form that XLA's own parser reads.

    Raises:
        AliasError: If they are of no form.
    """
    end = text.find("\n")
    line = text if end < 0 else text[:end]
    found = _attribute(line, _ALIASES)
    if found is None:
        return text
    start, stop, body = found
    return f"{text[:start]}{format_aliases(parse_aliases(body))}{text[stop:]}"


def _attribute(line: str, name: str) -> tuple[int, int, str] | None:
    """Return where the value of an attribute in braces begins and ends, and the value."""
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
    """Return the signature in ``{(f32[4]{0}, s32[])->(f32[4]{0})}``."""
    reader = _Shapes(text[1:-1])
    parameters = reader.shape(0)
    reader.expect("->")
    result = reader.shape(0)
    if not isinstance(parameters, Tuple):
        raise reader.malformed()
    return Signature(parameters.elements, result)


class _Shapes:
    """Reads shapes one after the other."""

    _ARRAY: Final = re.compile(r"\s*([a-z]\w*)\[([^\]]*)\](\{[^}]*\})?")
    _COMMENT: Final = re.compile(r"\s*(/\*[^*]*\*/\s*)*")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def malformed(self) -> AliasError:
        return AliasError(f"{self._text[self._at : self._at + 60]!r} stands where a shape of HLO belongs")

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
        match = self._ARRAY.match(self._text, self._at)
        if match is None:
            raise self.malformed()
        self._at = match.end()
        if match[1] in ("token", "opaque"):
            return Opaque(f"{match[1]}[]")
        # `<=8` and `?` are sizes that are known at run time only.
        sizes = [size.strip() for size in match[2].split(",") if size.strip()]
        return Array(match[1], tuple(int(size) if size.isdigit() else None for size in sizes))

    def _skip(self, sign: str) -> bool:
        """Skip white space, comments such as ``/*index=5*/``, and ``sign`` if it comes next."""
        space = self._COMMENT.match(self._text, self._at)
        at = space.end() if space else self._at
        if self._text.startswith(sign, at):
            self._at = at + len(sign)
            return True
        return False
