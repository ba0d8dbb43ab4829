"""Text from files, made fit for a terminal, for a log that a runner of CI reads, and for JSON and MLIR in such a log.

The rule of each format, for everything that comes from a file:

- text: :func:`printable` for a name, :func:`printable_lines` for lines; also within XML, HTML, DOT and annotations,
  which escape the rest as they must;
- JSON: :func:`json_text`, whose values are exactly what the file has;
- MLIR and HLO: :func:`mlir_text` and :func:`hlo_text`, which mean what they meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

# What runners of CI take for a command anywhere in a line: `##[` (GitHub: ActionCommand.TryParse of actions/runner),
# `##vso[` (Azure Pipelines), `##teamcity[`, `section_start:1:` (GitLab: logs_section_prefix_regex of Gitlab::Regex).
# GitHub's runner searches as people compare words, by which some characters that are not ASCII count for nothing.
_ANYWHERE: Final = re.compile(r"#(?=#|[^\n -~])|(?<=section)_(?=(?:start|end):[0-9]+:)")
# And at the start of a line, after white space: `::` (GitHub: ActionCommand.TryParseV2), and `--- `, `+++ `, `~~~ `
# (HeaderTimesStreamer of buildkite/agent) and `^^^ `.
# A search for a line break is ten times as fast as one for the start of a line.
_AT_START: Final = re.compile(r"\n([^!-~\n]*)(:(?=[^!-~\n]*:)|([-+~^])(?=\3\3 ))")


def printable(text: str) -> str:
    r"""Return text with everything that is not printable as an escape: ``\n``, ``\x1b``, ``\u202e``.

    The result is one line. It has no control characters, no marks that change the direction of text, no bytes of other
    encodings than UTF-8, and nothing within that a CI runner takes for a command.

    >>> printable("f\x1b[31m.py\n ##[error]")
    'f\\x1b[31m.py\\n \\x23#[error]'
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return _without_commands(text, "\\x{:02x}")


def printable_lines(text: str) -> str:
    r"""Return lines of text, each as :func:`printable` returns it, and none that a CI runner takes for a command.

    >>> printable_lines("a\n::error::b")
    'a\n\\x3a:error::b'
    """
    if text.replace("\n", "").isprintable():
        lines = _without_commands(text, "\\x{:02x}")
    else:
        lines = "\n".join(map(printable, text.split("\n")))
    return _AT_START.sub(lambda found: f"\n{found[1]}\\x{ord(found[2]):02x}", f"\n{lines}")[1:]


def json_text(value: object, *, indent: int | None = None) -> str:
    r"""Return JSON in ASCII that :func:`printable_lines` leaves as it is, and that means exactly the value.

    >>> json_text("\x1b ##[error]")
    '"\\u001b \\u0023#[error]"'
    """
    return _without_commands(_encoder(indent)(value), "\\u{:04x}")


@cache
def _encoder(indent: int | None) -> Callable[[object], str]:
    """Made once, as each of very many lines is encoded by itself."""
    # Imported here because most output is text.
    from json import JSONEncoder

    return JSONEncoder(indent=indent, default=str, allow_nan=False).encode


#: The version of all that commands print as JSON: it rises where a key is taken away, or changes its meaning.
SCHEMA_VERSION: Final = 1


def json_record(values: Mapping[str, object]) -> dict[str, Any]:
    """Return what a command prints as a JSON document, or as a line of JSON, with the version that it has."""
    return {"schema_version": SCHEMA_VERSION, "tool_version": _tool_version(), **values}


def json_document(
    before: Mapping[str, object], name: str, items: Iterable[str], after: Callable[[], Mapping[str, object]]
) -> Iterator[str]:
    """Yield the lines of a JSON object with a list of very many items, which are JSON, each as soon as it is known.

    ``after`` is called when all have been taken.
    """
    items = iter(items)
    # Nothing is printed where the first item cannot be found.
    last = next(items, None)
    yield "{"
    for key, value in before.items():
        yield f'"{key}": {json_text(value)},'
    yield f'"{name}": ['
    for each in items:
        yield f"{last},"
        last = each
    if last is not None:
        yield last
    rest = [f'"{key}": {json_text(value)}' for key, value in after().items()]
    yield ",\n".join(["]", *rest])
    yield "}"


@cache
def _tool_version() -> str:
    """Read once: each of very many lines has it."""
    # Imported here because most output is text.
    from importlib.metadata import version

    return version("vhlo-tools")


def mlir_text(text: str) -> str:
    r"""Return MLIR, as its printer writes it, with nothing within its strings that a CI runner takes for a command.

    The printer itself escapes what is not ASCII. Outside of strings there is no such text.

    >>> mlir_text('@"##[error]"')
    '@"\\23#[error]"'
    """
    return _without_commands(text, "\\{:02X}")


def hlo_text(text: str) -> str:
    r"""Return HLO as :func:`mlir_text` returns MLIR, with the escapes of its strings: ``\043``."""
    return _without_commands(text, "\\{:03o}")


def _without_commands(text: str, escape: str) -> str:
    if "#" in text or "section_" in text:
        return _ANYWHERE.sub(lambda found: escape.format(ord(found[0])), text)
    return text
