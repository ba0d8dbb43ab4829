"""Compare two artifacts, from their bytes alone.

The meaning of the bytes is compared, independent of the layout of the tables. The order of functions has no meaning.
"""

from __future__ import annotations

from typing import Final

from vhlo_tools.artifact import Artifact
from vhlo_tools.bytecode import Block, Operation
from vhlo_tools.differencing.difference import DIFFERENCE_KINDS, Difference
from vhlo_tools.differencing.function_differences import FunctionDiff, is_function, kind_of
from vhlo_tools.differencing.op_differences import OpDiff, Side
from vhlo_tools.differencing.value_numbering import FileNumbering, ValueNumbering
from vhlo_tools.errors import MalformedArtifactError

_MODULE: Final = "builtin.module"


def diff_artifacts(before: Artifact, after: Artifact, *, locations: bool = False) -> list[Difference]:
    """Return the differences, kind by kind; empty if both have the same meaning.

    Ops are compared in their versions: between artifacts of different versions, ops changed by a version differ.
    """
    found: list[Difference] = []
    if before.version != after.version:
        found.append(Difference("version", "", str(before.version), str(after.version)))
    numbers = ValueNumbering()
    try:
        one, other = (Side(FileNumbering(each.file, numbers)) for each in (before, after))
        _ProgramDiff(one, other, found, locations).programs(before.file.program, after.file.program)
    except MalformedArtifactError as error:
        # Two files are read at once; the error must name the one at fault.
        error.args = (f"{_damaged(before, after)}: {error}",)
        raise
    except RecursionError as error:
        # Regions and attributes have limits of their own, whose sum is beyond that of Python.
        raise MalformedArtifactError(
            f"{_damaged(before, after)}: attributes nest too deeply within nested regions"
        ) from error
    return sorted(found, key=lambda each: DIFFERENCE_KINDS.index(each.kind))


def _damaged(*artifacts: Artifact) -> str:
    """Return the names of the artifacts that cannot be decoded; of all, if all can."""
    damaged = []
    for artifact in artifacts:
        try:
            artifact.file.load()
        except MalformedArtifactError:
            damaged.append(artifact.name)
    return " and ".join(damaged) or " or ".join(artifact.name for artifact in artifacts)


class _ProgramDiff:
    def __init__(self, one: Side, other: Side, found: list[Difference], locations: bool) -> None:
        self._a = one
        self._b = other
        self._found = found
        self._held: list[list[Block]] = []
        self._ops = OpDiff(one, other, found.append, locations=locations)

    def programs(self, one: Block, other: Block) -> None:
        """Compare two programs, each a module; any other top level is compared op by op."""
        modules = [self._module(side, block) for side, block in ((self._a, one), (self._b, other))]
        if modules[0] is None or modules[1] is None:
            self._ops.module("", one, other)
            return
        a, b = modules[0], modules[1]
        self._ops.attributes("module", a, b, lambda name: kind_of(name, "module attribute"))
        self._ops.op_location("module", a, b)
        body_a, body_b = (each.regions[0].blocks[0] for each in (a, b))
        # Kept alive, because blocks are identified by id().
        rest = [
            Block(operations=[op for op in each.operations if not is_function(side, op)])
            for side, each in ((self._a, body_a), (self._b, body_b))
        ]
        self._ops.module("module", *rest)
        self._held.append(rest)
        FunctionDiff(self._a, self._b, self._ops, self._found.append).functions(body_a, body_b)

    def _module(self, side: Side, block: Block) -> Operation | None:
        """Return the module if it is the only op of ``block`` and has one block without arguments, else ``None``."""
        ops = block.operations
        if len(ops) != 1 or side.name(ops[0]) != _MODULE:
            return None
        blocks = [each for region in ops[0].regions for each in region.blocks]
        return ops[0] if len(blocks) == 1 and not blocks[0].arguments else None
