"""The dialect ``check`` of StableHLO's tests: its ops, and what they check."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Operation
from vhlo_tools.execution import as_saved, is_near, ulp_difference
from vhlo_tools.records import dataclass
from vhlo_tools.upstream.pipelines import Scanner

# Verification of the ops of the ``check`` dialect, which no bindings verify
#
# Source: ``stablehlo/tests/CheckOps.td`` in openxla/stablehlo; the messages are those of MLIR's own verifiers.

_TENSOR: Final = re.compile(r"tensor<.*>")
_FLOATS: Final = re.compile(r"tensor<(?:[\d?]+x)*(?:b?f\d|complex<).*>")
#: A string, or the start of an attribute with the name `value`.
_VALUE: Final = re.compile(r'"(?:\\.|[^"\\])*"?|(?<=[{ ])(value = )')

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
    name = str(op.name)
    if (form := _FORMS.get(name)) is None:
        said = f"unregistered operation '{name}' found in dialect ('check') that does not allow unknown operations"
    elif fault := next(_faults(op, form), None):
        said = f"'{name}' op {fault}"
    else:
        return True
    op.location.emit_error(said)
    return False


def _faults(op: Operation, form: _Form) -> Iterator[str]:
    wanted, found = len(form.operands), len(op.operands)
    if found != wanted:
        yield "requires a single operand" if wanted == 1 else f"expected {wanted} operands, but found {found}"
    for what in ("results", "regions", "successors"):
        if len(getattr(op, what)):
            yield f"requires zero {what}"
    for name in form.required:
        if name not in op.attributes:
            yield f"requires attribute '{name}'"
    for name, (constraint, pattern) in form.attributes.items():
        # Attributes that the bindings cannot convert have complex elements.
        with suppress(TypeError):
            if name in op.attributes and not pattern.fullmatch(str(op.attributes[name])):
                yield f"attribute '{name}' failed to satisfy constraint: {constraint}"
    types = [str(each.type) for each in op.operands]
    for index, type_ in enumerate(types):
        if not (_FLOATS if form.of_floats else _TENSOR).fullmatch(type_):
            values = "tensor of floating-point or complex-type" if form.of_floats else "ranked tensor of StableHLO's"
            yield f"operand #{index} must be {values} values, but got '{type_}'"
    if "value" in form.attributes:
        types.append(constant_of(op)[1])
    if form.alike and len(set(types)) > 1:
        yield form.alike


# Semantics of the ops of the ``check`` dialect
#
# Source: ``stablehlo/tests/CheckOps.cpp`` and ``stablehlo/tools/StablehloTranslateMain.cpp`` in openxla/stablehlo.

Array = np.ndarray[Any, Any]

#: Returns the elements of an array as text, in order.
Texts = Callable[[Array], list[str]]

#: The number of differences in a message.
_SHOWN: Final = 10
#: Differences of at least so many units in the last place are counted together.
_COUNTED: Final = 4


class CheckFailedError(Exception): ...


def expect_eq(actual: Array, expected: Array, texts: Texts) -> None:
    """NaN equals nothing."""
    with np.errstate(invalid="ignore"):
        good = np.asarray(actual == expected)
    _expect(good, actual, expected, texts, "Element values don't match")


def expect_almost_eq(actual: Array, expected: Array, texts: Texts, tolerance: float) -> None:
    good = np.asarray(is_near(actual, expected, tolerance))
    _expect(good, actual, expected, texts, f"Element values don't match with tolerance {tolerance:f}")


def expect_close(actual: Array, expected: Array, texts: Texts, least: int, most: int) -> None:
    """``least`` and ``most`` are units in the last place."""
    steps = np.asarray(ulp_difference(actual, expected))
    bad = np.argwhere((steps > most) | (steps < least))
    if not len(bad):
        return
    shown = _places(bad, actual, expected, texts)
    lines = [
        f"index={list(place)}, actual={one}, expected={other}, ULP difference={int(steps[place])}"
        for place, one, other in shown
    ]
    if len(bad) > len(shown):
        lines.append(f"and {len(bad) - len(shown)} more")
    counted = np.minimum(steps, _COUNTED)
    for number in range(_COUNTED + 1):
        sign = ">=" if number == _COUNTED else "=="
        lines.append(f"ULP difference {sign} {number} count is {int(np.sum(counted == number))}")
    raise CheckFailedError(
        f"Elements values don't match with respect to maximal ULP difference={most} limit:\n  " + "\n  ".join(lines)
    )


def _expect(good: Array, actual: Array, expected: Array, texts: Texts, what: str) -> None:
    bad = np.argwhere(~good)
    if len(bad):
        ((place, one, other),) = _places(bad[:1], actual, expected, texts)
        raise CheckFailedError(f"{what}: {one} (actual) vs {other} (expected) at index {list(place)}")


def _places(bad: Array, actual: Array, expected: Array, texts: Texts) -> list[tuple[tuple[int, ...], str, str]]:
    places = [tuple(map(int, each)) for each in bad[:_SHOWN]]
    one, other = (texts(np.asarray([array[place] for place in places], array.dtype)) for array in (actual, expected))
    return list(zip(places, one, other, strict=True))


@dataclass(slots=True)
class ProbeFolder:
    """A folder of values that probes wrote: a numpy file for each, and ``index.csv``, with the identifier and type.

    Elements of types that numpy lacks are raw bytes in these files.
    """

    path: Path | None  # None for no folder
    count: int = 0  # values written

    @property
    def _index(self) -> Path:
        if self.path is None:
            raise CheckFailedError("Probe serialization directory cannot be empty: give --probe-output-dir=FOLDER")
        return self.path / "index.csv"

    def clear(self) -> None:
        if self.path is not None:
            self._index.unlink(missing_ok=True)

    def write(self, identifier: str, type_: str, array: Array) -> None:
        index = self._index
        index.parent.mkdir(parents=True, exist_ok=True)
        self.count += 1
        file = index.with_name(f"probe{self.count}.npy")
        np.save(file, as_saved(array), allow_pickle=False)
        with index.open("a", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerow([identifier, type_, str(file)])

    def expect(self, identifier: str, iteration: int, type_: str, expected: Array, texts: Texts) -> None:
        """Check value number ``iteration`` of a probe.

        Upstream's program also counts values of other probes, contrary to ``CheckOps.td``; with a single probe there is
        no difference.
        """
        try:
            with self._index.open(newline="", encoding="utf-8") as stream:
                rows = [row for row in csv.reader(stream) if row[0] == identifier]
        except OSError as error:
            raise CheckFailedError(f"Failed to find serialized data for probe {identifier}.") from error
        if iteration >= len(rows):
            raise CheckFailedError(
                f"Failed to find serialized data for probe {identifier}: it wrote {len(rows)} values, and number "
                f"{iteration} is expected"
            )
        _, written, file = rows[iteration]
        if written != type_:
            raise CheckFailedError(
                f"Serialized types don't match: {type_} (actual) vs {written} (expected) for probe {identifier}."
            )
        try:
            stored = np.load(file, allow_pickle=False)
        except ValueError as error:
            raise CheckFailedError(f"Failed to verify serialized tensor {identifier}: {error}") from error
        if (stored.shape, stored.itemsize) != (expected.shape, expected.itemsize):
            raise CheckFailedError(
                f"Failed to verify serialized tensor {identifier}: {file} contains {stored.dtype}{list(stored.shape)}"
            )
        expect_eq(expected, stored if stored.dtype == expected.dtype else stored.view(expected.dtype), texts)
