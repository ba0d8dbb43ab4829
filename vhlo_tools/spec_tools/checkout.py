"""``vhlo spec import``: read the definition of VHLO from a checkout of openxla/stablehlo."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.spec import Slot
from vhlo_tools.spec_tools.checkout_files import (
    Checkout,
    Records,
    TableGen,
    body_from,
    bytecode_versions,
    dates_of,
    find_tablegen,
    plain_code,
    read_current,
    read_minimum,
    read_records,
    snake_case,
    split_arguments,
    version_in,
    version_log,
)
from vhlo_tools.spec_tools.survey import Survey, constraint_name, encoding_text, requirement_text
from vhlo_tools.spec_tools.version_changes import default_from, default_of_text
from vhlo_tools.version import Version

# Ops, types, attributes and enums of VHLO, from TableGen records

_NAME: Final = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)_v([1-9][0-9]{0,5})", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z]\w*", re.ASCII)
_DIALECT: Final = "vhlo"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class OpSource:
    cpp: str  # the class in C++: ``AllReduceOpV2``
    op: str
    number: int
    min: Version | None  # None if it could not be read
    max: Version | None  # None while it is current
    arguments: tuple[str, ...]  # operands and attributes by name, in the order of the builders
    operands: tuple[Slot, ...]
    attributes: tuple[str, ...]
    results: tuple[Slot, ...]
    regions: tuple[Slot, ...]
    place: str

    @property
    def name(self) -> str:
        return f"{self.op}_v{self.number}"


@dataclass(frozen=True, slots=True)
class KindSource:
    cpp: str  # the class in C++: ``FloatF32V1Type``
    name: str
    min: Version | None  # None if it could not be read
    max: Version | None  # None while it is current
    place: str


@dataclass(frozen=True, slots=True)
class EnumSource:
    cpp: str
    attribute: KindSource
    cases: Mapping[str, int]
    #: the first versions of cases that are newer than the enum, where C++ says so
    begins: Mapping[str, Version] = field(default_factory=dict)


# Not slotted: cached properties keep their results in __dict__.
@dataclass(frozen=True)
class Definitions:
    ops: tuple[OpSource, ...]
    types: tuple[KindSource, ...]
    attributes: tuple[KindSource, ...]  # those of enums among them
    enums: tuple[EnumSource, ...]

    # By the class in C++.

    @cached_property
    def op(self) -> Mapping[str, OpSource]:
        return {each.cpp: each for each in self.ops}

    @cached_property
    def kind(self) -> Mapping[str, KindSource]:
        return {each.cpp: each for each in (*self.types, *self.attributes)}

    @cached_property
    def enum(self) -> Mapping[str, EnumSource]:
        return {each.cpp: each for each in self.enums}


def read_definitions(records: Records, checkout: Checkout) -> Definitions:
    ops = _all(records, "Op", "opDialect", lambda record: _op(record, records, checkout))
    types = _all(records, "TypeDef", "dialect", lambda record: _kind(record, records, checkout))
    attributes = _all(records, "AttrDef", "dialect", lambda record: _kind(record, records, checkout))
    enums = _all(records, "EnumAttr", "dialect", lambda record: _enum(record, records, checkout))
    if not ops:
        raise InvalidSpecificationError(f"{checkout.folder} defines no op of the dialect {_DIALECT}")
    found = Definitions(
        tuple(sorted(ops, key=lambda op: (op.op, op.number))), tuple(types), tuple(attributes), tuple(enums)
    )
    for what, names in (
        ("op version", [each.name for each in found.ops]),
        ("type", [each.name for each in found.types]),
        ("attribute", [each.name for each in found.attributes]),
    ):
        if twice := sorted(name for name, count in Counter(names).items() if count > 1):
            raise InvalidSpecificationError(f"{checkout.folder} defines the {what} {twice[0]} more than once")
    return found


def _all(records: Records, kind: str, dialect: str, read: Callable[[Mapping[str, Any]], _T]) -> list[_T]:
    found = []
    for record in records.instances(kind):
        try:
            if records.record(record[dialect]).get("name") == _DIALECT:
                found.append(read(record))
        except InvalidSpecificationError:
            raise
        except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise InvalidSpecificationError(
                f"{records.place(record)}: the {kind} {printable(str(record.get('!name')))[:80]} has not the form that "
                f"MLIR gives it: {type(error).__name__}: {printable(str(error))[:80]}"
            ) from None
    return found


def _op(record: Mapping[str, Any], records: Records, checkout: Checkout) -> OpSource:
    op, number = _split(record["opName"])
    operands, attributes, place = [], [], records.place(record)
    arguments = [(each, _word(name)) for each, name in record["arguments"]["args"]]
    for each, name in arguments:
        if records.is_a(each, "AttrConstraint"):
            attributes.append(name)
        else:
            operands.append(_slot(each, name, records, checkout, place))
    low, high = _life(record, records, checkout, f"{op}_v{number}")
    return OpSource(
        _cpp(record),
        op,
        number,
        low,
        high,
        tuple(name for _, name in arguments),
        tuple(operands),
        tuple(attributes),
        tuple(_slot(each, _word(name), records, checkout, place) for each, name in record["results"]["args"]),
        tuple(_slot(each, _word(name), records, checkout, place) for each, name in record["regions"]["args"]),
        place,
    )


def _cpp(record: Mapping[str, Any]) -> str:
    # As MLIR does: what stands before the first underscore of a definition is the prefix of the dialect.
    name = str(record["!name"])
    return name.partition("_")[2] or name


def _slot(value: object, name: str, records: Records, checkout: Checkout, place: str) -> Slot:
    if records.is_a(value, "Optional"):
        checkout.miss(place, f"a required or a variadic {name}", "whether it is there: it is taken for variadic")
    variadic = any(records.is_a(value, kind) for kind in ("Variadic", "VariadicRegion", "Optional"))
    return Slot(name, variadic)


def _kind(record: Mapping[str, Any], records: Records, checkout: Checkout) -> KindSource:
    stem, number = _split(record["mnemonic"])
    name = f"{stem}_v{number}"
    low, high = _life(record, records, checkout, name)
    return KindSource(_word(record["cppClassName"]), name, low, high, records.place(record))


def _enum(record: Mapping[str, Any], records: Records, checkout: Checkout) -> EnumSource:
    enum = records.record(record["enum"])
    enumerants = [records.record(each) for each in enum["enumerants"]]
    cases = {_word(each["str"]): int(each["value"]) for each in enumerants}
    symbols = {str(each["symbol"]): str(each["str"]) for each in enumerants}
    begins = {}
    for symbol, text in _CASE_BEGINS.findall(_body(record, "getMinVersion")):
        version = version_in(text)
        if symbol in symbols and version is not None:
            begins[symbols[symbol]] = version
    return EnumSource(_word(enum["className"]), _kind(record, records, checkout), cases, begins)


# `if (getValue() == ComparisonTypeV1::WEAKORDER) return Version(1, 22, 0);`
_CASE_BEGINS: Final = re.compile(r"::(\w+)\s*\)+\s*\{?\s*return\s+([\w:]*Version\([^;]*);")


def _life(
    record: Mapping[str, Any], records: Records, checkout: Checkout, name: str
) -> tuple[Version | None, Version | None]:
    first, last = _body(record, "getMinVersion"), _body(record, "getMaxVersion")
    # Where the version depends on the value, the last return is that of all other values.
    low = version_in(first.rpartition("return")[2])
    high = version_in(last.rpartition("return")[2])
    place = records.place(record)
    if low is None:
        checkout.miss(place, "getMinVersion() { return Version(#, #, #); }", f"the first version of {name}")
    if high is None and "getCurrentVersion()" not in last:
        checkout.miss(place, "getMaxVersion() with a version or getCurrentVersion()", f"the last version of {name}")
    return low, high


def _body(record: Mapping[str, Any], method: str) -> str:
    code = "\n".join(str(record.get(key) or "") for key in ("extraClassDeclaration", "extraClassDefinition"))
    place = code.find(f"{method}()")
    return body_from(code, place) if place >= 0 else ""


def _split(name: object) -> tuple[str, int]:
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise InvalidSpecificationError(f"{printable(str(name))[:80]!r} is no name with a version, as in abs_v1")
    return match[1], int(match[2])


def _word(name: object) -> str:
    if not isinstance(name, str) or _WORD.fullmatch(name) is None:
        raise InvalidSpecificationError(f"{printable(str(name))[:80]!r} is no name")
    return name


# Constraints of op versions, from the functions ``validateConstraint`` of ``VhloOps.cpp``

_CONSTRAINTS_FILE: Final = "stablehlo/dialect/VhloOps.cpp"


@dataclass(frozen=True, slots=True)
class ConstraintSource:
    op: OpSource
    since: Version  # the first version that allows it
    requires: tuple[dict[str, Any], ...]  # entries as in the specification; empty if it could not be read
    place: str


_FUNCTION: Final = re.compile(
    r"\bLogicalResult\s+(\w+)\(\s*(?:mlir::)?Operation\s*\*\s*\w+\s*,\s*Version\b[^)]*\)\s*\{"
)
_CALLED: Final = re.compile(r"\b(\w+)\(")
_METHOD: Final = re.compile(r"\bLogicalResult\s+(\w+)::validateConstraint\([^)]*\)\s*\{")


def read_constraints(checkout: Checkout, definitions: Definitions) -> tuple[ConstraintSource, ...]:
    code = plain_code(checkout.text(_CONSTRAINTS_FILE))
    functions = {match[1]: match.start() for match in _FUNCTION.finditer(code)}
    found: list[ConstraintSource] = []
    for method in _METHOD.finditer(code):
        op = definitions.op.get(method[1])
        body = body_from(code, method.start())
        called = [name for name in dict.fromkeys(_CALLED.findall(body)) if name in functions]
        starts = [functions[name] for name in called] or [method.start()]
        for start in starts:
            place = f"{_CONSTRAINTS_FILE}:{code.count(chr(10), 0, start) + 1}"
            text = " ".join(body_from(code, start).split())
            since = version_in(text)
            if op is None or since is None:
                what = "an op of the dialect" if op is None else "targetVersion < Version(#, #, #)"
                checkout.miss(place, what, f"what {method[1]} does not allow")
                continue
            requires = tuple(_requirements(text, definitions))
            if not requires:
                checkout.miss(place, "a known form of condition", f"what {op.name} does not allow before {since}")
            found.append(ConstraintSource(op, since, requires, place))
    return tuple(found)


_SAME: Final = re.compile(r"checkIfOperandAndResultElementTypesMatch\(")
_ATTRIBUTE: Final = re.compile(r"\bisa<(?:\w+::)*(\w+V\d+Attr)>\( ?\w+(?:\.|->)get(\w+)\(\) ?\)")
_CASE: Final = re.compile(r"\b\w+(?:\.|->)get(\w+)\(\) ?\) ?\.getValue\(\) ?== ?(?:\w+::)*?(\w+V\d+)::(\w+)")
_OPERAND: Final = re.compile(
    r"for \( ?Type (\w+) : \w+(?:\.|->)get(\w+)\(\)\.getTypes\(\) ?\) ?\{ ?"
    r"if \( ?(?:\w+::)*isa<(?:\w+::)*(\w+V\d+Type)>\( ?\1 ?\) ?\)"
)


def _requirements(text: str, definitions: Definitions) -> Iterator[dict[str, Any]]:
    if _SAME.search(text):
        yield {"requires": "same_element_types"}
    for cpp, name in _ATTRIBUTE.findall(text):
        if (kind := definitions.kind.get(cpp)) is not None:
            yield {"requires": "attributes_are_not", "attributes": [snake_case(name)], "kind": kind.name}
    for name, cpp, case in _CASE.findall(text):
        if (enum := definitions.enum.get(cpp)) is not None and case in enum.cases:
            value = {"attribute": enum.attribute.name, "case": case}
            yield {"requires": "attributes_are_not", "attributes": [snake_case(name)], "value": value}
    for _, name, cpp in _OPERAND.findall(text):
        if (kind := definitions.kind.get(cpp)) is not None:
            yield {"requires": "operands_are_not", "operands": [snake_case(name)], "kind": kind.name}


# Bytecode encodings of types and attributes (codes and fields), from the writers of ``VhloBytecode.cpp``
#
# The comments of that file name the fields too, but some are wrong; the calls of the writers decide.

FILE: Final = "stablehlo/dialect/VhloBytecode.cpp"


@dataclass(frozen=True, slots=True)
class EncodingSource:
    code: int
    fields: tuple[tuple[str, str], ...]  # names and kinds, as in ``types.toml``


def read_encodings(checkout: Checkout, definitions: Definitions) -> dict[str, tuple[EncodingSource, ...]]:
    """Read the encodings by C++ class; one that cannot be read is left out."""
    code = plain_code(checkout.text(FILE))
    reader = _Reader(code, definitions, checkout)
    found: dict[str, tuple[EncodingSource, ...]] = {}
    for enum, sources in (("TypeCode", definitions.types), ("AttributeCode", definitions.attributes)):
        place = re.search(rf"\benum\s+{enum}\b[^;{{]*\{{", code)
        listed = re.findall(r"\bk(\w+)\s*=\s*(\d{1,9})\b", body_from(code, place.start())) if place else []
        if not listed:
            checkout.miss(FILE, f"enum {enum} {{ kNAME = #, ... }}", f"the codes of every {enum.removesuffix('Code')}")
        codes = {name: int(number) for name, number in listed}
        for kind in sources:
            if encodings := reader.encodings_of(kind, codes):
                found[kind.cpp] = encodings
    return found


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
            # ``element``, not ``element_type``: the kind of a field is not repeated in its name.
            held = (
                (each.removesuffix("_type") or each if what == "type" else each, what)
                for each, what in (*before, *fields)
            )
            yield EncodingSource(codes[name], tuple(held))

    def _field(
        self, form: str, match: re.Match[str], kind: KindSource, before: list[tuple[str, str]]
    ) -> tuple[str, str]:
        match form:
            case "flagged":
                return snake_case(match[1]), "flagged attribute"
            case "enum":
                enum = self._definitions.enum.get(match[1])
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
                if written == "apfloat":
                    # Some readers take every float for a double, whatever type they read.
                    reader = self._readers.get(kind.cpp)
                    reads_doubles = reader is not None and "IEEEdouble" in body_from(self._code, reader)
                    if reads_doubles or not any(each == "type" for _, each in before):
                        written = "f64"
                return _name(match[2]), written
            case "helper":
                body = body_from(self._code, self._helpers[match[1]]) if match[1] in self._helpers else ""
                if re.search(r"\bwriter\.write(?:Uno|O)wnedBlob\(", body):
                    return "data", "blob"
        raise _UnknownFormError(match[0][:60])

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


def _name(argument: str) -> str:
    getters: list[str] = re.findall(r"\.get(\w+)\(", argument)
    return snake_case(getters[0]) if getters else "value"


# Steps between versions of ops: changes from the ops themselves, defaults from the patterns
#
# The patterns are in ``VhloToVersionPatterns.td``, or for ops with regions in ``VhloToVersion.cpp``, which also has the
# functions that make defaults.

_REWRITES_FILE: Final = "stablehlo/transforms/VhloToVersion.cpp"

#: What functions make that do more than one call, as the ids in ``defaults.toml``.
_MADE: Final = {
    "getEmptyI64Tensor": "empty_tensor",
    "getDefaultConvPadding": "zero_convolution_padding",
    "getDefaultResultAccuracy": "default_result_accuracy",
}


@dataclass(frozen=True, slots=True)
class StepSource:
    older: OpSource
    newer: OpSource
    #: attributes of the newer version only, with the ids of their defaults; None where none was found
    added: Mapping[str, str | None] = field(hash=False)
    removed: Mapping[str, str | None] = field(hash=False)  # attributes of the older version only, likewise
    single: tuple[str, ...]  # operands and results that became variadic
    empty: tuple[str, ...]  # variadic regions that the newer version adds


def read_steps(
    records: Records, checkout: Checkout, definitions: Definitions
) -> tuple[tuple[StepSource, ...], dict[str, tuple[str, str] | None]]:
    """Read the steps, and their defaults by id: the value as text and as TOML, ``None`` where unknown."""
    pairs = [
        (older, newer)
        for older, newer in pairwise(definitions.ops)
        if older.op == newer.op and older.number + 1 == newer.number
    ]
    code = plain_code(checkout.text(_REWRITES_FILE)) if pairs else ""
    patterns = _read_patterns(records, code, definitions)
    defaults = _Defaults(code, definitions)
    steps = tuple(_step(older, newer, patterns, defaults, checkout) for older, newer in pairs)
    return steps, defaults.found


def _step(older: OpSource, newer: OpSource, patterns: _Patterns, defaults: _Defaults, checkout: Checkout) -> StepSource:
    def values(source: OpSource, target: OpSource) -> dict[str, str | None]:
        made = patterns.get((source.cpp, target.cpp), {})
        found: dict[str, str | None] = {}
        for name in (name for name in target.attributes if name not in source.attributes):
            found[name] = defaults.id_of(made[name], name) if name in made else None
            if found[name] is None:
                checkout.miss(
                    f"{_REWRITES_FILE} and VhloToVersionPatterns.td",
                    f"a pattern from {source.cpp} to {target.cpp} that makes a value for {name}",
                    f"the default of {name} in {target.name}",
                )
        return found

    values_of = [(older.operands, newer.operands), (older.results, newer.results)]
    single = [
        after.name
        for before_all, after_all in values_of
        for before, after in zip(before_all, after_all, strict=False)
        if after.variadic and not before.variadic
    ]
    empty = [region.name for region in newer.regions[len(older.regions) :] if region.variadic]
    same = all(
        len(before) == len(after) or any(slot.variadic for slot in (*before, *after)) for before, after in values_of
    )
    if not same:
        checkout.miss(newer.place, f"as many operands and results as {older.name}", f"the step to {newer.name}")
    return StepSource(older, newer, values(older, newer), values(newer, older), tuple(single), tuple(empty))


#: The functions that patterns call to make attributes, by the classes of two op versions.
_Patterns = Mapping[tuple[str, str], Mapping[str, str]]


def _read_patterns(records: Records, code: str, definitions: Definitions) -> _Patterns:
    made: dict[tuple[str, str], dict[str, str]] = {}
    for source, target, arguments in (*_of_records(records), *_of_code(code)):
        op = definitions.op.get(target)
        if op is not None:
            made[source, target] = {name: maker for name, maker in zip(op.arguments, arguments, strict=False) if maker}
    return made


def _of_records(records: Records) -> Iterator[tuple[str, str, list[str | None]]]:
    for record in records.instances("Pattern"):
        try:
            source = _op_class(record["sourcePattern"]["operator"])
            for result in record["resultPatterns"]:
                if isinstance(result, Mapping) and result.get("kind") == "dag":
                    arguments = [_maker(value, records) for value, _ in result["args"]]
                    yield source, _op_class(result["operator"]), arguments
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidSpecificationError):
                raise
            raise InvalidSpecificationError(
                f"{records.place(record)}: the pattern has not the form that MLIR gives it"
            ) from None


def _op_class(reference: Mapping[str, Any]) -> str:
    return str(reference["def"]).partition("_")[2]


def _maker(value: object, records: Records) -> str | None:
    """Return the function that makes an argument of a pattern; ``None`` if the argument comes from the source op."""
    if not isinstance(value, Mapping) or value.get("kind") != "dag":
        return None
    expression = str(records.record(value["operator"]).get("expression", ""))
    call = re.match(r"\s*(\w+)\(\s*\$_builder", expression)
    return call[1] if call else None


# auto newOp = rewriter.replaceOpWithNewOp<ScatterOpV2>(op, op->getResultTypes(), ARGUMENTS);
_REPLACED: Final = re.compile(r"replaceOpWithNewOp<\s*(?:\w+::)*(\w+)\s*>\(")
_STRUCT: Final = re.compile(r"\bstruct\s+\w+\s*(?:final\s*)?:\s*(?:public\s+)?\w+<\s*(?:\w+::)*(\w+)\s*>\s*\{")


def _of_code(code: str) -> Iterator[tuple[str, str, list[str | None]]]:
    for struct in _STRUCT.finditer(code):
        body = body_from(code, struct.start())
        for replaced in _REPLACED.finditer(body):
            # The op, and the types of its results.
            arguments = split_arguments(body[replaced.end() :])[2:]
            calls = (re.match(r"(\w+)\(\s*(?:rewriter|builder)\b", argument) for argument in arguments)
            yield struct[1], replaced[1], [call[1] if call else None for call in calls]


class _Defaults:
    def __init__(self, code: str, definitions: Definitions) -> None:
        self._code = code
        self._definitions = definitions
        self.found: dict[str, tuple[str, str] | None] = {}

    def id_of(self, maker: str, attribute: str) -> str:
        function = re.search(rf"\b\w+\s+{maker}\([^)]*\)\s*\{{", self._code)
        body = " ".join(body_from(self._code, function.start()).split()) if function else ""
        made = self._of_type(body) or next(
            (
                (default.id, (default.text, default.value))
                for given in _given(body)
                if (default := default_from(attribute, given)) is not None
            ),
            None,
        )
        identifier, value = made or (_MADE.get(maker) or snake_case(maker.removeprefix("get")), None)
        self.found[identifier] = value
        return identifier

    def _of_type(self, body: str) -> tuple[str, tuple[str, str]] | None:
        match = re.search(r"^return TypeV1Attr::get\([^;]*?(\w+V\d+Type)::get\(", body)
        kind = self._definitions.kind.get(match[1]) if match else None
        if kind is None:
            return None
        default = default_of_text("", f"#vhlo.type_v1<!vhlo.{kind.name}>")
        return default.id, (default.text, default.value)


def _given(body: str) -> Iterator[str]:
    """Yield the returned value in the form that the command line takes."""
    if match := re.search(r"^return (?:\w+::)*BooleanV1Attr::get\([^;]*,\s*(true|false)\);", body):
        yield match[1]
    if re.search(r"^return (?:\w+::)*ArrayV1Attr::get\([^;]*,\s*\{\}\);", body):
        yield "[]"
    if match := re.search(r'^return (?:\w+::)*StringV1Attr::get\([^;"]*,\s*("[^"\\]*")\);', body):
        yield match[1]


# Survey of a checkout: the definition of VHLO in its TableGen and C++ files


def survey_checkout(folder: Path, tablegen: TableGen | None = None) -> Survey:
    """The days of versions are known only if the checkout has its git history."""
    checkout = Checkout.open(folder)
    current, minimum = read_current(checkout), read_minimum(checkout)
    records = read_records(checkout, tablegen or find_tablegen())
    definitions = read_definitions(records, checkout)
    encodings = read_encodings(checkout, definitions)
    steps, defaults = read_steps(records, checkout, definitions)
    constraints = read_constraints(checkout, definitions)
    notes = version_log(checkout)
    bytecode = bytecode_versions(checkout, {*notes, current})
    begins = [
        *(op.min for op in definitions.ops),
        *(kind.min for kind in (*definitions.types, *definitions.attributes)),
    ]
    versions = {*notes, current, *(each for each in begins if each is not None)}
    places = {("op", op.name): op.place for op in definitions.ops}
    places |= {("step", _step_name(step)): step.newer.place for step in steps}
    places |= {("constraint", constraint_name(each.op.name, each.since)): each.place for each in constraints}
    for kind, sources in (("type", definitions.types), ("attribute", definitions.attributes)):
        places |= {(kind, source.name): source.place for source in sources}
    for enum in definitions.enums:
        names = [("enum", enum.attribute.name), *(("case", f"{enum.attribute.name}.{case}") for case in enum.cases)]
        places |= dict.fromkeys(names, enum.attribute.place)
    encoded = {
        kind.name: tuple(
            (each.code, tuple(f"{name}: {what}" for name, what in each.fields))
            for each in sorted(encodings.get(kind.cpp, ()), key=lambda each: each.code)
        )
        for kind in (*definitions.types, *definitions.attributes)
    }
    cases = {
        f"{enum.attribute.name}.{name}": {"value": value, **_begin(enum.begins.get(name))}
        for enum in definitions.enums
        for name, value in enum.cases.items()
    }
    required: dict[str, dict[str, Any]] = {}
    requirements: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for each in constraints:
        name = constraint_name(each.op.name, each.since)
        requirements[name] = (*requirements.get(name, ()), *each.requires)
        required[name] = {"min": str(each.since), "requires": sorted(map(requirement_text, requirements[name]))}
    return Survey(
        f"the checkout {folder}",
        current,
        minimum,
        {
            "version": {str(each): {"bytecode": bytecode[each]} if each in bytecode else {} for each in bytecode},
            "type": {source.name: _surveyed_kind(source, encodings) for source in definitions.types},
            "attribute": {source.name: _surveyed_kind(source, encodings) for source in definitions.attributes},
            "enum": {enum.attribute.name: _surveyed_life(enum.attribute) for enum in definitions.enums},
            "case": cases,
            "op": {
                op.name: {
                    **_surveyed_life(op),
                    "operands": list(map(str, op.operands)),
                    "results": list(map(str, op.results)),
                    "regions": list(map(str, op.regions)),
                    "attributes": sorted(op.attributes),
                }
                for op in definitions.ops
            },
            "step": {
                _step_name(step): {
                    **_begin(step.newer.min),
                    "added": dict(step.added),
                    "removed": dict(step.removed),
                    "single": sorted(step.single),
                    "empty": sorted(step.empty),
                }
                for step in steps
            },
            "constraint": required,
        },
        places=places,
        notes=notes,
        dates=dates_of(checkout, versions),
        defaults=defaults,
        requirements=requirements,
        encodings=encoded,
        unread=tuple(dict.fromkeys(checkout.unread)),
    )


def _begin(version: Version | None) -> dict[str, str]:
    return {} if version is None else {"min": str(version)}


def _surveyed_life(source: KindSource | OpSource) -> dict[str, Any]:
    return {**_begin(source.min), "max": None if source.max is None else str(source.max)}


def _surveyed_kind(source: KindSource, encodings: Mapping[str, tuple[EncodingSource, ...]]) -> dict[str, Any]:
    facts = _surveyed_life(source)
    if source.cpp in encodings:
        found = encodings[source.cpp]
        facts["encodings"] = sorted(encoding_text(each.code, [kind for _, kind in each.fields]) for each in found)
    return facts


def _step_name(step: StepSource) -> str:
    return f"{step.newer.op}.{step.older.number}-{step.newer.number}"
