"""Buffers and tilings of custom calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from vhlo_tools.conversion.patterns import Build
from vhlo_tools.conversion.rewriter import MatchFailure, Rewriter

# Buffer types, introduced in 1.13.0, as tensors where no two custom calls rely on the same memory
#
# Three targets of custom_call connect buffers with tensors: ``CreateBuffer`` gives a buffer whose contents are not
# defined, ``Pin`` one with the contents of a tensor, and ``Unpin`` the contents of a buffer, which it releases. All
# other calls give a buffer only as an alias of an operand (``output_operand_aliases``).
#
# A buffer that is created or pinned, used by at most one such call, and unpinned, is a tensor: the call reads the same
# contents, and the alias, which remains, has it write its result to the memory of its operand. Contents that are not
# defined become zeros. The expansion is exact in the values that the program computes.
#
# It gives up nothing, so that it is refused where a tensor would not do: consumers may copy a tensor between two calls,
# which then no longer share memory; a call may write to a buffer that it does not return; and the callers of a function
# pass buffers as memory of their own.
#
# Source: ``custom_call`` and buffer types in the StableHLO specification, and ``CustomCallOp::verifyKnownCustomCalls``
# in ``stablehlo/dialect/StablehloOps.cpp`` of openxla/stablehlo.

_CUSTOM_CALL: Final = "stablehlo.custom_call"
#: The targets that connect buffers with tensors.
_SPECIAL: Final = frozenset({"CreateBuffer", "Pin", "Unpin"})
_BUFFER: Final = "memref<"
_ALIASES: Final = "output_operand_aliases"
_ALIASED_OPERAND: Final = re.compile(r"operand_index = (\d+)")


def _without_buffers(rewriter: Rewriter) -> Sequence[Any] | None:
    op = rewriter.op.operation
    if not any(_BUFFER in str(value.type) for value in (*op.operands, *op.results)):
        return None
    for each in _connected(op):
        _check(rewriter, each)
    types = [_tensor(rewriter, value.type) for value in op.results]
    target = _target(op)
    if target == "CreateBuffer":
        return [rewriter.constant(types[0], 0)]
    if target in _SPECIAL:
        return [rewriter.converted(op.operands[0])]
    operands = [rewriter.converted(value) if _is_buffer(value) else value for value in op.operands]
    return rewriter.make_like(operands, types)


def _target(op: Any) -> str:
    return str(op.attributes["call_target_name"].value) if op.name == _CUSTOM_CALL else ""


def _is_buffer(value: Any) -> bool:
    return str(value.type).startswith(_BUFFER)


def _connected(op: Any) -> list[Any]:
    """The custom calls that buffers connect with ``op``, and itself; nothing else may use the buffers."""
    found, pending = [], [op]
    while pending:
        each = pending.pop()
        if each in found:
            continue
        if each.name != _CUSTOM_CALL:
            raise MatchFailure(f"{each.name} uses a buffer: only custom calls can use a tensor in its place")
        found.append(each)
        pending += _neighbours(each)
    return found


def _neighbours(op: Any) -> Iterator[Any]:
    for value in filter(_is_buffer, op.operands):
        if not hasattr(value.owner, "name"):
            raise MatchFailure("a function or a region takes a buffer as an argument: who calls it passes memory")
        yield value.owner.operation if hasattr(value.owner, "operation") else value.owner
    for value in filter(_is_buffer, op.results):
        yield from (use.owner.operation for use in value.uses)


def _check(rewriter: Rewriter, op: Any) -> None:
    """Raises :class:`MatchFailure` unless tensors can take the place of the buffers of a custom call."""
    target = _target(op)
    types = [_tensor(rewriter, value.type) for value in (*op.operands, *op.results)]
    if target == "CreateBuffer":
        rewriter.static(types[0])
    elif target in _SPECIAL:
        if types[0] != types[1]:
            raise MatchFailure(f"{target} changes the type {types[0]} to {types[1]}")
    else:
        aliases = str(op.attributes[_ALIASES]) if _ALIASES in op.attributes else ""
        aliased = {int(each) for each in _ALIASED_OPERAND.findall(aliases)}
        if any(_is_buffer(value) and index not in aliased for index, value in enumerate(op.operands)):
            raise MatchFailure(f"@{target} has a buffer that is no alias of a result, and may write to it")
    for value in filter(_is_buffer, op.results):
        users = [_target(use.owner.operation) for use in value.uses]
        if len(users) > 1:
            raise MatchFailure(f"{len(users)} ops use the buffer that @{target} gives")
        if target not in _SPECIAL and not _SPECIAL.issuperset(users):
            raise MatchFailure(
                f"@{target} and @{users[0]} use a buffer in turn, and may rely on the same memory; "
                "tensors may be copied"
            )


def _tensor(rewriter: Rewriter, type_: Any) -> Any:
    text = str(type_)
    if _BUFFER not in text:
        return type_
    if not text.startswith(_BUFFER):
        raise MatchFailure(f"a buffer within a tuple: {text}")
    # What a buffer type has after its elements is read as the encoding of a tensor type.
    found = rewriter.type(f"tensor<{text.removeprefix(_BUFFER)}")
    if found.encoding is not None:
        raise MatchFailure(f"a buffer with a layout or a memory space: {text}")
    return found


BUFFERS_EXACT: Final[Mapping[str, Build]] = {_CUSTOM_CALL: _without_buffers}


# The attribute result_tilings of custom_call, introduced in 1.18.0, dropped
#
# It asks for a tiling of the layout of each result. A consumer that does not know it chooses a tiling itself, and the
# target of the call may depend on the one that was asked for, so that this is no exact expansion. The layouts
# (``result_layouts``) remain.
#
# Source: ``CustomCallOp`` in ``stablehlo/dialect/StablehloOps.td``, and ``CustomCallOpV2ToV1`` in
# ``stablehlo/transforms/VhloToVersion.cpp`` of openxla/stablehlo.

_NAME: Final = "result_tilings"


def _untiled(rewriter: Rewriter) -> Sequence[Any] | None:
    op = rewriter.op
    if _NAME not in op.attributes or not len(op.attributes[_NAME]):
        return None
    rewriter.without.append(_NAME)
    return rewriter.make_like(list(op.operands), [result.type for result in op.results], without=[_NAME])


RESULT_TILINGS_RELAXED: Final[Mapping[str, Build]] = {"stablehlo.custom_call": _untiled}
