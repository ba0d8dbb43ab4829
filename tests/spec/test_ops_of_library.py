"""The specification of ops and defaults, proven against the installed library.

Every op version is made as text out of the specification, and `vhlo-to-version` brings it to every version that the
library writes: what comes out, or that nothing does, must be what the specification says. What the library has and the
specification lacks is found in its binary. The names of operands, results and regions occur nowhere in the library but
in its accessors: they are from its source, and not proven here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.attribute_bytes import OF_MODULE, property_entries, string_values
from support.vhlo_library import CURRENT, OP_VERSIONS, VERSIONS, Vhlo, names_in_binary
from support.vhlo_text import TENSOR, converted, find, op_text, structure_text

from vhlo_tools.spec import Default, Op, OpStep, OpVersion, Slot, known_default, known_defaults, known_ops
from vhlo_tools.version import Version

pytestmark = pytest.mark.every_python

STEPS = [(op, step) for op in known_ops() for step in op.steps if op.versions[step.newer - 1].min <= CURRENT]

EACH_OP_VERSION = pytest.mark.parametrize(("op", "version"), OP_VERSIONS, ids=[v.name for _, v in OP_VERSIONS])
EACH_STEP = pytest.mark.parametrize(("op", "step"), STEPS, ids=[f"{op.name}_v{s.older}-v{s.newer}" for op, s in STEPS])


# What there is


def test_the_library_has_these_ops_and_no_others(vhlo: Vhlo) -> None:
    registered = {name for name in names_in_binary() if vhlo.context.is_registered_operation(f"vhlo.{name}")}
    assert registered == {version.name for _, version in OP_VERSIONS}


def test_no_op_has_another_version(vhlo: Vhlo) -> None:
    # Does not rest on what can be found in a binary.
    candidates = [f"{op.name}_v{number}" for op in known_ops() for number in range(10)]
    registered = [name for name in candidates if vhlo.context.is_registered_operation(f"vhlo.{name}")]
    assert sorted(registered) == sorted(version.name for _, version in OP_VERSIONS)


# The shape of each op


@EACH_OP_VERSION
def test_op_has_these_operands_results_and_regions(vhlo: Vhlo, op: Op, version: OpVersion) -> None:
    text = op_text(op, version)
    assert vhlo.refuses(text) is None

    def accepts(operands: Sequence[str] = text.operands, results: Sequence[str] = text.results) -> bool:
        return vhlo.refuses(replace(text, operands=tuple(operands), results=tuple(results))) is None

    # Where several operands are variadic, the library takes uneven numbers of values too, and drops what is over.
    fewest, any_number = numbers(version.operands)
    assert accepts(operands=[TENSOR] * fewest)
    assert accepts(operands=[*text.operands, TENSOR]) == any_number
    assert fewest == 0 or not accepts(operands=[TENSOR] * (fewest - 1))
    fewest, any_number = numbers(version.results)
    assert accepts(results=[TENSOR] * fewest)
    assert accepts(results=[*text.results, TENSOR]) == any_number
    assert fewest == 0 or not accepts(results=[TENSOR] * (fewest - 1))
    fewest, any_number = numbers(version.regions)
    assert (vhlo.refuses(replace(text, regions=text.regions + 1)) is None) == any_number
    assert fewest == 0 or vhlo.refuses(replace(text, regions=fewest - 1)) is not None


def numbers(slots: tuple[Slot, ...]) -> tuple[int, bool]:
    """Return how many values fill `slots` at the least, and whether any number more may follow."""
    return sum(not slot.variadic for slot in slots), any(slot.variadic for slot in slots)


@EACH_OP_VERSION
def test_op_needs_every_attribute(vhlo: Vhlo, op: Op, version: OpVersion) -> None:
    text = op_text(op, version)
    for name in version.attributes:
        others = {other: value for other, value in text.attributes.items() if other != name}
        reason = vhlo.refuses(replace(text, attributes=others))
        assert reason is not None
        assert f"requires attribute '{name}'" in reason


@EACH_OP_VERSION
def test_properties_hold_the_attributes_in_this_order_and_nothing_else(vhlo: Vhlo, op: Op, version: OpVersion) -> None:
    text = op_text(op, version)
    named = replace(text, attributes={name: f'#vhlo.string_v1<"{name}">' for name in version.attributes})
    data = vhlo.bytecode(named)
    values = string_values(data)
    entries = [[values[index] for index in entry] for entry in property_entries(data) if entry != OF_MODULE]
    expected = [[name.encode() for name in version.attributes]] if version.attributes else []
    if version.operands:
        expected.append([b"value"])  # of the constants that they are
    assert sorted(entries, key=str) == sorted(expected, key=str)


# The life of each op


@EACH_OP_VERSION
def test_op_is_kept_converted_or_refused_at_every_version(vhlo: Vhlo, op: Op, version: OpVersion) -> None:
    text = op_text(op, version)
    for target in VERSIONS:
        there = op.at(target)
        expected = vhlo.generic(converted(op, text, there.number)) if there else None
        assert vhlo.at(text, target) == expected, target


def accuracy(mode: str = "DEFAULT", atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> str:
    in_mode = f"mode = #vhlo<result_accuracy_mode_v1 {mode}>"
    return f"#vhlo.result_accuracy_v1<atol = {atol:e}, rtol = {rtol:e}, ulps = {ulps}, {in_mode}>"


#: For each default that is looked for, values that are not it, however near, and values that count as it all the same.
OTHERS: dict[str, tuple[list[str], list[str]]] = {
    "default_result_accuracy": (
        [accuracy("HIGHEST"), accuracy("TOLERANCE"), accuracy(atol=1.0), accuracy(rtol=-1.0), accuracy(ulps=1)],
        [accuracy(atol=-0.0), accuracy(rtol=-0.0)],
    ),
    "empty_array": (["#vhlo.array_v1<[#vhlo.array_v1<[]>]>", "#vhlo.bool_v1<false>"], []),
    "empty_tensor": (
        ["#vhlo.tensor_v1<dense<0> : tensor<1xi64>>", "#vhlo.array_v1<[]>"],
        ["#vhlo.tensor_v1<dense<> : tensor<0x2xi64>>", "#vhlo.tensor_v1<dense<> : tensor<0xi32>>"],
    ),
    "false": (["#vhlo.bool_v1<true>", "#vhlo.integer_v1<0 : i64>"], []),
    "none_type": (["#vhlo.type_v1<!vhlo.f32_v1>", "#vhlo.array_v1<[]>"], []),
}


@EACH_STEP
def test_downgrade_asks_for_the_defaults(vhlo: Vhlo, op: Op, step: OpStep) -> None:
    older, newer = op.versions[step.older - 1], op.versions[step.newer - 1]
    text = op_text(op, newer)
    assert older.max is not None
    lowered = vhlo.at(text, older.max)
    assert lowered is not None
    for name, default in step.added.items():
        different, same = OTHERS[default]
        assert bool(same) == (known_default(default).equals != "same")
        for value in same:
            assert vhlo.at(text.with_attribute(name, value), older.max) == lowered, value
        for value in different:
            other = text.with_attribute(name, value)
            assert vhlo.at(other, older.max) is None, value
            assert vhlo.at(other, newer.min) == vhlo.generic(other)


@EACH_STEP
def test_downgrade_asks_for_single_values_and_no_regions(vhlo: Vhlo, op: Op, step: OpStep) -> None:
    older, newer = op.versions[step.older - 1], op.versions[step.newer - 1]
    text = op_text(op, newer)
    widened = [replace(text, operands=text.operands * 2, results=text.results * 2)] if step.single else []
    widened += [replace(text, regions=number) for number in (1, 2) if step.empty]
    assert older.max is not None
    for other in widened:
        assert vhlo.at(other, older.max) is None
        assert vhlo.at(other, newer.min) == vhlo.generic(other)


@pytest.mark.parametrize("rank", [2, 3, 5])
def test_padding_of_convolution_is_computed(vhlo: Vhlo, rank: int) -> None:
    op = find("dynamic_conv")
    lhs = f"!vhlo.tensor_v1<{'8x' * rank}!vhlo.f32_v1>"
    text = op_text(op, op.versions[1]).with_operand("lhs", [lhs])
    assert vhlo.at(text, Version("0.19.0")) == vhlo.generic(converted(op, text, 1))


@pytest.mark.parametrize(
    "default", [default for default in known_defaults() if default.text], ids=lambda default: default.id
)
def test_default_is_printed_so(vhlo: Vhlo, default: Default) -> None:
    assert str(vhlo.provider.ir.Attribute.parse(default.text, vhlo.context)) == default.text
    assert default.value is not None
    assert structure_text(default.value) == default.text
