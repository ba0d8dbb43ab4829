"""Bytecode encodings of types and attributes (codes and fields), from the writers of ``VhloBytecode.cpp``.

The comments of that file name the fields too, but some are wrong; the calls of the writers decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vhlo_tools.dialect.checkout.definitions import Definitions, KindSource
from vhlo_tools.dialect.checkout.files import Checkout, body_from, plain_code, snake_case
from vhlo_tools.records import dataclass

FILE: Final = "stablehlo/dialect/VhloBytecode.cpp"


@dataclass(frozen=True, slots=True)
class EncodingSource:
    code: int
    fields: tuple[tuple[str, str], ...]  # names and kinds, as in ``types.toml``


def read_encodings(checkout: Checkout, definitions: Definitions) -> dict[str, tuple[EncodingSource, ...]]:
    """Read the encodings by C++ class; one that cannot be read is left out."""
    code = plain_code(checkout.text(FILE))
    reader = _Reader(code, definitions, checkout)
    kinds = (("TypeCode", definitions.types), ("AttributeCode", definitions.attributes))
    return {
        kind.cpp: encodings
        for enum, sources in kinds
        for kind in sources
        if (encodings := reader.encodings_of(kind, _codes(code, enum, checkout)))
    }


def _codes(code: str, enum: str, checkout: Checkout) -> dict[str, int]:
    place = re.search(rf"\benum\s+{enum}\b[^;{{]*\{{", code)
    found = re.findall(r"\bk(\w+)\s*=\s*(\d{1,9})\b", body_from(code, place.start())) if place else []
    if not found:
        checkout.miss(FILE, f"enum {enum} {{ kNAME = #, ... }}", f"the codes of every {enum.removesuffix('Code')}")
    return {name: int(number) for name, number in found}


_CALLS: Final = {
    "writeVarInt": "varint",
    "writeSignedVarInt": "svarint",
    "writeSignedVarInts": "svarint[]",
    "writeType": "type",
    "writeTypes": "type[]",
    "writeAttribute": "attribute",
    "writeAttributes": "attribute[]",
    "writeOptionalAttribute": "attribute?",
    "writeOwnedString": "string",
    "writeOwnedBlob": "blob",
    "writeUnownedBlob": "blob",
    "writeResourceHandle": "resource",
    "writeAPIntWithKnownWidth": "apint",
    "writeAPFloatWithKnownSemantics": "apfloat",
}

_CODE: Final = r"writer\.writeVarInt\( ?(?:\w+::)?k(\w+) ?\) ?; ?"
_CALL: Final = re.compile(r"writer\.(\w+)\( ?((?:[^;()]|\((?:[^;()]|\([^;()]*\))*\))*) ?\) ?; ?")
_FORMS: Final = {
    "code": re.compile(_CODE),
    # An attribute that may be absent: 1 and the attribute, or 0.
    "flagged": re.compile(
        r"if \( ?\w+\.get(\w+)\( ?\) ?\) ?\{ ?writer\.writeVarInt\(1\) ?; ?writer\.writeAttribute\([^;]*\) ?; ?\} ?"
        r"else ?\{ ?writer\.writeVarInt\(0\) ?; ?\} ?"
    ),
    # One code with an attribute, another code without.
    "either": re.compile(
        rf"if \( ?Attribute (\w+) = [^;{{]*\) ?\{{ ?{_CODE}writer\.writeAttribute\( ?\1 ?\) ?; ?\}} ?"
        rf"else ?\{{ ?{_CODE}\}} ?"
    ),
    "enum": re.compile(r"(?:\w+::)*writeEnumAttribute<(?:\w+::)*(\w+)>\( ?\w+ ?, ?writer ?\) ?; ?"),
    "list": re.compile(r"writer\.writeList\( ?([^;\[]*), ?\[&\] ?\([^)]*\) ?\{ ?([^{}]*)\} ?\) ?; ?"),
    "call": _CALL,
    "helper": re.compile(r"(\w+)\( ?writer ?, ?\w+ ?\) ?; ?"),
}


_WRITER: Final = re.compile(r"::write\(\s*(?:\w+::)*(\w+)\s+\w+\s*,")
_READER: Final = re.compile(r"::read(\w+)\(")
_HELPER: Final = re.compile(r"\bvoid\s+(\w+)\([^()]*\)\s*\{")
_MENTIONED: Final = re.compile(r"\w::k(\w+)\s*\)")


class _Reader:
    def __init__(self, code: str, definitions: Definitions, checkout: Checkout) -> None:
        self._code = code
        self._definitions = definitions
        self._checkout = checkout

        # Where each writer and reader begins, by the class of what it writes or reads, and what is written without one.
        self._writers = {match[1]: match.start() for match in _WRITER.finditer(code)}
        self._readers = {match[1]: match.start() for match in _READER.finditer(code)}
        self._helpers = {match[1]: match.start() for match in _HELPER.finditer(code)}
        self._mentioned = set(_MENTIONED.findall(code))

    def encodings_of(self, kind: KindSource, codes: dict[str, int]) -> tuple[EncodingSource, ...]:
        writer = self._writers.get(kind.cpp)
        if writer is None:
            if kind.cpp in codes and kind.cpp in self._mentioned:
                return (EncodingSource(codes[kind.cpp], ()),)
            self._miss(kind, f"write({kind.cpp}, ...), or writeVarInt(k{kind.cpp})")
            return ()
        body = " ".join(re.sub(r"\b_?LOG_\w+;?", "", body_from(self._code, writer)).split())
        try:
            return tuple(self._encodings(body, kind, codes))
        except _UnknownFormError as error:
            self._miss(kind, f"a known form of writer in write({kind.cpp}, ...): {error}")
            return ()

    def _encodings(self, body: str, kind: KindSource, codes: dict[str, int]) -> Iterator[EncodingSource]:
        starts: list[tuple[str, tuple[tuple[str, str], ...]]] = []
        fields: list[tuple[str, str]] = []
        for form, match in _forms(body):
            match form:
                case "code":
                    starts.append((match[1], ()))
                case "either":
                    starts += [(match[3], ()), (match[2], ((snake_case(match[1]), "attribute"),))]
                case _:
                    fields.append(self._field(form, match, kind, fields))
        if not starts or any(name not in codes for name, _ in starts):
            raise _UnknownFormError("no code of the enum is written")
        for name, before in starts:
            yield EncodingSource(codes[name], tuple((_short(each, what), what) for each, what in (*before, *fields)))

    def _field(
        self, form: str, match: re.Match[str], kind: KindSource, before: list[tuple[str, str]]
    ) -> tuple[str, str]:
        match form:
            case "flagged":
                return snake_case(match[1]), "flagged attribute"
            case "enum":
                enum = self._definitions.enum(match[1])
                if enum is None:
                    raise _UnknownFormError(f"there is no enum {match[1]}")
                return "value", f"enum {enum.attribute.name}"
            case "list":
                inner = [self._field(each, found, kind, []) for each, found in _forms(match[2])]
                kinds = [each for _, each in inner]
                if kinds == ["attribute", "attribute"]:
                    return _name(match[1]), "pair[]"
                if len(kinds) != 1 or kinds[0].endswith("[]"):
                    raise _UnknownFormError(f"a list of {', '.join(kinds) or 'nothing'}")
                return _name(match[1]), f"{kinds[0]}[]"
            case "call" if match[1] in _CALLS:
                written = _CALLS[match[1]]
                is_double = written == "apfloat" and not any(each == "type" for _, each in before)
                if written == "apfloat" and (is_double or self._reads_doubles(kind)):
                    written = "f64"
                return _name(match[2]), written
            case "helper":
                body = body_from(self._code, self._helpers[match[1]]) if match[1] in self._helpers else ""
                if re.search(r"\bwriter\.write(?:Uno|O)wnedBlob\(", body):
                    return "data", "blob"
        raise _UnknownFormError(match[0][:60])

    def _reads_doubles(self, kind: KindSource) -> bool:
        """Some readers take every float for a double, whatever type they read."""
        reader = self._readers.get(kind.cpp)
        return reader is not None and "IEEEdouble" in body_from(self._code, reader)

    def _miss(self, kind: KindSource, expected: str) -> None:
        self._checkout.miss(FILE, expected, f"the code and the fields of {kind.name}")


class _UnknownFormError(Exception):
    pass


def _forms(body: str) -> Iterator[tuple[str, re.Match[str]]]:
    position = 0
    while position < len(body):
        for name, form in _FORMS.items():
            if match := form.match(body, position):
                yield name, match
                position = match.end()
                break
        else:
            raise _UnknownFormError(body[position : position + 60])


def _short(name: str, kind: str) -> str:
    """``element``, not ``element_type``: the kind of a field is not repeated in its name."""
    return name.removesuffix("_type") or name if kind == "type" else name


def _name(argument: str) -> str:
    getters: list[str] = re.findall(r"\.get(\w+)\(", argument)
    return snake_case(getters[0]) if getters else "value"
