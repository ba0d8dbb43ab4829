"""StableHLO versions: strict ``#.#.#``, ordered and hashable.

The rule is that of ``stablehlo/dialect/Version.cpp`` in openxla/stablehlo, minus what that code lets through and a
consumer later trips over: leading zeros (``1.00.0``) and numbers so long that parsing them ends the process.
"""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Final

from vhlo_tools.errors import InvalidVersionError

__all__ = ["Version"]

# Nine digits hold every version there will ever be and fit the 64-bit integers of the C++ side with room to spare.
_NUMBER: Final = r"(0|[1-9][0-9]{0,8})"
_VERSION: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}", re.ASCII)


@total_ordering
class Version:
    """A StableHLO version, which is also the version of the VHLO dialect.

    Minor versions change the dialect; patch versions do not, so that a target of ``1.8.5`` means what ``1.8.0`` means.

    Args:
        text: The version as ``#.#.#``.

    Raises:
        InvalidVersionError: If ``text`` is not such a version.

    >>> Version("1.9.0") < Version("1.10.0")
    True
    >>> str(Version("1.8.5").minor_release)
    '1.8.0'
    """

    __slots__ = ("_numbers",)
    _numbers: tuple[int, int, int]

    def __init__(self, text: str) -> None:
        match = _VERSION.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InvalidVersionError(
                f"{_shown(text)} is not a StableHLO version: expected three numbers without leading zeros, as in 1.9.0"
            )
        major, minor, patch = (int(number) for number in match.groups())
        self._numbers = (major, minor, patch)

    @property
    def major(self) -> int:
        """The first number."""
        return self._numbers[0]

    @property
    def minor(self) -> int:
        """The second number; a change of it means that the dialect changed."""
        return self._numbers[1]

    @property
    def patch(self) -> int:
        """The third number; it says nothing about the dialect."""
        return self._numbers[2]

    @property
    def minor_release(self) -> Version:
        """The version with patch 0, which decides what the dialect holds."""
        return self if self.patch == 0 else Version(f"{self.major}.{self.minor}.0")

    def __str__(self) -> str:
        return ".".join(map(str, self._numbers))

    def __repr__(self) -> str:
        return f"Version({str(self)!r})"

    def __hash__(self) -> int:
        return hash(self._numbers)

    def __eq__(self, other: object) -> bool:
        return self._numbers == other._numbers if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._numbers < other._numbers if isinstance(other, Version) else NotImplemented


def _shown(text: object) -> str:
    shown = repr(text)
    return shown if len(shown) <= 40 else f"{shown[:36]}...{shown[-1]}"
