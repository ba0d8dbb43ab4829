"""Comparison of two artifacts, from their bytes alone: modules, and their functions with signatures and attributes.

The meaning of the bytes is compared, independent of the layout of the tables. The order of functions has no meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from vhlo_tools.artifact.artifact import Artifact
from vhlo_tools.artifact.differences import DIFFERENCE_KINDS, Describer, Difference, DifferenceKind
from vhlo_tools.artifact.numbering import FileNumbering, ValueNumbering
from vhlo_tools.artifact.op_comparison import OpComparison
from vhlo_tools.bytecode import Block, Operation, function_types
from vhlo_tools.errors import MalformedArtifactError

_MODULE: Final = "builtin.module"
_FUNCTION: Final = "vhlo.func_v"
_OF_THEIR_OWN: Final = frozenset({"sym_name", "function_type", "arg_attrs", "res_attrs"})
# The attributes that declare aliased and donated buffers, on arguments or on the module.
_ALIASING: Final[dict[str, DifferenceKind]] = {
    "tf.aliasing_output": "alias",
    "mhlo.input_output_alias": "alias",
    "jax.buffer_donor": "donor",
    "mhlo.buffer_donor": "donor",
}


def diff_artifacts(before: Artifact, after: Artifact, *, locations: bool = False) -> list[Difference]:
    """Return the differences, kind by kind; empty if both have the same meaning.

    Ops are compared in their versions: between artifacts of different versions, ops changed by a version differ.
    """
    found: list[Difference] = []
    if before.version != after.version:
        found.append(Difference("version", "", str(before.version), str(after.version)))
    numbers = ValueNumbering()
    try:
        one, other = (Describer(FileNumbering(each.file, numbers)) for each in (before, after))
        _compare_programs(OpComparison(one, other, found, locations=locations))
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


def _compare_programs(ops: OpComparison) -> None:
    """Compare two programs, each a module; any other top level is compared op by op."""
    sides = ops.one, ops.other
    a, b = map(_module_of, sides)
    if a is None or b is None:
        ops.module("", *(side.numbering.file.program for side in sides))
        return
    ops.attributes("module", a, b, lambda name: _ALIASING.get(name, "module attribute"))
    ops.op_location("module", a, b)
    functions: list[dict[str, Operation]] = []
    # Kept until all is compared, because blocks are identified by id().
    rest: list[Block] = []
    for side, module in zip(sides, (a, b), strict=True):
        named: dict[str, Operation] = {}
        others = []
        for op in module.regions[0].blocks[0].operations:
            if side.numbering.name(op).startswith(_FUNCTION):
                named[side.numbering.file.text(side.numbering.attributes_of(op).get("sym_name")) or ""] = op
            else:
                others.append(op)
        functions.append(named)
        rest.append(Block(operations=others))
    ops.module("module", *rest)
    _compare_functions(ops, *functions)


def _module_of(side: Describer) -> Operation | None:
    """Return the module if it is the only op of a program and has one block without arguments, else ``None``."""
    top = side.numbering.file.program.operations
    if len(top) != 1 or side.numbering.name(top[0]) != _MODULE:
        return None
    blocks = [each for region in top[0].regions for each in region.blocks]
    return top[0] if len(blocks) == 1 and not blocks[0].arguments else None


def _compare_functions(ops: OpComparison, before: Mapping[str, Operation], after: Mapping[str, Operation]) -> None:
    """Compare functions of equal names, and renamed functions by their contents."""
    renamed = _renamed(ops, before, after)
    taken = set(renamed.values())
    for name, op in before.items():
        if name in after or name in renamed:
            _compare_function(ops, f"@{name}", op, after[renamed.get(name, name)])
        else:
            ops.say("function", f"@{name}", _summary(ops.one, op), None)
    for name, op in after.items():
        if name not in before and name not in taken:
            ops.say("function", f"@{name}", None, _summary(ops.other, op))


def _renamed(ops: OpComparison, before: Mapping[str, Operation], after: Mapping[str, Operation]) -> dict[str, str]:
    """Find functions that differ only in their names, and record the renaming in the second program's numbering."""
    renamed: dict[str, str] = {}
    known: dict[object, list[str]] = {}
    for name in reversed([each for each in after if each not in before]):
        known.setdefault(_contents(ops.other.numbering, after[name]), []).append(name)
    for name in [each for each in before if each not in after]:
        if same := known.get(_contents(ops.one.numbering, before[name])):
            renamed[name] = same.pop()
    string = ops.other.numbering.string
    ops.other.numbering.rename({string(new.encode()): string(old.encode()) for old, new in renamed.items()})
    for old, new in renamed.items():
        ops.say("function attribute", f"@{old} sym_name", f'"{old}"', f'"{new}"')
    return renamed


def _contents(numbering: FileNumbering, op: Operation) -> object:
    """Return a key of a function's contents, without its name and the names of the functions that it calls."""
    held = numbering.attributes_of(op).items()
    blocks = [block for region in op.regions for block in region.blocks]
    return (
        frozenset((name, numbering.attribute(index)) for name, index in held if name != "sym_name"),
        tuple(numbering.block(block, blind=True).tobytes() for block in blocks),
        tuple(block.rows.operands.tobytes() for block in blocks),
    )


def _compare_function(ops: OpComparison, path: str, one: Operation, other: Operation) -> None:
    held_a, held_b = ops.one.numbering.attributes_of(one), ops.other.numbering.attributes_of(other)
    ops.attributes(path, one, other, lambda name: "function attribute", _OF_THEIR_OWN)
    ops.op_location(path, one, other)
    types_a, types_b = _types(ops.one, one), _types(ops.other, other)
    if types_a is None or types_b is None:
        ops.attribute("signature", path, held_a.get("function_type"), held_b.get("function_type"))
    else:
        kinds: tuple[DifferenceKind, DifferenceKind] = ("argument attribute", "result attribute")
        for kind, key, a, b in zip(kinds, ("arg_attrs", "res_attrs"), types_a, types_b, strict=True):
            side = f"{path} {kind.removesuffix(' attribute')}"
            pairs = dict(ops.types("signature", side, a, b))
            attributes = _dictionaries(ops.one, held_a.get(key)), _dictionaries(ops.other, held_b.get(key))
            for number, before, after in _joined(pairs, *attributes):
                for name in sorted({**before, **after}):
                    path_of = f"{side} {number} {name}"
                    ops.attribute(_ALIASING.get(name, kind), path_of, before.get(name), after.get(name))
    ops.function(path, one, other)


_Attributes = Mapping[str, int]


def _joined(
    pairs: Mapping[int, int], one: Sequence[_Attributes], other: Sequence[_Attributes]
) -> list[tuple[int, _Attributes, _Attributes]]:
    """Pair the attributes of arguments or of results, with the number of each; those without a partner follow."""
    there = {*pairs.values()}
    return [
        *((i, one[i] if i < len(one) else {}, other[j] if j < len(other) else {}) for i, j in pairs.items()),
        *((i, each, {}) for i, each in enumerate(one) if i not in pairs),
        *((j, {}, each) for j, each in enumerate(other) if j not in there),
    ]


def _dictionaries(side: Describer, index: int | None) -> list[_Attributes]:
    """Return the attributes of each argument or result; empty if ``index`` is not a list of dictionaries."""
    file = side.numbering.file
    return [file.dictionary(each) or {} for each in file.elements(index) or ()]


def _types(side: Describer, op: Operation) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return ``None`` if the function has no function type."""
    return function_types(side.numbering.file, side.numbering.attributes_of(op).get("function_type"))


def _summary(side: Describer, op: Operation) -> str:
    signature = _types(side, op)
    types = " -> ".join(map(side.types, signature)) if signature else "a function"
    heads = (block.rows.kinds_of_ops for region in op.regions for block in region.blocks)
    return f"{types}, {side.ops(chain.from_iterable(heads))}"
