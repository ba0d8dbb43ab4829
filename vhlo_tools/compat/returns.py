"""What no library reads although its bytes are in order: functions that do not return what they declare.

MLIR's verifier compares what ``func.return`` returns, and a function of an artifact may end with an op that becomes
``stablehlo.return`` where it was written and ``func.return`` where it is read
(``stablehlo/transforms/VhloLegalizeToStablehlo.cpp``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vhlo_tools.bytecode import Place, Printer, SourceLocations, attributes_of, function_types, program_name
from vhlo_tools.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vhlo_tools.bytecode import Block, File, Operation, Region

_FUNCTION: Final = "func.func"
_SHOWN: Final = 4  # types


def wrong_returns(file: File, name: str) -> list[Finding]:
    """Return an error for each function with a block that returns other types than the function declares."""
    names = {index: program_name(file.op_name(index)) for index in range(len(file.dialects.ops))}
    places = SourceLocations(file, name)
    found = []
    for op in _top_level(file.program):
        if names[op.name] != _FUNCTION:
            continue
        declared = function_types(file, attributes_of(file, op).get("function_type"))
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
    for module in (block.rows.operation(number) for number in range(len(block.rows))):
        for region in module.regions:
            for each in region.blocks:
                yield from (each.rows.operation(number) for number in each.rows.extras)


def _ends(region: Region) -> Iterator[tuple[Operation, tuple[int, ...]]]:
    """The last op of each block, and the types of its operands."""
    types: list[Sequence[int]] = []
    for block in region.blocks:
        types += [[argument.type for argument in block.arguments], [*block.rows.results]]
    for block in region.blocks:
        if len(block.rows):
            end = block.rows.operation(len(block.rows) - 1)
            yield end, tuple([_type(types, index) for index in end.operands])


def _type(types: Sequence[Sequence[int]], index: int) -> int:
    for each in types:
        if index < len(each):
            return each[index]
        index -= len(each)
    raise AssertionError("the reader checks operands")


def _listed(file: File, types: Sequence[int]) -> str:
    shown = [Printer(file).short_type(each) for each in types[:_SHOWN]]
    return ", ".join([*shown, *(["..."] if len(types) > _SHOWN else [])]) or "nothing"
