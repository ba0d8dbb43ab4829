"""Locations and use counts of the constants of a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vhlo_tools.bytecode import Block, File, Place, Region, attributes_of
from vhlo_tools.records import dataclass


@dataclass(slots=True)
class FoundConstant:
    """A constant op."""

    place: Place
    position: tuple[int, ...]  # numbers of region, block and op, from the top of the program inwards
    value: int  # index of the attribute that is the value
    plain: bool  # whether the op has no other attributes
    uses: int = 0  # number of operands that use the result


@dataclass(frozen=True, slots=True)
class RegionOp:
    """An op with regions."""

    place: Place
    position: tuple[int, ...]  # as in FoundConstant
    reach: int  # number of values from outside that are in the scope of the regions


def find_constants(file: File) -> tuple[list[FoundConstant], list[RegionOp]]:
    """Return the constants, and the ops with regions, in the order of the text."""
    survey = _UseSurvey(file)
    survey.region(Region([file.ir]), 0, [], (), None)
    return sorted(survey.found, key=lambda each: each.position), survey.holders


class _UseSurvey:
    def __init__(self, file: File) -> None:
        self.file = file
        self.holders: list[RegionOp] = []
        self.found: list[FoundConstant] = []
        # The value of a constant with these properties and attributes, and whether it has no others.
        self.held: dict[tuple[int, int | None, int | None], tuple[int | None, bool]] = {}
        self.names = frozenset(
            index for index in range(len(file.dialects.ops)) if file.op_name(index) == "vhlo.constant_v1"
        )

    def region(
        self,
        region: Region,
        number: int,
        values: list[FoundConstant | None],
        around: tuple[int, ...],
        place: Place | None,
    ) -> None:
        """Traverse a region; ``values`` are those in scope, each with the constant whose result it is, if any."""
        start = len(values)
        for index, block in enumerate(region.blocks):
            values += [None] * len(block.arguments)
            for results in self.results(block, number, (*around, number, index), place):
                values += results
        for index, block in enumerate(region.blocks):
            for position, op in enumerate(block.operations):
                for operand in op.operands:
                    constant = values[operand]
                    if constant is not None:
                        constant.uses += 1
                if op.regions:
                    at = (*around, number, index, position)
                    self.regions(Place(op, position, number, place), values, at)
        del values[start:]

    def results(
        self, block: Block, number: int, around: tuple[int, ...], place: Place | None
    ) -> Iterator[Sequence[FoundConstant | None]]:
        for index, op in enumerate(block.operations):
            if op.name in self.names:
                self.found.append(self.constant(Place(op, index, number, place), (*around, index)))
                yield self.found[-1:]
            elif op.results:
                yield [None] * len(op.results)

    def regions(self, place: Place, values: list[FoundConstant | None], position: tuple[int, ...]) -> None:
        inner: list[FoundConstant | None] = [] if place.op.isolated else values
        self.holders.append(RegionOp(place, position, len(inner)))
        for number, region in enumerate(place.op.regions):
            self.region(region, number, inner, position, place)

    def constant(self, place: Place, position: tuple[int, ...]) -> FoundConstant:
        op = place.op
        key = (op.name, op.properties, op.attributes)
        if key not in self.held:
            attributes = attributes_of(self.file, op)
            self.held[key] = (attributes.get("value"), len(attributes) == 1)
        value, plain = self.held[key]
        if value is None or len(op.results) != 1 or op.operands or op.regions:
            raise self.file.attributes[op.location].malformed("a constant has no value, or not one result")
        return FoundConstant(place, position, value, plain)
