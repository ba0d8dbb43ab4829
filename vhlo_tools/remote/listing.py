"""Listings of objects, page by page: a prefix or a glob of millions of objects is never held as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from vhlo_tools.remote.connections import store_of

if TYPE_CHECKING:
    from vhlo_tools.remote.places import Url
    from vhlo_tools.remote.store import Listed

_MAGIC: Final = re.compile(r"[*?\[]")


def objects_under(prefix: Url) -> Iterator[list[Listed]]:
    """Yield objects page by page, as the store lists them at that moment; folder markers are left out."""
    for page in store_of(prefix).pages(prefix):
        # Consoles write an empty object for a folder.
        yield [each for each in page if not each.url.is_prefix]


def is_glob(url: Url) -> bool:
    """Whether the key of a URL can be a glob."""
    return _MAGIC.search(url.key) is not None


def glob_start(url: Url) -> Url:
    """Return the prefix of everything that a glob can match."""
    found = _MAGIC.search(url.key)
    return url if found is None else url.with_key(url.key[: found.start()])


def matcher(glob: Url) -> re.Pattern[str]:
    """Return an expression for the keys that a glob selects.

    As in :mod:`glob`: ``*`` and ``?`` match neither slashes nor a dot that begins a name, ``**`` is any number of
    folders.
    """
    parts = glob.key.split("/")
    last = len(parts) - 1
    text = ""
    for index, part in enumerate(parts):
        if part == "**":
            text += r"(?:[^/.][^/]*/)*" if index < last else r"(?:[^/.][^/]*/)*[^/.][^/]*"
        else:
            text += _part(part) + ("/" if index < last else "")
    return re.compile(text, re.DOTALL)


def _part(part: str) -> str:
    """Return the expression for the text between two slashes of a glob."""
    text = r"(?!\.)" if part[:1] in ("*", "?", "[") else ""
    at = 0
    while at < len(part):
        sign = part[at]
        end = part.find("]", at + 2 + (part[at + 1 : at + 2] == "!")) if sign == "[" else -1
        if sign == "*":
            text += "[^/]*"
        elif sign == "?":
            text += "[^/]"
        elif end > 0:
            inside = part[at + 1 : end]
            negated = inside.startswith("!")
            chosen = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside[negated:])
            text += f"(?!/)[{'^' if negated else ''}{chosen}]"
            at = end
        else:
            text += re.escape(sign)
        at += 1
    return text
