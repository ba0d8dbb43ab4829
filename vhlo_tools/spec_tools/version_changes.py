"""Changes in a new version: parsers of their command line, and edits of files, written all or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.files import write_atomically
from vhlo_tools.records import dataclass
from vhlo_tools.spec import Field, Slot
from vhlo_tools.spec_tools.toml_editing import Document, Edit, quoted

if TYPE_CHECKING:
    from vhlo_tools.spec import EntryKind, Specification
    from vhlo_tools.version import Version

# Changes in a new version, and the parsers of their command line form


@dataclass(frozen=True, slots=True)
class NewOp:
    name: str
    family: str  # may be new as well
    operands: tuple[Slot, ...] = (Slot("operand"),)
    results: tuple[Slot, ...] = (Slot("result"),)
    attributes: tuple[str, ...] = ()
    regions: tuple[Slot, ...] = ()
    is_sketch: bool = False  # only the name was given, the rest is a guess


@dataclass(frozen=True, slots=True)
class NewAttribute:
    """A new attribute of an op, which requires a new version of the op."""

    op: str
    name: str
    default: str  # an id in ``defaults.toml`` or a value (parse_attribute)


@dataclass(frozen=True, slots=True)
class NewKind:
    kind: EntryKind
    name: str  # with its version
    fields: tuple[str, ...] = ()  # of its encoding, after the code


@dataclass(frozen=True, slots=True)
class NewCase:
    """A new case of an enum, which may be new as well."""

    enum: str  # with its version
    name: str


NewEntry = NewOp | NewAttribute | NewKind | NewCase

_OP = re.compile(
    r"([a-z][a-z0-9_]*)/([a-z][a-z0-9_-]*)"
    r"(\s*\((?P<operands>[^()]*)\)\s*->\s*(\((?P<results>[^()]*)\)|(?P<result>[^(){}\[\]\s]+)))?"
    r"(\s*\{(?P<attributes>[^{}]*)\})?"
    r"(\s*\[(?P<regions>[^\[\]]*)\])?\s*"
)
_ATTRIBUTE = re.compile(r"([a-z][a-z0-9_-]*)\.([a-z]\w*)=(.+)", re.ASCII | re.DOTALL)
_KIND = re.compile(r"([A-Za-z]\w*)\s*(?:\((.*)\))?", re.ASCII | re.DOTALL)
_CASE = re.compile(r"([a-z]\w*)\.([A-Z][A-Z0-9_]*)", re.ASCII)


def parse_op(text: str) -> NewOp:
    """Parse ``FAMILY/NAME``, and where known operands and results, then ``{attributes}`` and ``[regions]``.

    Operands and results are written ``(lhs, rhs) -> result`` or ``(inputs*, token) -> (results*)``.
    """
    match = _OP.fullmatch(text)
    if match is None:
        raise InvalidSpecificationError(
            f"{text!r} is not an op: expected FAMILY/NAME, and then, as far as known, (OPERANDS) -> (RESULTS), "
            "{ATTRIBUTES} and [REGIONS]"
        )
    sketch = NewOp(match[2], match[1], is_sketch=match["operands"] is None)
    return NewOp(
        match[2],
        match[1],
        sketch.operands if sketch.is_sketch else _slots(match["operands"]),
        sketch.results if sketch.is_sketch else _slots(match["results"] or match["result"] or ""),
        tuple(sorted(_names(match["attributes"]))),
        _slots(match["regions"]),
        sketch.is_sketch,
    )


def parse_attribute(text: str) -> NewAttribute:
    """Parse ``OP.NAME=DEFAULT``.

    The default is an id in ``defaults.toml``, or ``true``, ``false``, ``[]``, an integer, a quoted string or
    ``ENUM.CASE``.
    """
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        raise InvalidSpecificationError(
            f"{text!r} is not an attribute of an op: expected OP.NAME=DEFAULT, where NAME is lower_case_words"
        )
    return NewAttribute(match[1], match[2], match[3])


def parse_kind(kind: EntryKind, text: str) -> NewKind:
    """Parse ``NAME`` or ``NAME(FIELD: KIND, ...)``."""
    match = _KIND.fullmatch(text)
    if match is None:
        raise InvalidSpecificationError(f"{text!r} is not a valid {kind}: expected NAME, or NAME(FIELD: KIND, ...)")
    fields = _names(match[2])
    for field in fields:
        try:
            Field.parse(field)
        except ValueError as error:
            raise InvalidSpecificationError(str(error)) from None
    return NewKind(kind, versioned(match[1]), fields)


def parse_case(text: str) -> NewCase:
    """Parse ``ENUM.CASE``."""
    match = _CASE.fullmatch(text)
    if match is None:
        raise InvalidSpecificationError(f"{text!r} is not a case: expected ENUM.CASE, as in precision.HIGHEST")
    return NewCase(versioned(match[1]), match[2])


def versioned(name: str) -> str:
    """The default is version 1."""
    return name if re.search(r"_v[1-9]\d*$", name) else f"{name}_v1"


def stem(name: str) -> str:
    return re.sub(r"_v[1-9]\d*$", "", name)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _slots(text: str | None) -> tuple[Slot, ...]:
    return tuple(map(Slot.parse, _names(text)))


# Plan for adding a new version: edits of files, and remaining manual work


@dataclass(frozen=True, slots=True)
class Remaining:
    path: Path
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Plan:
    version: Version
    edits: tuple[Edit, ...]
    remaining: tuple[Remaining, ...]


# Edits of the files of a specification that are planned together, and the tasks that remain after them


class Drafts:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.documents: dict[str, Document] = {}
        self.left: list[Callable[[], Remaining]] = []

    def document(self, file: str, text: str = "") -> Document:
        """Return the same document on each call."""
        if file not in self.documents:
            self.documents[file] = Document(self.folder / file, text)
        return self.documents[file]

    def leave(self, file: str, header: str, entry: str, wanted: str, what: str) -> None:
        """Record a task at a line, whose number is determined after all edits."""

        def remaining() -> Remaining:
            document = self.document(file)
            return Remaining(document.path, document.line_of(document.section(header, entry), wanted), what)

        self.left.append(remaining)

    @property
    def edits(self) -> list[Edit]:
        return [edit for document in self.documents.values() if (edit := document.edit) is not None]

    def add_op_version(self, file: str, op: str, entry: str, step: str, end: str) -> None:
        """Add a version of an op, and the step to it; the last version then ends at the version ``end``."""
        document = self.document(file)
        last = document.section("op.version", op)
        # A step may have subtables: [op.step.added].
        steps = [each for each in document.sections("op", op) if each.header.startswith("op.step")]
        # From the bottom up, so that the positions above remain valid.
        document.insert(max(steps or [last], key=lambda each: each.end).end, f"\n{step}")
        document.insert(last.end, entry)
        document.insert(document.line_of(last, "min"), f'max = "{end}"\n')

    def plan(self, version: Version, edits: Sequence[Edit], further: Sequence[Remaining] = ()) -> Plan:
        """Order tasks as the edits of their files."""
        order = {edit.path: place for place, edit in enumerate(edits)}
        left = [*(remaining() for remaining in self.left), *further]
        left.sort(key=lambda each: (order.get(each.path, len(order)), str(each.path), each.line))
        return Plan(version, tuple(edits), tuple(left))


# Defaults given on a command line: the id of an existing default, or a value from which a new default is made


@dataclass(frozen=True, slots=True)
class NewDefault:
    id: str
    text: str  # as VHLO text prints it
    value: str  # as TOML
    is_guess: bool = False  # only the id was given

    def entry(self) -> str:
        return f'[[default]]\nid = "{self.id}"\ntext = {quoted(self.text)}\nvalue = {self.value}\n'


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


# Write edits: all of them, or none


def write_edits(edits: Sequence[Edit]) -> None:
    """If writing one file fails, those already written are restored."""
    written: list[Edit] = []
    try:
        for edit in edits:
            edit.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(edit.path, [edit.after.encode()], force=edit.before is not None)
            written.append(edit)
    except BaseException:
        for edit in reversed(written):
            if edit.before is None:
                edit.path.unlink()
            else:
                write_atomically(edit.path, [edit.before.encode()], force=True)
        raise
