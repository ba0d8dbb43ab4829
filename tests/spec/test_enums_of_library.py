"""The enums, proven against the installed library."""

from __future__ import annotations

import re

import pytest
from support.attribute_bytes import OF_MODULE, attribute_entries, property_entries
from support.vhlo_library import CURRENT, VERSIONS, Vhlo, names_in_binary
from support.vhlo_text import OpText, find, op_text

from vhlo_tools.bytecode.primitives import ByteReader
from vhlo_tools.spec import Enum, EnumCase, known_enums

pytestmark = pytest.mark.every_python

ENUMS = [enum for enum in known_enums() if enum.min <= CURRENT]
CASES = [(enum, case) for enum in ENUMS for case in enum.cases if case.min <= CURRENT]

EACH_CASE = pytest.mark.parametrize(("enum", "case"), CASES, ids=[f"{e.name}-{c.name}" for e, c in CASES])


def test_the_library_has_these_enums_and_no_others(vhlo: Vhlo) -> None:
    cases = {name: cases_in_library(vhlo, name) for name in names_in_binary()}
    assert {name: of_enum for name, of_enum in cases.items() if of_enum} == {
        enum.name: [case.name for case in enum.cases if case.min <= CURRENT] for enum in ENUMS
    }


def cases_in_library(vhlo: Vhlo, name: str) -> list[str]:
    """Return the cases of the enum attribute ``name``, none if it is not one: the parser of an enum lists them."""
    try:
        vhlo.provider.ir.Attribute.parse(f"#vhlo<{name} there_is_no_such_case>", vhlo.context)
    except vhlo.provider.ir.MLIRError as error:
        said = "\n".join(str(diagnostic.message) for diagnostic in error.error_diagnostics)
        listed = re.search(r"to be one of: (.*)", said)
        return listed[1].split(", ") if listed else []
    return []


def holder(enum: Enum, case: EnumCase) -> OpText:
    """Return an op that holds a case as its one attribute, of which the library takes nothing for granted."""
    op = find("iota")
    return op_text(op, op.versions[0]).with_attribute("iota_dimension", f"#vhlo<{enum.name} {case.name}>")


@EACH_CASE
def test_case_is_printed_so(vhlo: Vhlo, enum: Enum, case: EnumCase) -> None:
    text = f"#vhlo<{enum.name} {case.name}>"
    assert str(vhlo.provider.ir.Attribute.parse(text, vhlo.context)) == text


@EACH_CASE
def test_case_has_this_value_in_the_bytecode(vhlo: Vhlo, enum: Enum, case: EnumCase) -> None:
    data = vhlo.bytecode(holder(enum, case))
    (index,) = next(entry for entry in property_entries(data) if entry != OF_MODULE)
    reader = ByteReader(memoryview(attribute_entries(data)[index]))
    reader.varint()  # the code of the attribute
    assert (reader.varint(), reader.remaining) == (case.value, 0)


@EACH_CASE
def test_case_is_there_from_its_version_on(vhlo: Vhlo, enum: Enum, case: EnumCase) -> None:
    accepted = [version for version in VERSIONS if vhlo.at(holder(enum, case), version) is not None]
    assert accepted == [version for version in VERSIONS if version >= case.min]
