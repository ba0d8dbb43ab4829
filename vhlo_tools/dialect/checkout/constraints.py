"""Constraints of op versions, from the functions ``validateConstraint`` of ``VhloOps.cpp``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from vhlo_tools.dialect.checkout.definitions import Definitions, OpSource
from vhlo_tools.dialect.checkout.files import Checkout, body_from, plain_code, snake_case, version_in
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

_FILE: Final = "stablehlo/dialect/VhloOps.cpp"


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
    code = plain_code(checkout.text(_FILE))
    functions = {match[1]: match.start() for match in _FUNCTION.finditer(code)}
    found: list[ConstraintSource] = []
    for method in _METHOD.finditer(code):
        op = definitions.op(method[1])
        body = body_from(code, method.start())
        called = [name for name in dict.fromkeys(_CALLED.findall(body)) if name in functions]
        starts = [functions[name] for name in called] or [method.start()]
        for start in starts:
            place = f"{_FILE}:{code.count(chr(10), 0, start) + 1}"
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
_CASE: Final = re.compile(r"\w+(?:\.|->)get(\w+)\(\) ?\) ?\.getValue\(\) ?== ?(?:\w+::)*?(\w+V\d+)::(\w+)")
_OPERAND: Final = re.compile(
    r"for \( ?Type (\w+) : \w+(?:\.|->)get(\w+)\(\)\.getTypes\(\) ?\) ?\{ ?"
    r"if \( ?(?:\w+::)*isa<(?:\w+::)*(\w+V\d+Type)>\( ?\1 ?\) ?\)"
)


def _requirements(text: str, definitions: Definitions) -> Iterator[dict[str, Any]]:
    if _SAME.search(text):
        yield {"requires": "same_element_types"}
    for cpp, name in _ATTRIBUTE.findall(text):
        if (kind := definitions.kind(cpp)) is not None:
            yield {"requires": "attributes_are_not", "attributes": [snake_case(name)], "kind": kind.name}
    for name, cpp, case in _CASE.findall(text):
        if (enum := definitions.enum(cpp)) is not None and case in enum.cases:
            value = {"attribute": enum.attribute.name, "case": case}
            yield {"requires": "attributes_are_not", "attributes": [snake_case(name)], "value": value}
    for _, name, cpp in _OPERAND.findall(text):
        if (kind := definitions.kind(cpp)) is not None:
            yield {"requires": "operands_are_not", "operands": [snake_case(name)], "kind": kind.name}
