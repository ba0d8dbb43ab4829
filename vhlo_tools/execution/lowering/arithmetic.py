"""Arithmetic on which the interpreter is wrong or crashes, in ops that it has."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

from vhlo_tools.bindings import class_of
from vhlo_tools.conversion import MatchFailure, Rewriter, Tensor, select, tensors

# Division of integers, on which the interpreter crashes if the divisor is zero
#
# The specification leaves the result open; here it is that of XLA on a CPU: a quotient has all bits set, and a
# remainder is the dividend. Source: ``xla/service/elemental_ir_emitter.cc`` in openxla/xla.


def divide(rewriter: Rewriter) -> list[Any] | None:
    if not _may_fail(rewriter):
        return None
    dividend, divisor = tensors(rewriter)
    is_zero = divisor.compare("EQ", 0)
    all_ones = Tensor(rewriter, rewriter.constant(divisor.type, 0)).apply("not")
    return [select(is_zero, all_ones, dividend / select(is_zero, 1, divisor)).value]


def remainder(rewriter: Rewriter) -> list[Any] | None:
    if not _may_fail(rewriter):
        return None
    dividend, divisor = tensors(rewriter)
    is_zero = divisor.compare("EQ", 0)
    return [select(is_zero, dividend, dividend % select(is_zero, 1, divisor)).value]


def _may_fail(rewriter: Rewriter) -> bool:
    divisor = rewriter.op.operands[1]
    return rewriter.is_integer(divisor.type) and repeated_integer(divisor) in (None, 0)


def repeated_integer(value: Any) -> int | None:
    """That all elements are, if the program says so."""
    owner = value.owner
    while str(getattr(owner, "name", None)) == "stablehlo.broadcast_in_dim":
        owner = owner.operands[0].owner
    if str(getattr(owner, "name", None)) != "stablehlo.constant":
        return None
    elements = owner.attributes["value"]
    is_repeated = class_of(elements) == "DenseIntElementsAttr" and elements.is_splat
    return int(elements.get_splat_value().value) if is_repeated else None


# Complex exponentials minus one, and logarithms of one more, which the interpreter computes by way of numbers near one


def exponential_minus_one(rewriter: Rewriter) -> list[Any] | None:
    (operand,) = tensors(rewriter)
    if not rewriter.is_complex(operand.type):
        return None
    real, imaginary = operand.part("real"), operand.part("imag")
    half = (imaginary * 0.5).apply("sine")
    parts = [
        real.apply("exponential_minus_one") * imaginary.apply("cosine") - half * half * 2,
        real.apply("exponential") * imaginary.apply("sine"),
    ]
    return [rewriter.make("stablehlo.complex", [each.value for each in parts], operand.type)]


def log_plus_one(rewriter: Rewriter) -> list[Any] | None:
    (operand,) = tensors(rewriter)
    if not rewriter.is_complex(operand.type):
        return None
    real, imaginary = operand.part("real"), operand.part("imag")
    size = (operand + 1).part("abs").apply("log")
    near = (real * (real + 2) + imaginary * imaginary).apply("log_plus_one") * 0.5
    parts = [select(operand.part("abs").compare("LT", 0.5), near, size), imaginary.apply("atan2", real + 1)]
    return [rewriter.make("stablehlo.complex", [each.value for each in parts], operand.type)]


# Comparisons of floats by ``totalOrder``, which the interpreter treats as comparisons of numbers
#
# In this order every NaN is next to the infinity of its sign, and a negative zero comes before a positive one. It is
# the order of the bits as integers, if those of negative floats are inverted except the sign. Sorting relies on it.
# Complex numbers, which the specification orders by their parts, crash the interpreter.
# Source: the specification of StableHLO, ``compare``; ``xla/hlo/transforms/expanders/comparison_expander.cc`` in
# openxla/xla.


def compare(rewriter: Rewriter) -> list[Any] | None:
    attributes = rewriter.op.attributes
    direction = str(attributes["comparison_direction"]).removeprefix("#stablehlo<comparison_direction ")[:2]
    one, other = tensors(rewriter)
    if rewriter.is_complex(one.type) and direction not in ("EQ", "NE"):
        return [compared_by_parts(direction, one, other).value]
    if "compare_type" not in attributes or str(attributes["compare_type"]) != "#stablehlo<comparison_type TOTALORDER>":
        return None
    return [_place(one).compare(direction, _place(other)).value]


def compared_by_parts(direction: str, one: Tensor, other: Tensor) -> Tensor:
    """Complex numbers, by their imaginary parts where the real ones are equal."""
    parts = [[each.part(name) for each in (one, other)] for name in ("real", "imag")]
    (real, of_other), (imaginary, other_imaginary) = parts
    is_equal, is_before = real.compare("EQ", of_other), real.compare(f"{direction[0]}T", of_other)
    return select(is_equal, imaginary.compare(direction, other_imaginary), is_before)


def _place(floats: Tensor) -> Tensor:
    rewriter, name = floats.rewriter, str(floats.element)
    if name.startswith("f6E"):
        # No integers have these bits.
        floats = floats.convert(rewriter.type("f32"))
    width = floats.element.width
    if name.endswith("FNU"):
        return floats.bits(rewriter.integer(width, unsigned=True))
    bits = floats.bits(rewriter.integer(width))
    least = -(2 ** (width - 1))
    inverted = bits ^ ~least
    if name.endswith("UZ"):
        # NaN, of which there is one, has the bits of a negative zero.
        inverted = select(bits.compare("EQ", least), least, inverted + 1)
    return select(bits.compare("LT", 0), inverted, bits)


# Convolutions whose results are of another type than their operands, such as ``i8`` to ``i32``, or in another order
#
# The interpreter multiplies and adds in the type of the operands, which overflows for integers, and crashes if the
# operands are integers and the result is a float. XLA on a CPU computes in the type of the result, and so does this.
#
# Up to StableHLO 1.17, it crashes if the features of the result come before its batch, as in gradients of kernels.

#: The names of the dimensions of the result in dimension numbers.
_OUTPUT: Final = re.compile(r"(?<=->\[)([^\]]*)(?=\])")


def convolution(rewriter: Rewriter) -> list[Any] | None:
    """In the type of the result, or of the operands if that of the result is narrower; zeros for empty sums."""
    one, other = tensors(rewriter)[:2]
    type_ = rewriter.op.results[0].type
    element = type_.element_type
    if 0 in other.shape and 0 not in rewriter.static(type_):
        # The interpreter crashes on empty sums.
        return [rewriter.constant(type_, 0)]
    head, output, tail = _OUTPUT.split(str(rewriter.op.attributes["dimension_numbers"]))
    names, shape = output.split(", "), rewriter.static(type_)
    order = list(range(len(shape)))
    batch, features = names.index("b"), names.index("f")
    if one.element == other.element == element and batch < features:
        return None
    if features < batch:
        order[batch], order[features] = features, batch
    computed = one.element if _is_narrower(rewriter, element, one.element) else element
    # A convolution whose padding is an operand has a third one.
    operands = [*(each.convert(computed).value for each in (one, other)), *list(rewriter.op.operands)[2:]]
    (value,) = rewriter.make_like(
        operands,
        [rewriter.tensor([shape[each] for each in order], computed)],
        dimension_numbers=rewriter.attribute(f"{head}{', '.join(names[each] for each in order)}{tail}"),
    )
    return [rewriter.transpose(rewriter.convert(value, element), order)]


def _is_narrower(rewriter: Rewriter, element: Any, of: Any) -> bool:
    """Whether ``element`` cannot represent all numbers of the float type ``of``."""
    if rewriter.is_integer(of) or rewriter.is_complex(of) or rewriter.is_complex(element):
        return False
    return rewriter.is_integer(element) or bool(element.width < of.width)


# Products of tensors, and ops that are short forms of newer ones: `dot`, `einsum` and similar ops
#
# Sources: the operations of those names in the XLA documentation (``docs/operation_semantics.md`` in openxla/xla), and
# for the selection of indices the comments of ``xla/hlo/builder/lib/slicing.h``.

_REST: Final = "..."
_CONTRACTED: Final = re.compile(r"lhs_contracting_dimensions = \[([0-9, ]*)\]")


def dot(rewriter: Rewriter) -> list[Any]:
    """Contracts the last dimension of the first operand with the first of the second."""
    one, other = tensors(rewriter)
    contracted = ([len(one.shape) - 1], [0])
    held = {name: rewriter.op.attributes[name] for name in ("precision_config",) if name in rewriter.op.attributes}
    return [_dot_general(one, other, ([], []), contracted, rewriter.op.results[0].type, held).value]


def dot_general(rewriter: Rewriter) -> list[Any] | None:
    """Zeros for empty sums, on which the interpreter crashes."""
    one, _ = tensors(rewriter)
    type_ = rewriter.op.results[0].type
    match = _CONTRACTED.search(str(rewriter.op.attributes["dot_dimension_numbers"]))
    contracted = [int(each) for each in match[1].split(",") if each.strip()] if match else []
    if all(one.shape[each] for each in contracted):
        return None
    return [rewriter.constant(type_, 0)]


def broadcast(rewriter: Rewriter) -> list[Any]:
    (operand,) = tensors(rewriter)
    shape = rewriter.static(rewriter.op.results[0].type)
    added = len(shape) - len(operand.shape)
    return [operand.broadcast(shape, range(added, len(shape))).value]


def unary_einsum(rewriter: Rewriter) -> list[Any]:
    (operand,) = tensors(rewriter)
    taken, given = _split(rewriter, "einsum_config", 1)
    labels = _labels(taken[0], len(operand.shape))
    return [_ordered(*_summed(operand, labels, set(_labels_of_result(given, [labels]))), given, [labels]).value]


def einsum(rewriter: Rewriter) -> list[Any]:
    one, other = tensors(rewriter)
    taken, given = _split(rewriter, "einsum_config", 2)
    labels = [_labels(text, len(each.shape)) for text, each in zip(taken, (one, other), strict=True)]
    result = _labels_of_result(given, labels)
    one, first = _summed(one, labels[0], {*result, *labels[1]})
    other, second = _summed(other, labels[1], {*result, *labels[0]})
    shared = [label for label in first if label in second]
    batching = [label for label in shared if label in result]
    contracted = [label for label in shared if label not in result]
    order = [*batching, *(label for label in first if label not in shared), *(e for e in second if e not in shared)]
    sizes = {**dict(zip(second, other.shape, strict=True)), **dict(zip(first, one.shape, strict=True))}
    product = _dot_general(
        one,
        other,
        ([first.index(each) for each in batching], [second.index(each) for each in batching]),
        ([first.index(each) for each in contracted], [second.index(each) for each in contracted]),
        rewriter.tensor([sizes[label] for label in order], rewriter.op.results[0].type.element_type),
        {},
    )
    return [_ordered(product, order, given, labels).value]


def torch_index_select(rewriter: Rewriter) -> list[Any]:
    """The indices may differ for each batch."""
    operand, indices = tensors(rewriter)
    dim, batch = (int(rewriter.op.attributes[name].value) for name in ("dim", "batch_dims"))
    rank, number = len(operand.shape), len(indices.shape)
    if batch > dim:
        raise MatchFailure("it selects along a batch dimension")
    taken = range(dim, dim + number - batch)
    result = rewriter.op.results[0].type
    offsets = [each for each in range(batch, len(result.shape)) if each not in taken]
    numbers = {
        "offset_dims": offsets,
        "collapsed_slice_dims": [dim],
        "operand_batching_dims": list(range(batch)),
        "start_indices_batching_dims": list(range(batch)),
        "start_index_map": [dim],
    }
    fields = ", ".join(f"{name} = {each}" for name, each in numbers.items())
    sizes = [1 if each < batch or each == dim else operand.shape[each] for each in range(rank)]
    gathered = rewriter.make(
        "stablehlo.gather",
        [operand.value, indices.value],
        result,
        dimension_numbers=rewriter.attribute(f"#stablehlo.gather<{fields}, index_vector_dim = {number}>"),
        slice_sizes=rewriter.integers(sizes),
    )
    return [gathered]


def _split(rewriter: Rewriter, attribute: str, number: int) -> tuple[list[str], str]:
    text = str(rewriter.op.attributes[attribute].value).replace(" ", "")
    taken, arrow, given = text.partition("->")
    operands = taken.split(",")
    if not arrow or len(operands) != number:
        raise MatchFailure(f"the form {text!r}")
    return operands, given


def _labels(text: str, rank: int) -> list[str]:
    """The dimensions that ``...`` represents are numbered from the last."""
    before, rest, after = text.partition(_REST)
    several = rank - len(before) - len(after)
    labels = [*before, *(f"{_REST}{each}" for each in range(several - 1, -1, -1) if rest), *after]
    if len(labels) != rank or len(set(labels)) != rank:
        raise MatchFailure(f"the form {text!r} of a tensor with {rank} dimensions")
    return labels


def _labels_of_result(text: str, operands: Sequence[Sequence[str]]) -> list[str]:
    before, rest, after = text.partition(_REST)
    several = max((sum(label.startswith(_REST) for label in each) for each in operands), default=0)
    return [*before, *(f"{_REST}{each}" for each in range(several - 1, -1, -1) if rest), *after]


def _summed(operand: Tensor, labels: Sequence[str], kept: set[str]) -> tuple[Tensor, list[str]]:
    dimensions = [index for index, label in enumerate(labels) if label not in kept]
    left = [label for label in labels if label in kept]
    return (operand.reduce("add", dimensions) if dimensions else operand), left


def _ordered(value: Tensor, labels: Sequence[str], given: str, operands: Sequence[Sequence[str]]) -> Tensor:
    result = _labels_of_result(given, operands)
    if sorted(result) != sorted(labels):
        raise MatchFailure(f"a result of {given!r}")
    order = [list(labels).index(label) for label in result]
    return value if order == sorted(order) else value.transpose(*order)


def _dot_general(
    one: Tensor,
    other: Tensor,
    batching: tuple[Sequence[int], Sequence[int]],
    contracted: tuple[Sequence[int], Sequence[int]],
    type_: Any,
    attributes: dict[str, Any],
) -> Tensor:
    numbers = (
        f"lhs_batching_dimensions = {list(batching[0])}, rhs_batching_dimensions = {list(batching[1])}, "
        f"lhs_contracting_dimensions = {list(contracted[0])}, rhs_contracting_dimensions = {list(contracted[1])}"
    )
    held = one.rewriter.attribute(f"#stablehlo.dot<{numbers}>")
    operands = [one.value, other.value]
    return Tensor(
        one.rewriter,
        one.rewriter.make("stablehlo.dot_general", operands, type_, dot_dimension_numbers=held, **attributes),
    )


# Batch normalization by the formulas of the StableHLO specification
#
# Sums over floats of fewer than 32 bits are computed in f32, as XLA does on a CPU.


def batch_norm_inference(rewriter: Rewriter) -> list[Any]:
    operand, scale, offset, mean, variance = _wide(rewriter)
    return _narrow(rewriter, [_Features(rewriter, operand).normalized(mean, variance, scale, offset)])


def batch_norm_training(rewriter: Rewriter) -> list[Any]:
    operand, scale, offset = _wide(rewriter)
    features = _Features(rewriter, operand)
    mean = features.sum(operand) / features.count
    centered = operand - features.spread(mean)
    variance = features.sum(centered * centered) / features.count
    return _narrow(rewriter, [features.normalized(mean, variance, scale, offset), mean, variance])


def batch_norm_grad(rewriter: Rewriter) -> list[Any]:
    operand, scale, mean, variance, gradient = _wide(rewriter)
    features = _Features(rewriter, operand)
    centered = operand - features.spread(mean)
    variance = variance + features.epsilon
    deviation = variance.apply("sqrt")
    of_offset = features.sum(gradient)
    of_centered = features.sum(gradient * centered)
    of_operand = features.spread(scale / deviation / features.count) * (
        gradient * features.count
        - features.spread(of_offset)
        - features.spread(of_centered) * centered / features.spread(variance)
    )
    return _narrow(rewriter, [of_operand, features.sum(gradient * (centered / features.spread(deviation))), of_offset])


class _Features:
    def __init__(self, rewriter: Rewriter, operand: Tensor) -> None:
        self._operand = operand
        self._index = int(rewriter.op.attributes["feature_index"].value)
        self._others = [index for index in range(len(operand.shape)) if index != self._index]
        self.epsilon = float(rewriter.op.attributes["epsilon"].value)
        self.count = math.prod(operand.shape[index] for index in self._others)

    def spread(self, value: Tensor) -> Tensor:
        return value.broadcast(self._operand.shape, [self._index])

    def sum(self, value: Tensor) -> Tensor:
        return value.reduce("add", self._others)

    def normalized(self, mean: Tensor, variance: Tensor, scale: Tensor, offset: Tensor) -> Tensor:
        deviation = self.spread((variance + self.epsilon).apply("sqrt"))
        normalized = (self._operand - self.spread(mean)) / deviation
        return normalized * self.spread(scale) + self.spread(offset)


def _wide(rewriter: Rewriter) -> list[Tensor]:
    operands = tensors(rewriter)
    wide = rewriter.type("f32")
    return [each.convert(wide) for each in operands] if operands[0].element.width < wide.width else operands


def _narrow(rewriter: Rewriter, results: list[Tensor]) -> list[Any]:
    types = [result.type for result in rewriter.op.results]
    return [result.convert(type_.element_type).value for result, type_ in zip(results, types, strict=True)]
