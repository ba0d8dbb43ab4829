"""Products of tensors, and ops that are short forms of newer ones: `dot`, `einsum` and similar ops.

Sources: the operations of those names in the XLA documentation (``docs/operation_semantics.md`` in openxla/xla), and
for the selection of indices the comments of ``xla/hlo/builder/lib/slicing.h``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from vhlo_tools.rewriting import MatchFailure, Rewriter, Tensor, tensors

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
    """Adds leading dimensions to the operand."""
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
