"""Verification of the ops of the ``check`` dialect, which no bindings verify.

Source: ``stablehlo/tests/CheckOps.td`` in openxla/stablehlo; the messages are those of MLIR's own verifiers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Final

from vhlo_tools.bindings import Operation
from vhlo_tools.records import dataclass
from vhlo_tools.upstream.scanner import Scanner

_TENSOR: Final = re.compile(r"tensor<.*>")
_FLOATS: Final = re.compile(r"tensor<(?:[\d?]+x)*(?:b?f\d|complex<).*>")
#: A string, or the start of an attribute with the name `value`.
_VALUE: Final = re.compile(r'"(?:\\.|[^"\\])*"|(?<=[{ ])(value = )')

#: Kinds of attributes: the name in MLIR's messages, and the pattern of the printed attribute.
_F64: Final = ("64-bit float attribute", re.compile(r"[^ ]+ : f64"))
_UI32: Final = ("32-bit unsigned integer attribute", re.compile(r"\d+ : ui32"))
_UI64: Final = ("64-bit unsigned integer attribute", re.compile(r"\d+ : ui64"))
_STRING: Final = ("string attribute", re.compile(r'".*"', re.DOTALL))
_ELEMENTS: Final = ("constant vector/tensor attribute", re.compile(r"(?:dense|dense_resource|sparse)<.*", re.DOTALL))


@dataclass(frozen=True, slots=True)
class _Form:
    """The operands and attributes that an op requires."""

    operands: tuple[str, ...]
    attributes: Mapping[str, tuple[str, re.Pattern[str]]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    of_floats: bool = False  # the elements of operands must be floats or complex numbers
    alike: str = ""  # the message if types that must be equal differ


_SAME_OPERANDS: Final = "requires all operands to have the same type"
_SAME_VALUE: Final = "failed to verify that all of {lhs, value} have same type"
_FORMS: Final[Mapping[str, _Form]] = {
    "check.expect_almost_eq": _Form(("lhs", "rhs"), {"tolerance": _F64}, of_floats=True, alike=_SAME_OPERANDS),
    "check.expect_almost_eq_const": _Form(
        ("lhs",), {"value": _ELEMENTS, "tolerance": _F64}, ("value",), of_floats=True, alike=_SAME_VALUE
    ),
    "check.expect_close": _Form(
        ("actual", "expected"),
        {"max_ulp_difference": _UI64, "min_ulp_difference": _UI64},
        of_floats=True,
        alike="failed to verify that all of {actual, expected} have same type",
    ),
    "check.expect_eq": _Form(("lhs", "rhs"), alike=_SAME_OPERANDS),
    "check.expect_eq_const": _Form(("lhs",), {"value": _ELEMENTS}, ("value",), alike=_SAME_VALUE),
    "check.expect_serialized_eq": _Form(
        ("expected",), {"probe_id": _STRING, "iteration": _UI32}, ("probe_id",)
    ),
}  # fmt: skip


def constant_of(op: Operation) -> tuple[str, str]:
    """Read ``value`` and its type from printed text: the bindings have no attributes with complex elements."""
    printed: str = op.operation.get_asm(print_generic_op_form=True)
    begin = next(match.end() for match in _VALUE.finditer(printed) if match[1])
    scanner = Scanner(printed, begin)
    scanner.word("attribute value")
    scanner.bracketed()
    scanner.expect(":")
    type_ = scanner.type()
    return printed[begin : scanner.position], type_


def is_good_check(op: Operation) -> bool:
    """Return whether an op of the dialect is valid; emit an error at its location if not."""
    fault = next(_faults(op), None)
    if fault:
        op.location.emit_error(fault)
    return fault is None


def _faults(op: Operation) -> Iterator[str]:
    name = str(op.name)
    form = _FORMS.get(name)
    if form is None:
        yield f"unregistered operation '{name}' found in dialect ('check') that does not allow unknown operations"
        return
    yield from (f"'{name}' op {fault}" for fault in _shape_faults(op, form))
    yield from (f"'{name}' op {fault}" for fault in _attribute_faults(op, form))
    types = [str(each.type) for each in op.operands]
    for index, type_ in enumerate(types):
        if not (_FLOATS if form.of_floats else _TENSOR).fullmatch(type_):
            values = "tensor of floating-point or complex-type" if form.of_floats else "ranked tensor of StableHLO's"
            yield f"'{name}' op operand #{index} must be {values} values, but got '{type_}'"
    if "value" in form.attributes:
        types.append(constant_of(op)[1])
    if form.alike and len(set(types)) > 1:
        yield f"'{name}' op {form.alike}"


def _shape_faults(op: Operation, form: _Form) -> Iterator[str]:
    wanted, found = len(form.operands), len(op.operands)
    if found != wanted:
        yield "requires a single operand" if wanted == 1 else f"expected {wanted} operands, but found {found}"
    for what in ("results", "regions", "successors"):
        if len(getattr(op, what)):
            yield f"requires zero {what}"


def _attribute_faults(op: Operation, form: _Form) -> Iterator[str]:
    for name in form.required:
        if name not in op.attributes:
            yield f"requires attribute '{name}'"
    for name, (constraint, pattern) in form.attributes.items():
        # Attributes that the bindings cannot convert have complex elements.
        with suppress(TypeError):
            if name in op.attributes and not pattern.fullmatch(str(op.attributes[name])):
                yield f"attribute '{name}' failed to satisfy constraint: {constraint}"
