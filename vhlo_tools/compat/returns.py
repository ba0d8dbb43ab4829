"""What no library reads although its bytes are in order: functions that do not return what they declare.

MLIR's verifier compares what ``func.return`` returns, and a function of an artifact may end with an op that becomes
``stablehlo.return`` where it was written and ``func.return`` where it is read
(``stablehlo/transforms/VhloLegalizeToStablehlo.cpp``).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from vhlo_tools.bytecode import (
    Place,
    Printer,
    SourceLocations,
    attributes_of,
    function_types,
    inherent_attributes,
    program_name,
)
from vhlo_tools.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vhlo_tools.bytecode import Block, File, Operation, Region

_FUNCTION: Final = "func.func"
_SHOWN: Final = 4  # types


def wrong_returns(file: File, name: str) -> list[Finding]:
    """Return an error for each function with a block that returns other types than the function declares."""
    declared_by: dict[int | None, tuple[tuple[int, ...], tuple[int, ...]] | None] = {}
    names = {index: program_name(file.op_name(index)) for index in range(len(file.dialects.ops))}
    places = SourceLocations(file, name)
    found = []
    for op in _top_level(file.program):
        if names[op.name] != _FUNCTION:
            continue
        # Where it is in properties, the dictionary need not be read.
        held = attributes_of(file, op) if op.properties is None else inherent_attributes(file, op)
        if (index := held.get("function_type")) not in declared_by:
            declared_by[index] = function_types(file, index)
        declared = declared_by[index]
        if declared is None:
            continue
        for region in op.regions:
            for end, returned in _ends(region):
                if names[end.name].endswith(".return") and returned != declared[1]:
                    function = places.function(Place(end, 0, 0, Place(op, 0, 0, None)))
                    found.append(
                        Finding(
                            feature="returns_other_types",
                            level="error",
                            kind="op",
                            message=f"{names[end.name]} returns {_listed(file, returned)}, but @{function} is declared "
                            f"to return {_listed(file, declared[1])}: no library reads it",
                            op=names[end.name],
                            location=places.source(end.location),
                            remedy="correct it in what wrote the program",
                            function=function,
                        )
                    )
    return found


def _top_level(block: Block) -> Iterator[Operation]:
    """The ops of the module, which is the only op at the top."""
    # Asked for once: of a block whose ops have become objects, they are a copy.
    modules = block.rows
    for module in map(modules.operation, range(len(modules))):
        for region in module.regions:
            for each in region.blocks:
                rows = each.rows
                yield from map(rows.operation, rows.extras)


def _ends(region: Region) -> Iterator[tuple[Operation, tuple[int, ...]]]:
    """The last op of each block, and the types of its operands."""
    values = _Values(region.blocks)
    for block in region.blocks:
        rows = block.rows
        if len(rows):
            end = rows.operation(len(rows) - 1)
            yield end, tuple(map(values.type_of, end.operands))


class _Values:
    """The values that the blocks of a region define, numbered through; only what is asked for is counted."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._arguments = [block.arguments for block in blocks]
        self._rows = [block.rows for block in blocks]
        sizes = (len(block.arguments) + rows.values for block, rows in zip(blocks[:-1], self._rows, strict=False))
        self._starts = list(accumulate(sizes, initial=0))
        self._results: dict[int, array[int]] = {}  # the number of results up to each op of a block, itself included

    def type_of(self, value: int) -> int:
        number = bisect_right(self._starts, value) - 1
        arguments, rows = self._arguments[number], self._rows[number]
        at = value - self._starts[number]
        if at < len(arguments):
            return arguments[at].type
        if number not in self._results:
            ends = accumulate(map(rows.kinds.result_counts.__getitem__, rows.heads))
            self._results[number] = array("I", ends)
        found = self._results[number]
        op = bisect_right(found, at - len(arguments))
        return rows.kinds.results[rows.heads[op]][at - len(arguments) - found[op]]


def _listed(file: File, types: Sequence[int]) -> str:
    shown = [Printer(file).short_type(each) for each in types[:_SHOWN]]
    return ", ".join([*shown, *(["..."] if len(types) > _SHOWN else [])]) or "nothing"
