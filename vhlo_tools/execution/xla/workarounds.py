"""Workarounds for ops that XLA compiles incorrectly on a CPU, or crashes on: other forms with the same meaning.

Each was measured with jaxlib 0.10.2; 0.12.0.1 still needs all but wide indices, the index of a ``scatter`` without
one and powers of integers. Reproducers are in ``docs/upstream-findings.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Operation, Provider, named_attributes
from vhlo_tools.conversion import (
    Rewriter,
    Tensor,
    dimension_numbers,
    dimension_numbers_text,
    patterns_of,
    select,
    tensors,
)
from vhlo_tools.execution.lowering.arithmetic import compared_by_parts, repeated_integer
from vhlo_tools.execution.lowering.indexing import signed, signed_from
from vhlo_tools.execution.op_traits import CONTROL_FLOW

#: The bits of f32 that conversions to types drop, to which XLA converts integers by way of f32.
_ROUNDED_TWICE: Final = {"bf16": 16, "f8E8M0FNU": 23}
#: The types to which it converts f64 by way of f32; to f16 where the processor does not (no AVX512-FP16).
_ROUNDED_TWICE_FROM_F64: Final = frozenset({"bf16", "f16"})
#: The bits of exponents that XLA uses.
_EXPONENT_BITS: Final = 6
#: With this attribute XLA does not inline a call.
_NOT_INLINED: Final = '{inlineable = "false"}'
#: The ops of an operand that XLA rewrites an op together with.
_ALGEBRA: Final = {"divide": ("divide",), "log": ("rsqrt",)}
#: Those that it did up to some release after jaxlib 0.10.2: always, and if both have a constant too.
_OLD_ALGEBRA: Final = {"divide": ("power",), "log": ("exponential", "power"), "power": ("exponential",)}
_ALGEBRA_OF_CONSTANTS: Final = {
    **dict.fromkeys(("add", "subtract"), ("add", "subtract")),
    **dict.fromkeys(("divide", "multiply"), ("divide", "multiply")),
}
_RUN_IN_SEQUENCE: Final = CONTROL_FLOW | {"func.func"}
_BARRIER: Final = "optimization_barrier"
#: By op, the elements for which XLA has other rules among constants, beside f8E8M0FNU.
_FOLDED: Final = {
    "count_leading_zeros": "i(8|16|32)$",
    "popcnt": "u?i2$",
    **dict.fromkeys(("round_nearest_afz", "round_nearest_even"), "f8E3M4$"),
}
_NEVER_FOLDED: Final = frozenset({_BARRIER, *(each.partition(".")[2] for each in CONTROL_FLOW)})
_LOOKED_THROUGH: Final = frozenset({"broadcast_in_dim", "convert", "reshape", "transpose"})


def _one_by_one(rewriter: Rewriter) -> list[Any] | None:
    """XLA treats several operands as a tuple of the parts, and gathers several narrow arrays along dimension 0 only."""
    operands = tensors(rewriter)
    if len(operands) == 1 and not _is_of_two_bits(operands[0]):
        return None
    name, held = str(rewriter.op.name), dict(named_attributes(rewriter.op.attributes))
    types = [result.type for result in rewriter.op.results]
    return [
        rewriter.convert(rewriter.make(name, [_widened(operand)], _wide(rewriter, type_), **held), type_.element_type)
        for operand, type_ in zip(operands, types, strict=True)
    ]


def _of_bytes(rewriter: Rewriter) -> list[Any] | None:
    """XLA crashes on elements of two bits, or refuses them; the op is of bytes, whose last bits are the same."""
    operands = tensors(rewriter)
    if not _is_of_two_bits(operands[0]):
        return None
    type_ = rewriter.op.results[0].type
    (value,) = rewriter.make_like([_widened(each) for each in operands], [_wide(rewriter, type_)])
    return [rewriter.convert(value, type_.element_type)]


def _rng_bit_generator(rewriter: Rewriter) -> list[Any] | None:
    """XLA returns unsigned integers regardless of the type in the program."""
    state, drawn = (result.type for result in rewriter.op.results)
    bits = rewriter.integer(drawn.element_type.width, unsigned=True)
    if bits == drawn.element_type:
        return None
    unsigned = rewriter.tensor(rewriter.shape(drawn), bits)
    next_state, value = rewriter.make_like(list(rewriter.op.operands), [state, unsigned])
    return [next_state, rewriter.make("stablehlo.bitcast_convert", [value], drawn)]


def _dynamic_update_slice(rewriter: Rewriter) -> list[Any] | None:
    """The update may be computed from the operand, so it is computed before the operand is overwritten."""
    _set_apart(rewriter, 1)
    return signed_from(2)(rewriter)


def _algebra(rewriter: Rewriter) -> None:
    """XLA computes with floats as with real numbers, and so by way of others, which overflow, or of none."""
    for number in {*replaced(rewriter.op), *replaced_before(rewriter.op)}:
        _set_apart(rewriter, number)


def _add(rewriter: Rewriter) -> list[Any] | None:
    """Of constants that are true, XLA computes the sum as a number, of which one bit is left."""
    if rewriter.is_integer(rewriter.operand(0).type, 1):
        return [rewriter.make("stablehlo.or", rewriter.operands(), rewriter.result_type())]
    _algebra(rewriter)
    return None


def is_folded(op: Operation) -> bool:
    """Whether XLA computes the op by other rules while it compiles, if the operands are constants.

    Negative numbers and zeros are no NaN of f8E8M0FNU then, and the leading zeros are those of a wider number.
    """
    held: Any = op
    name, elements = _short_name(op), [str(getattr(each.type, "element_type", "")) for each in op.results]
    if not len(op.operands) or name in _NEVER_FOLDED or str(held.parent.name) not in _RUN_IN_SEQUENCE:
        return False
    return "f8E8M0FNU" in elements or (name in _FOLDED and re.match(_FOLDED[name], elements[0]) is not None)


def hide_constants(provider: Provider, module: Any) -> None:
    """Set such ops apart from constants, which XLA does not look for behind a barrier."""
    ir = provider.ir
    with module.context:
        for op in filter(is_folded, provider.walk(module)):
            with op.location, ir.InsertionPoint(op):
                for number, each in enumerate(op.operands):
                    if not hasattr(each.type, "element_type"):
                        continue
                    made = ir.Operation.create(f"stablehlo.{_BARRIER}", results=[each.type], operands=[each])
                    op.operands[number] = made.result


def replaced(op: Operation) -> list[int]:
    """The operands that XLA replaces by others, with those that they are computed from."""
    name, made = _short_name(op), _terms(op)
    found = [number for number, each in enumerate(made) if _short_name(each) in _ALGEBRA.get(name, ())]
    return found + [number for number, each in enumerate(made) if name == "add" and _is_zero(each)]


def replaced_before(op: Operation) -> list[int]:
    """Those that old releases replace besides."""
    name, made = _short_name(op), _terms(op)
    names = [_short_name(each) for each in made]
    found = []
    for number, inner in enumerate(names):
        if inner in _OLD_ALGEBRA.get(name, ()):
            found.append(number)
        elif inner in _ALGEBRA_OF_CONSTANTS.get(name, ()) and "constant" in names:
            if "constant" in [_short_name(_made_by(value)) for value in made[number].operands]:
                found.append(number)
        elif name == "divide" and set(names) == {"exponential"}:
            found.append(number)
    return found


def _terms(op: Operation) -> list[Any]:
    """The ops of the operands; none where XLA replaces nothing: among integers, and within reductions."""
    held: Any = op
    is_of_integers = re.match(r"u?i\d", str(getattr(op.operands[0].type, "element_type", "")))
    if str(held.parent.name) not in _RUN_IN_SEQUENCE or is_of_integers:
        return []
    return [_made_by(value) for value in op.operands]


def _is_zero(op: Any) -> bool:
    """Whether it is the constant +0.0, which XLA leaves out, so that a sum with -0.0 is -0.0."""
    # The bindings cannot read constants of complex numbers.
    if _short_name(op) != "constant" or not re.match(r"b?f\d", str(op.results[0].type.element_type)):
        return False
    value = op.attributes["value"]
    return bool(getattr(value, "is_splat", False)) and str(value).startswith("dense<0.000000e+00>")


def _made_by(value: Any) -> Any:
    """The op of a value, behind those that XLA may look through."""
    made: Any = value.owner
    while _short_name(made) in _LOOKED_THROUGH:
        made = made.operands[0].owner
    return made


def _short_name(op: Any) -> str:
    return str(getattr(op, "name", "")).partition(".")[2]


def _reduce_window(rewriter: Rewriter) -> list[Any] | None:
    """XLA aborts on windows of one element with negative padding; the operands are padded before.

    Source: the specification of StableHLO, ``reduce_window``, defines the op by such a ``pad``.
    """
    op = rewriter.op
    padding = np.asarray(op.attributes["padding"]) if "padding" in op.attributes else np.zeros(0)
    if not (padding < 0).any():
        return None
    dilations = rewriter.numbers("base_dilations") if "base_dilations" in op.attributes else [1] * len(padding)
    edges = {
        "edge_padding_low": [int(each) for each in padding[:, 0]],
        "edge_padding_high": [int(each) for each in padding[:, 1]],
        "interior_padding": [int(each or 1) - 1 for each in dilations],
    }
    attributes = {name: rewriter.integers(values) for name, values in edges.items()}
    count = len(op.operands) // 2
    padded = [
        rewriter.make("stablehlo.pad", [value, initial], _padded(rewriter, value.type, edges), **attributes)
        for value, initial in zip(list(op.operands)[:count], list(op.operands)[count:], strict=True)
    ]
    ones = rewriter.integers([1] * len(padding))
    return rewriter.make_like(
        [*padded, *list(op.operands)[count:]],
        [each.type for each in op.results],
        base_dilations=ones,
        padding=rewriter.rows([[0, 0]] * len(padding)),
    )


def _padded(rewriter: Rewriter, type_: Any, edges: Mapping[str, Sequence[int]]) -> Any:
    sizes = [
        max(0, low + high + (size + max(size - 1, 0) * inner))
        for size, low, high, inner in zip(rewriter.static(type_), *edges.values(), strict=True)
    ]
    return rewriter.tensor(sizes, type_.element_type)


def _sort(rewriter: Rewriter) -> None:
    """XLA takes any iota for the positions along the sorted dimension, and the sort for a top-k; iotas are hidden."""
    op = rewriter.op
    sorted_along = int(op.attributes["dimension"].value) if "dimension" in op.attributes else -1
    for number, value in enumerate(op.operands):
        made: Any = value.owner
        is_iota = str(getattr(made, "name", "")) == "stablehlo.iota"
        if number and not (is_iota and int(made.attributes["iota_dimension"].value) == sorted_along % value.type.rank):
            _set_apart(rewriter, number)


def _scatter(rewriter: Rewriter) -> list[Any] | None:
    """XLA handles three forms of indices and operands incorrectly.

    It does not apply all updates if index vectors are empty, compares narrow indices with sizes that they cannot have,
    and updates operands of one value in one place.
    """
    op = rewriter.op
    count = len(op.operands) // 2
    op.operands[count] = signed(Tensor(rewriter, op.operands[count])).value
    for number in range(1, count):
        # XLA merges equal calls, and computes calls of constants, which it merges as well.
        _set_apart(rewriter, number, number, [op.operands[count], op.operands[count + 1 + number]])
    numbers = dimension_numbers(op.attributes["scatter_dimension_numbers"])
    (vector,), indices = numbers["index_vector_dim"], rewriter.shape(op.operands[count].type)
    if vector == len(indices) or indices[vector] != 0:
        return None
    operands = tensors(rewriter)
    shape = (*operands[0].shape, 1)
    added = [len(shape) - 1]
    numbers["inserted_window_dims"] = [*numbers.get("inserted_window_dims", ()), *added]
    numbers["scatter_dims_to_operand_dims"] = added
    of_index = rewriter.tensor([*indices[:vector], 1, *indices[vector + 1 :]], operands[count].element)
    taken = [each.reshape(*shape).value for each in operands[:count]]
    results = rewriter.make_like(
        [*taken, rewriter.constant(of_index, 0), *op.operands[count + 1 :]],
        [each.type for each in taken],
        scatter_dimension_numbers=rewriter.attribute(dimension_numbers_text("scatter", numbers)),
    )
    return [rewriter.reshape(each, shape[:-1]) for each in results]


# Numbers that XLA computes incorrectly, measured over all values of narrow types and special ones of wider types


def _compare(rewriter: Rewriter) -> list[Any] | None:
    """XLA compares the real parts of complex numbers only."""
    one, other = tensors(rewriter)
    direction = str(rewriter.op.attributes["comparison_direction"]).removeprefix("#stablehlo<comparison_direction ")[:2]
    if not rewriter.is_complex(one.type) or direction in ("EQ", "NE"):
        return None
    return [compared_by_parts(direction, one, other).value]


def _maximum(rewriter: Rewriter) -> list[Any] | None:
    one, other = tensors(rewriter)
    return [_first("GE", one, other).value] if rewriter.is_complex(one.type) else None


def _minimum(rewriter: Rewriter) -> list[Any] | None:
    one, other = tensors(rewriter)
    return [_first("LE", one, other).value] if rewriter.is_complex(one.type) else None


def _clamp(rewriter: Rewriter) -> list[Any] | None:
    least, operand, greatest = tensors(rewriter)
    if not rewriter.is_complex(operand.type):
        return None
    least, greatest = (each if each.shape else each.broadcast(operand.shape) for each in (least, greatest))
    return [_first("LE", _first("GE", operand, least), greatest).value]


def _first(direction: str, one: Tensor, other: Tensor) -> Tensor:
    return select(compared_by_parts(direction, one, other), one, other)


def _convert(rewriter: Rewriter) -> list[Any] | None:
    """XLA takes integers for the greatest where they are above 3, from f4E2M1FN; and rounds twice, by way of f32.

    So f32 is rounded to odd: what is inexact, and even, is moved towards the operand.
    """
    (value,) = tensors(rewriter)
    element = rewriter.op.results[0].type.element_type
    is_integer = rewriter.is_integer(value.type)
    if _is_of_four_bits(value):
        return [value.convert(rewriter.type("f32")).convert(element).value] if rewriter.is_integer(element) else None
    if str(element) not in (_ROUNDED_TWICE if is_integer else _ROUNDED_TWICE_FROM_F64):
        return None
    if value.element.width < 32 if is_integer else str(value.element) != "f64":
        return None
    single = value.convert(rewriter.type("f32"))
    bits = single.bits(rewriter.integer(32))
    # Of integers only halfway between two results: elsewhere f32 may be outside of the integers of the operand.
    dropped = _ROUNDED_TWICE[str(element)] if is_integer else 1
    is_moved = (bits & (2**dropped - 1)).compare("EQ", 2 ** (dropped - 1) if is_integer else 0)
    middle = select(is_moved, single, 0).convert(value.element)
    is_above, is_below = (value.compare(each, middle).convert(bits.element) for each in ("GT", "LT"))
    towards = select(bits.compare("LT", 0), is_below - is_above, is_above - is_below)
    return [select(is_moved, bits + towards, bits).bits(single.element).convert(element).value]


def _popcnt(rewriter: Rewriter) -> list[Any] | None:
    """XLA counts the bits that extend a sign."""
    (value,) = tensors(rewriter)
    if not rewriter.is_integer(value.type, 4):
        return None
    byte = value.convert(rewriter.integer(8)) & 15
    return [byte.apply("popcnt").convert(value.element).value]


def _power(rewriter: Rewriter) -> list[Any] | None:
    """XLA ignores all but six bits of integer exponents."""
    _algebra(rewriter)
    base, exponent = tensors(rewriter)
    width = base.element.width if rewriter.is_integer(base.type) else 0
    if width <= _EXPONENT_BITS or 0 <= (repeated_integer(exponent.value) or -1) < 2**_EXPONENT_BITS:
        return None
    signless = exponent.bits(rewriter.integer(width, unsigned=True))
    power, squares = base.apply("power", 0), base
    for shift in range(0, width, _EXPONENT_BITS):
        digit = ((signless >> shift) & (2**_EXPONENT_BITS - 1)).bits(base.element)
        power *= squares.apply("power", digit)
        for _ in range(_EXPONENT_BITS):
            squares *= squares
    return [select(exponent.compare("LT", 0), base.apply("power", exponent), power).value]


def _sine(rewriter: Rewriter) -> list[Any] | None:
    """XLA computes the hyperbolic sine in that of a complex number as a difference of numbers near one."""
    (operand,) = tensors(rewriter)
    if not rewriter.is_complex(operand.type):
        return None
    real, imaginary = operand.part("real"), operand.part("imag")
    opposite = imaginary.apply("negate")
    hyperbolic = [
        (imaginary.apply("exponential") + opposite.apply("exponential")) * 0.5,
        (imaginary.apply("exponential_minus_one") - opposite.apply("exponential_minus_one")) * 0.5,
    ]
    parts = [real.apply(name) * each for name, each in zip(("sine", "cosine"), hyperbolic, strict=True)]
    return [rewriter.make("stablehlo.complex", [each.value for each in parts], operand.type)]


def _in_f32(element: str) -> Callable[[Rewriter], list[Any] | None]:
    def build(rewriter: Rewriter) -> list[Any] | None:
        operands = tensors(rewriter)
        if str(operands[0].element) != element:
            return None
        wide = [each.convert(rewriter.type("f32")) for each in operands]
        (value,) = rewriter.make_like([each.value for each in wide], [wide[0].type])
        return [rewriter.convert(value, operands[0].element)]

    return build


def _is_of_four_bits(value: Tensor) -> bool:
    return str(value.element) == "f4E2M1FN"


def _set_apart(rewriter: Rewriter, number: int, calls: int = 1, unused: Sequence[Any] = ()) -> None:
    """XLA does not inline the calls, and so fuses the op with nothing that computes the operand.

    An ``optimization_barrier`` is not enough: up to some release after jaxlib 0.10.2, XLA removes it before it fuses
    ops.
    """
    operands = rewriter.op.operands
    type_ = operands[number].type
    types = [type_, *(each.type for each in unused)]
    name = f"vhlo_tools.set_apart {', '.join(map(str, types))}".replace('"', "'")
    if rewriter.function(name) is None:
        given = ", ".join(f"%{index}: {each}" for index, each in enumerate(types))
        rewriter.add_function(f'func.func private @"{name}"({given}) -> {type_} {{ return %0 : {type_} }}')
    held = {"callee": rewriter.attribute(f'@"{name}"'), "mhlo.frontend_attributes": rewriter.attribute(_NOT_INLINED)}
    for _ in range(calls):
        operands[number] = rewriter.make("func.call", [operands[number], *unused], type_, **held)


def _is_of_two_bits(value: Tensor) -> bool:
    return value.rewriter.is_integer(value.type, 2)


def _wide(rewriter: Rewriter, type_: Any) -> Any:
    if not rewriter.is_integer(type_, 2):
        return type_
    return rewriter.tensor(rewriter.shape(type_), rewriter.integer(8, unsigned=type_.element_type.is_unsigned))


def _widened(value: Tensor) -> Any:
    return value.convert(_wide(value.rewriter, value.type).element_type).value


WORKAROUNDS: Final = patterns_of(
    {
        "stablehlo.add": _add,
        "stablehlo.all_gather": _one_by_one,
        "stablehlo.all_to_all": _one_by_one,
        "stablehlo.clamp": _clamp,
        "stablehlo.compare": _compare,
        "stablehlo.concatenate": _of_bytes,
        "stablehlo.convert": _convert,
        **dict.fromkeys(map("stablehlo.{}".format, ("divide", "log", "multiply", "subtract")), _algebra),
        "stablehlo.dot_general": _of_bytes,
        # Constants are taken for signed numbers.
        "stablehlo.dynamic_gather": signed_from(1, 2),
        "stablehlo.dynamic_slice": signed_from(1),
        "stablehlo.dynamic_update_slice": _dynamic_update_slice,
        "stablehlo.gather": signed_from(1),
        "stablehlo.maximum": _maximum,
        "stablehlo.minimum": _minimum,
        "stablehlo.popcnt": _popcnt,
        "stablehlo.power": _power,
        "stablehlo.reduce_window": _reduce_window,
        "stablehlo.rng_bit_generator": _rng_bit_generator,
        "stablehlo.scatter": _scatter,
        "stablehlo.sine": _sine,
        "stablehlo.sort": _sort,
        # By way of f16, it rounds twice.
        "stablehlo.sqrt": _in_f32("f8E3M4"),
    },
    required=True,
)
