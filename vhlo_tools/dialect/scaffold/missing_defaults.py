"""Defaults given on a command line: the id of an existing default, or a value from which a new default is made."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from vhlo_tools.dialect.scaffold.changes import stem, versioned
from vhlo_tools.dialect.scaffold.document import quoted
from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.dialect.specification import Specification


@dataclass(frozen=True, slots=True)
class NewDefault:
    id: str
    text: str  # as VHLO text prints it
    value: str  # as TOML
    is_guess: bool = False  # only the id was given

    def entry(self) -> str:
        return f'[[default]]\nid = "{self.id}"\ntext = {quoted(self.text)}\nvalue = {self.value}\n'


_CASE = re.compile(r"([a-z]\w*)\.([A-Z][A-Z0-9_]*)", re.ASCII)
_TEXT = re.compile(r"\"([^\"\\]*)\"|'([^'\\]*)'")


def default_of(specs: Specification, attribute: str, given: str) -> str | NewDefault:
    """Return the id of the existing default equal to ``given`` (an id or a value), or a new default."""
    if specs.default(given) is not None:
        return given
    default = default_from(attribute, given)
    if default is None:
        if not re.fullmatch(r"[A-Za-z]\w*", given, re.ASCII):
            raise InvalidSpecificationError(
                f"{given!r} is not a default: expected an id in vhlo/defaults.toml, or true, false, [], an integer, a "
                f"string in quotes or ENUM.CASE"
            )
        close = get_close_matches(given, [default.id for default in specs.defaults], n=1, cutoff=0.7)
        if close:
            raise InvalidSpecificationError(f"there is no default {given}; did you mean {close[0]}?")
        default = NewDefault(given, *_text(""), is_guess=True)
    same = next((each.id for each in specs.defaults if each.text == default.text and each.equals == "same"), None)
    return default if same is None or default.is_guess else same


def default_from(attribute: str, given: str) -> NewDefault | None:
    """Return a default with the value ``given``, even if an equal one exists; ``None`` if it is no value."""
    if given in ("true", "false"):
        return NewDefault(given, f"#vhlo.bool_v1<{given}>", f'{{ attribute = "bool_v1", value = {given} }}')
    if given == "[]":
        return NewDefault("empty_array", "#vhlo.array_v1<[]>", '{ attribute = "array_v1", elements = [] }')
    if re.fullmatch(r"-?(0|[1-9]\d*)", given, re.ASCII):
        type_ = '{ type = "i64_v1" }'
        return NewDefault(
            f"i64_{given.replace('-', 'minus_')}",
            f"#vhlo.integer_v1<{given} : i64>",
            f'{{ attribute = "integer_v1", type = {type_}, value = {given} }}',
        )
    if match := _TEXT.fullmatch(given):
        text = match[1] if match[2] is None else match[2]
        return NewDefault(f"default_{attribute}" if text else "empty_string", *_text(text))
    if match := _CASE.fullmatch(given):
        enum = versioned(match[1])
        value = f'{{ attribute = "{enum}", case = "{match[2]}" }}'
        return NewDefault(f"{stem(enum)}_{match[2].lower()}", f"#vhlo<{enum} {match[2]}>", value)
    return None


_BOOL_TEXT = re.compile(r"#vhlo\.bool_v1<(true|false)>")
_TYPE_TEXT = re.compile(r"#vhlo\.type_v1<!vhlo\.([A-Za-z]\w*)_(v[1-9]\d*)>", re.ASCII)


def default_of_text(attribute: str, text: str) -> NewDefault:
    """Return a default for a value that the library prints; a guess if the form of the text is unknown."""
    if match := _TYPE_TEXT.fullmatch(text):
        value = f'{{ attribute = "type_v1", type = {{ type = "{match[1]}_{match[2]}" }} }}'
        return NewDefault(f"{match[1]}_type", text, value)
    given = match[1] if (match := _BOOL_TEXT.fullmatch(text)) else "[]" if text == "#vhlo.array_v1<[]>" else None
    default = default_from(attribute, given) if given else None
    return default or NewDefault(f"default_{attribute}", text, _text("")[1], is_guess=True)


def _text(text: str) -> tuple[str, str]:
    return f'#vhlo.string_v1<"{text}">', f'{{ attribute = "string_v1", value = {quoted(text)} }}'
