"""How two artifacts differ, from their bytes alone.

What is compared is what the bytes mean, whatever their tables look like. The order of functions means nothing.
"""

from __future__ import annotations

from typing import Final

from vhlo_tools.artifact.artifact import Artifact
from vhlo_tools.artifact.canonical import Canon, Numbers
from vhlo_tools.artifact.difference import DIFFERENCE_KINDS, Difference
from vhlo_tools.artifact.function_diff import FunctionDiff, is_function, kind_of
from vhlo_tools.artifact.op_diff import OpDiff, Side
from vhlo_tools.bytecode import Block, Operation
from vhlo_tools.errors import MalformedArtifactError

__all__ = ["diff_artifacts"]

_MODULE: Final = "builtin.module"


def diff_artifacts(before: Artifact, after: Artifact, *, locations: bool = False) -> list[Difference]:
    """Return how two artifacts differ, kind by kind; nothing if they mean the same.

    Ops are compared as they stand: of artifacts of different versions, those that a version changed differ.

    Args:
        before: The first.
        after: The second.
        locations: Whether source locations are compared.

    Raises:
        MalformedArtifactError: If one of them is damaged.
    """
    found: list[Difference] = []
    if before.version != after.version:
        found.append(Difference("version", "", str(before.version), str(after.version)))
    numbers = Numbers()
    try:
        one, other = (Side(Canon(each.file, numbers)) for each in (before, after))
        _ProgramDiff(one, other, found, locations).programs(before.file.ir, after.file.ir)
    except MalformedArtifactError as error:
        # Two files are read at once; an error that names neither helps nobody.
        error.args = (f"{_damaged(before, after)}: {error}",)
        raise
    return sorted(found, key=lambda each: DIFFERENCE_KINDS.index(each.kind))


def _damaged(*artifacts: Artifact) -> str:
    """Return the names of the artifacts whose parts cannot all be told apart; of all, if those of all can."""
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
        """Compare two programs, each a module; anything else is compared op by op."""
        modules = [self._module(side, block) for side, block in ((self._a, one), (self._b, other))]
        if modules[0] is None or modules[1] is None:
            self._ops.module("", one, other)
            return
        a, b = modules[0], modules[1]
        self._ops.attributes("module", a, b, lambda name: kind_of(name, "module attribute"))
        self._ops.op_location("module", a, b)
        body_a, body_b = (each.regions[0].blocks[0] for each in (a, b))
        # Held, for blocks are known by their identity.
        rest = [
            Block(operations=[op for op in each.operations if not is_function(side, op)])
            for side, each in ((self._a, body_a), (self._b, body_b))
        ]
        self._ops.module("module", *rest)
        self._held.append(rest)
        FunctionDiff(self._a, self._b, self._ops, self._found.append).functions(body_a, body_b)

    def _module(self, side: Side, block: Block) -> Operation | None:
        """Return the module that ``block`` holds, if that is what it holds."""
        ops = block.operations
        if len(ops) != 1 or side.name(ops[0]) != _MODULE:
            return None
        blocks = [each for region in ops[0].regions for each in region.blocks]
        return ops[0] if len(blocks) == 1 and not blocks[0].arguments else None
