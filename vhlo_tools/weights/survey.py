"""Where the constants of a program stand, and how often they are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vhlo_tools.bytecode import Block, File, Place, Region
from vhlo_tools.compat.places import attributes_of

__all__ = ["Found", "Holder", "find_constants"]


@dataclass(slots=True)
class Found:
    """An op that is a constant.

    Attributes:
        place: Where it stands.
        position: The same in numbers: region, block and op, from the top of the program inwards.
        value: The index of the attribute that it has as its value.
        plain: Whether it has no other attributes.
        uses: How often ops use its result.
    """

    place: Place
    position: tuple[int, ...]
    value: int
    plain: bool
    uses: int = 0


@dataclass(frozen=True, slots=True)
class Holder:
    """An op that has regions.

    Attributes:
        place: Where it stands.
        position: The same in numbers.
        reach: How many values from outside are in the reach of its regions.
    """

    place: Place
    position: tuple[int, ...]
    reach: int


def find_constants(file: File) -> tuple[list[Found], list[Holder]]:
    """Return the constants of ``file``, and the ops that have regions, in the order of the text.

    Raises:
        MalformedArtifactError: If it is damaged.
    """
    survey = _Survey(file)
    survey.region(Region([file.ir]), 0, [], (), None)
    return sorted(survey.found, key=lambda each: each.position), survey.holders


class _Survey:
    def __init__(self, file: File) -> None:
        self.file = file
        self.holders: list[Holder] = []
        self.found: list[Found] = []
        self.names = frozenset(
            index for index in range(len(file.dialects.ops)) if file.op_name(index) == "vhlo.constant_v1"
        )

    def region(
        self, region: Region, number: int, values: list[Found | None], around: tuple[int, ...], place: Place | None
    ) -> None:
        """Go through a region with ``values`` in its reach: the constant that each is the result of, if any."""
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
    ) -> Iterator[Sequence[Found | None]]:
        """Yield the results of each op of a block."""
        for index, op in enumerate(block.operations):
            if op.name in self.names:
                self.found.append(self.constant(Place(op, index, number, place), (*around, index)))
                yield self.found[-1:]
            elif op.results:
                yield [None] * len(op.results)

    def regions(self, place: Place, values: list[Found | None], position: tuple[int, ...]) -> None:
        inner: list[Found | None] = [] if place.op.isolated else values
        self.holders.append(Holder(place, position, len(inner)))
        for number, region in enumerate(place.op.regions):
            self.region(region, number, inner, position, place)

    def constant(self, place: Place, position: tuple[int, ...]) -> Found:
        op = place.op
        attributes = attributes_of(self.file, op)
        if "value" not in attributes or len(op.results) != 1 or op.operands or op.regions:
            raise self.file.attributes[op.location].malformed("a constant has no value, or not one result")
        return Found(place, position, attributes["value"], len(attributes) == 1)
