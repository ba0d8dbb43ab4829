"""Workarounds for ops that XLA compiles incorrectly on a CPU, or crashes on: other forms with the same meaning.

Each was measured with jaxlib 0.10.2; 0.12.0.1 still needs all but wide indices and the index of a ``scatter`` without
one. Reproducers are in ``docs/upstream-findings.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from vhlo_tools.bindings import named_attributes
from vhlo_tools.conversion import Rewriter, Tensor, dimension_numbers, dimension_numbers_text, patterns_of, tensors
from vhlo_tools.execution.lowering.indexing import signed, signed_from

#: With this attribute XLA does not inline a call.
_NOT_INLINED: Final = '{inlineable = "false"}'
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


def _concatenate(rewriter: Rewriter) -> list[Any] | None:
    """XLA crashes on elements of two bits; they are concatenated as bytes."""
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


def _divide(rewriter: Rewriter) -> None:
    """XLA divides by a product, which may overflow, in place of twice."""
    for number, value in enumerate(rewriter.op.operands):
        if not rewriter.is_integer(value.type) and is_quotient(value):
            _set_apart(rewriter, number)


def is_quotient(value: Any) -> bool:
    """Whatever XLA may look through."""
    made: Any = value.owner
    name = str(getattr(made, "name", "")).partition(".")[2]
    return name == "divide" or (name in _LOOKED_THROUGH and is_quotient(made.operands[0]))


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
        "stablehlo.all_gather": _one_by_one,
        "stablehlo.all_to_all": _one_by_one,
        "stablehlo.concatenate": _concatenate,
        "stablehlo.divide": _divide,
        "stablehlo.dynamic_update_slice": _dynamic_update_slice,
        "stablehlo.rng_bit_generator": _rng_bit_generator,
        "stablehlo.scatter": _scatter,
        "stablehlo.sort": _sort,
    },
    required=True,
)
