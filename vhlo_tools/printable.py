"""Text from files, made fit for one line of a terminal or a log."""

from __future__ import annotations

import re
from typing import Final

# What CI runners take for a command: `::error::` after white space (GitHub), `##[error]` and `##vso[...]` anywhere
# (GitHub, Azure).
_COMMAND: Final = re.compile(r"(?m)^( *):(?=:)|#(?=#(?:\[|vso\[))")


def printable(text: str) -> str:
    r"""Return text with everything that is not printable as an escape: ``\n``, ``\x1b``, ``\u202e``.

    The result is one line. It has no control characters, no marks that change the direction of text, and no bytes of
    other encodings than UTF-8.

    >>> printable("f\x1b[31m.py\n")
    'f\\x1b[31m.py\\n'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def printable_lines(text: str) -> str:
    r"""Return lines of text, each as :func:`printable` returns it, and none that a CI runner takes for a command.

    >>> printable_lines("a\n::error::b")
    'a\n\\x3a:error::b'
    """
    lines = "\n".join(map(printable, text.split("\n")))
    return _COMMAND.sub(lambda found: f"{found[1] or ''}\\x{ord(found[0][-1]):02x}", lines)
