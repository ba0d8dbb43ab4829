"""StableHLO versions: strict ``#.#.#``, ordered and hashable.

The syntax is that of ``stablehlo/dialect/Version.cpp`` in openxla/stablehlo, without what that code accepts and a
consumer later fails on: leading zeros (``1.00.0``) and numbers so long that parsing them crashes the process.
"""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering
from typing import Final

# Nine digits suffice for any future version and fit the 64-bit integers of the C++ side.
_NUMBER: Final = r"(0|[1-9][0-9]{0,8})"
_LONGEST: Final = 29
_VERSION: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}", re.ASCII)


class VhloToolsError(Exception):
    """The base class of all errors of this package.

    It is defined here, in the lowest module that raises an error; all others are in :mod:`vhlo_tools.errors`, which
    also exports this class.
    """


class InvalidVersionError(VhloToolsError, ValueError):
    """A text that is not a StableHLO version."""


@total_ordering
class Version:
    """A StableHLO version, which is also the version of the VHLO dialect.

    Minor versions change the dialect; patch versions do not, so that a target of ``1.8.5`` is equivalent to ``1.8.0``.
    It is equal to its text, and is ordered with texts of others; one that is not a version is equal to none.

    Args:
        text: The version as ``#.#.#``.

    Raises:
        InvalidVersionError: If ``text`` is not such a version.

    >>> Version("1.9.0") < Version("1.10.0")
    True
    >>> Version("1.9.0") >= "1.10.0"
    False
    >>> str(Version("1.8.5").minor_release)
    '1.8.0'
    """

    __slots__ = ("_numbers", "_text")
    _numbers: tuple[int, int, int]

    def __init__(self, text: str) -> None:
        # No text is kept that is longer than a version.
        found = _parsed(text) if isinstance(text, str) and len(text) <= _LONGEST else None
        if found is None:
            raise InvalidVersionError(
                f"{_shown(text)} is not a StableHLO version: expected three numbers without leading zeros, as in 1.9.0"
            )
        self._text, self._numbers = found

    @property
    def major(self) -> int:
        """The first number."""
        return self._numbers[0]

    @property
    def minor(self) -> int:
        """The second number; it increases when the dialect changes."""
        return self._numbers[1]

    @property
    def patch(self) -> int:
        """The third number; it does not affect the dialect."""
        return self._numbers[2]

    @property
    def minor_release(self) -> Version:
        """The version with patch 0, which determines the contents of the dialect."""
        return self if self.patch == 0 else Version(f"{self.major}.{self.minor}.0")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Version({self._text!r})"

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Version):
            return self._numbers == other._numbers
        return self._text == other if isinstance(other, str) else NotImplemented

    def __lt__(self, other: object) -> bool:
        found = Version(other) if isinstance(other, str) else other
        return self._numbers < found._numbers if isinstance(found, Version) else NotImplemented

    def __gt__(self, other: object) -> bool:
        # What `total_ordering` makes of __lt__ takes three times as long, and each file is compared very often.
        found = Version(other) if isinstance(other, str) else other
        return self._numbers > found._numbers if isinstance(found, Version) else NotImplemented


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[str, tuple[int, int, int]] | None:
    match = _VERSION.fullmatch(text)
    return None if match is None else (match[0], (int(match[1]), int(match[2]), int(match[3])))


def _shown(text: object) -> str:
    shown = repr(text)
    return shown if len(shown) <= 40 else f"{shown[:36]}...{shown[-1]}"
