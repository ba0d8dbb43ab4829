"""Graph of a program: facts about its ops, and the values that they pass to each other."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from vhlo_tools.artifact import Artifact, Describer
from vhlo_tools.bytecode import (
    Frame,
    Operation,
    Region,
    SourceLocations,
    attributes_of,
    program_name,
    without_collection,
)
from vhlo_tools.printable import printable
from vhlo_tools.spec import find_op, find_op_version, minimum_version
from vhlo_tools.viewing.columns import Columns
from vhlo_tools.viewing.folding import Group, GroupKind, fold

if TYPE_CHECKING:
    from os import PathLike

    from vhlo_tools.compat import OpFeature
    from vhlo_tools.files import Buffer
    from vhlo_tools.version import Version

_FUNCTION: Final = "vhlo.func_v"


class OpName(NamedTuple):
    program: str  # in programs: ``stablehlo.add``
    short: str  # without the dialect, for StableHLO and functions: ``add``
    artifact: str  # in the file, with the version: ``vhlo.add_v1``
    introduced: Version | None  # None if the specification does not have the op


class Value(NamedTuple):
    """A value: a result of an op, or an argument of a block."""

    number: int
    op: int | None  # None for an argument
    block: int | None  # None for a result
    position: int  # the number among the results or the arguments


class Edge(NamedTuple):
    value: int  # its number
    op: int  # the op that uses it
    operand: int  # the number of the operand


class ProgramGraph:
    """The graph of a program. Ops, values and blocks are numbers; facts about them are read on demand.

    Texts are printable, because names in a program may contain anything. Every property and method raises
    :class:`MalformedArtifactError` if the file is damaged.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self._file = artifact.file
        with without_collection():
            self.columns: Columns = Columns(self._file.program)
        self._places = SourceLocations(self._file, artifact.name)
        self._names = [_op_name(self._file.op_name(index)) for index in range(len(self._file.dialects.ops))]
        self._describer = Describer.of_one(self._file)
        # One long type may be that of very many values, and one long name that of very many functions.
        self._printable: Callable[[str], str] = cache(printable)
        self._label: Callable[[str], str] = cache("@{}".format)
        # By kinds of ops.
        self._attributes: dict[tuple[int, int | None, int | None], Mapping[str, str]] = {}
        self._symbols: dict[int, str | None] = {}
        # By locations.
        self._stacks: dict[int, tuple[Frame, ...]] = {}

    def __len__(self) -> int:
        return len(self.columns)

    # Ops

    def op_name(self, op: int) -> OpName:
        return self._names[self.columns.kinds[self.columns.heads[op]].name]

    def name(self, op: int) -> str:
        """The name in programs."""
        return self.op_name(op).program

    def parent(self, op: int) -> int | None:
        return self.columns.blocks[self.columns.block_of(op)].op

    def symbol(self, op: int) -> str | None:
        """Return the name of the function that an op is; ``None`` for any other op."""
        kind = self.columns.heads[op]
        if kind not in self._symbols:
            head = self.columns.kinds[kind]
            found = None
            if self._names[head.name].artifact.startswith(_FUNCTION):
                found = self._printable(self._file.text(attributes_of(self._file, head).get("sym_name")) or "")
            self._symbols[kind] = found
        return self._symbols[kind]

    def function(self, op: int) -> str | None:
        """Return the name of the function that an op is in, or that it is."""
        at: int | None = op
        while at is not None:
            found = self.symbol(at)
            if found is not None:
                return found
            at = self.parent(at)
        return None

    def path(self, op: int) -> str:
        """Return the path of an op, as findings have it: ``@main/4:stablehlo.while/1/2:stablehlo.add``."""
        steps: list[str] = []
        at: int | None = op
        while at is not None:
            symbol = self.symbol(at)
            if symbol is not None:
                steps.append(f"@{symbol}")
                break
            span = self.columns.blocks[self.columns.block_of(at)]
            if span.op is not None:
                steps.append(f"{at - span.start}:{self.name(at)}")
                if self.symbol(span.op) is None and self.parent(span.op) is not None:
                    steps.append(str(span.region))
            at = span.op
        return "/".join(reversed(steps))

    def attributes(self, op: int) -> Mapping[str, str]:
        """Return texts by name; of large constants only type and size."""
        head = self.columns.kinds[self.columns.heads[op]]
        # Many kinds of ops may have one long dictionary.
        key = (head.name, head.properties, head.attributes)
        found = self._attributes.get(key)
        if found is None:
            held = attributes_of(self._file, head)
            found = {printable(name): printable(self._describer.attribute(held[name])) for name in sorted(held)}
            self._attributes[key] = found
        return found

    def label(self, op: int) -> str | None:
        """Return the name that the producer gave to an op in its location, such as JAX's stack of names."""
        found = self._places.label(self.columns.locations[op])
        return None if found is None else printable(found)

    def stack(self, op: int) -> tuple[Frame, ...]:
        """Return the calls in the user's source that led to an op, its own line first."""
        location = self.columns.locations[op]
        found = self._stacks.get(location)
        if found is None:
            found = self._stacks[location] = self._places.frames(location)
        return found

    # Versions

    def features(self, op: int) -> tuple[OpFeature, ...]:
        """Return the features that an op needs, oldest first, without those of its location and of ops in it."""
        numbers, found = self._features
        return found[numbers[op]]

    def introduced(self, op: int) -> Version | None:
        """Return the oldest version that has an op with all its features; ``None`` if the op is not known.

        For an op of another dialect, it is the version since which artifacts may contain those.
        """
        own = self.op_name(op).introduced
        features = self.features(op)
        if any(each.unknown for each in features):
            return None
        return max([each.introduced for each in features] + ([] if own is None else [own]), default=None)

    @cached_property
    def _features(self) -> tuple[array[int], list[tuple[OpFeature, ...]]]:
        """For each op the number of its features, and these."""
        requirements, columns = self.artifact.requirements(), self.columns
        numbers: dict[tuple[OpFeature, ...], int] = {(): 0}
        known: dict[tuple[int, ...], int] = {}
        wanted = [requirements.may_have_features(head) for head in columns.kinds]
        column = array("I", bytes(4 * len(columns)))
        for op, kind in enumerate(columns.heads):
            if not wanted[kind]:
                continue
            types = [columns.value_types[value] for value in columns.operands_of(op)]
            key = (kind, columns.regions.get(op, 0), *types)
            if key not in known:
                found = requirements.op_features(self._operation(op), types)
                known[key] = numbers.setdefault(found, len(numbers))
            column[op] = known[key]
        return column, list(numbers)

    def _operation(self, op: int) -> Operation:
        """Return an op as an object, without the contents of its regions."""
        head = self.columns.kinds[self.columns.heads[op]]
        return Operation(
            head.name,
            self.columns.locations[op],
            head.attributes,
            head.properties,
            head.results,
            tuple(self.columns.operands_of(op)),
            regions=[Region() for _ in range(self.columns.regions.get(op, 0))],
        )

    # Values

    def value(self, number: int) -> Value:
        owner = self.owners[number]
        if owner < 0:
            return Value(number, None, ~owner, number - self.columns.blocks[~owner].first_argument)
        return Value(number, owner, None, number - self.columns.first_results[owner])

    def type(self, value: int) -> str:
        """The type is in StableHLO syntax."""
        return self._printable(self._describer.type(self.columns.value_types[value]))

    def edges(self) -> Iterator[Edge]:
        """Yield every use of a value, by op and operand."""
        firsts, operands = self.columns.first_operands, self.columns.operands
        for op in range(len(self)):
            first = firsts[op]
            for position in range(first, firsts[op + 1]):
                yield Edge(operands[position], op, position - first)

    @cached_property
    def owners(self) -> array[int]:
        """For each value the op that gives it; for an argument the number of its block, with all bits inverted."""
        columns = self.columns
        owners = array("q")
        counts = [len(head.results) for head in columns.kinds]
        for number, span in enumerate(columns.blocks):
            owners.extend([~number] * span.arguments)
            for op in span.ops:
                owners.extend([op] * counts[columns.heads[op]])
        return owners

    # Folding

    @cached_property
    def groups(self) -> Group:
        """The tree of functions, regions, source lines, and runs where these have too many ops."""
        with without_collection():
            return fold(self.columns, self._group, self.stack)

    def _group(self, op: int) -> tuple[GroupKind, str]:
        symbol = self.symbol(op)
        return ("op", self.op_name(op).short) if symbol is None else ("function", self._label(symbol))


def program_graph(source: Artifact | str | PathLike[str] | Buffer) -> ProgramGraph:
    return ProgramGraph(Artifact.open(source))


def _op_name(artifact: str) -> OpName:
    program = printable(program_name(artifact))
    dialect, _, rest = artifact.partition(".")
    if dialect == "builtin":
        return OpName(program, rest, artifact, minimum_version())
    version = find_op_version(rest) if dialect == "vhlo" else None
    op = find_op(version.op) if version else None
    short = program.partition(".")[2] if dialect == "vhlo" else program
    return OpName(program, short, printable(artifact), op.versions[0].min if op else None)
