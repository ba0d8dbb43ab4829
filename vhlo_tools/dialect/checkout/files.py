"""Files of a checkout of openxla/stablehlo, or of a fork of it.

A checkout is read as data, and may be hostile: only ``llvm-tblgen``, which has no side effects, runs on it, and what
cannot be read is an :class:`InvalidSpecificationError` that names the file.
"""

from __future__ import annotations

import re
from dataclasses import field
from pathlib import Path
from typing import Final

from vhlo_tools.dialect.survey.facts import Unread
from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

#: What a checkout has at least.
_NEEDED: Final = "stablehlo/dialect/VhloOps.td"
# The largest of upstream's has 80 kB, and the longest body in one of them 6 kB.
_LARGEST: Final = 1 << 20
_LONGEST: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Checkout:
    folder: Path  # the root, which contains the folder ``stablehlo``
    unread: list[Unread] = field(default_factory=list)

    @classmethod
    def open(cls, folder: Path) -> Checkout:
        if not (folder / _NEEDED).is_file():
            raise InvalidSpecificationError(
                f"{folder} is no checkout of StableHLO: it has no {_NEEDED}; name the folder that `git clone "
                f"https://github.com/openxla/stablehlo` makes, or that of a fork"
            )
        return cls(folder)

    def has(self, file: str) -> bool:
        return (self.folder / file).is_file()

    def text(self, file: str) -> str:
        path = self.folder / file
        try:
            if not path.is_file():
                raise InvalidSpecificationError(f"{path} is missing: expected a whole checkout of StableHLO")
            if path.stat().st_size > _LARGEST:
                raise InvalidSpecificationError(f"{path} is larger than any source file: expected at most 1 MB")
            return path.read_bytes().decode("utf-8", errors="replace")
        except OSError as error:
            raise InvalidSpecificationError(f"{path} cannot be read: {error.strerror}") from None

    def miss(self, place: str, expected: str, unknown: str) -> None:
        self.unread.append(Unread(place, expected, unknown))


# Either may be left open: it then ends with the line, or with the file.
_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"?|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_BRACE = re.compile("[{}]")
_VERSION = re.compile(r"Version\(\s*\"?\s*(\d{1,9})\s*,\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\"?\s*\)")


def plain_code(text: str) -> str:
    """Remove the comments of C++ and keep the line numbers."""

    def replaced(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith('"') else "\n" * match[0].count("\n") or " "

    return _COMMENT.sub(replaced, text)


def body_from(text: str, start: int) -> str:
    """Return the text between the next ``{`` and its ``}``; empty if longer than any handwritten body."""
    begin = text.find("{", start, start + _LONGEST)
    depth = 0
    for brace in _BRACE.finditer(text, begin, begin + _LONGEST) if begin >= 0 else ():
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return text[begin + 1 : brace.start()]
    return ""


def split_arguments(text: str) -> list[str]:
    """Split the arguments of a call, whose text begins behind its ``(``, at the commas of the call itself."""
    arguments, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            break
        if character == "," and not depth:
            arguments.append("")
        else:
            arguments[-1] += character
    return [" ".join(argument.split()) for argument in arguments]


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def version_in(text: str) -> Version | None:
    match = _VERSION.search(text)
    return Version(".".join(str(int(number)) for number in match.groups())) if match else None
