"""Ops, types, attributes and enums of VHLO, from TableGen records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Final, TypeVar

from vhlo_tools.dialect.checkout.files import Checkout, body_from, version_in
from vhlo_tools.dialect.checkout.tablegen import Records
from vhlo_tools.dialect.ops import Slot
from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

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
    begins: Mapping[str, Version] = field(default_factory=dict, hash=False)


# Not slotted: cached properties keep their results in __dict__.
@dataclass(frozen=True)
class Definitions:
    ops: tuple[OpSource, ...]
    types: tuple[KindSource, ...]
    attributes: tuple[KindSource, ...]  # those of enums among them
    enums: tuple[EnumSource, ...]

    @cached_property
    def _ops(self) -> Mapping[str, OpSource]:
        return {each.cpp: each for each in self.ops}

    @cached_property
    def _kinds(self) -> Mapping[str, KindSource]:
        return {each.cpp: each for each in (*self.types, *self.attributes)}

    @cached_property
    def _enums(self) -> Mapping[str, EnumSource]:
        return {each.cpp: each for each in self.enums}

    def op(self, cpp: str) -> OpSource | None:
        return self._ops.get(cpp)

    def kind(self, cpp: str) -> KindSource | None:
        return self._kinds.get(cpp)

    def enum(self, cpp: str) -> EnumSource | None:
        return self._enums.get(cpp)


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
