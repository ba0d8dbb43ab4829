"""How the functions of two programs differ: which there are, their signatures, attributes and ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from vhlo_tools.artifact.alignment import Pairs, paired
from vhlo_tools.artifact.difference import Difference, DifferenceKind
from vhlo_tools.artifact.op_diff import OpDiff, Side
from vhlo_tools.bytecode import Block, Operation

__all__ = ["FunctionDiff", "is_function", "kind_of"]

_FUNCTION: Final = "vhlo.func_v"
_OF_THEIR_OWN: Final = frozenset({"sym_name", "function_type", "arg_attrs", "res_attrs"})
# The attributes by which buffers are aliased and given away, whether on arguments or on the module.
_ALIASING: Final[dict[str, DifferenceKind]] = {
    "tf.aliasing_output": "alias",
    "mhlo.input_output_alias": "alias",
    "jax.buffer_donor": "donor",
    "mhlo.buffer_donor": "donor",
}

_Signature = tuple[tuple[int, ...], tuple[int, ...]]


def is_function(side: Side, op: Operation) -> bool:
    """Tell whether ``op`` is a function."""
    return side.name(op).startswith(_FUNCTION)


def kind_of(name: str, otherwise: DifferenceKind) -> DifferenceKind:
    """Return the kind of difference that the attribute ``name`` makes."""
    return _ALIASING.get(name, otherwise)


class FunctionDiff:
    """Compares functions.

    Args:
        before: The first program.
        after: The second.
        ops: Compares what is in them.
        report: Called with each difference.
    """

    def __init__(self, before: Side, after: Side, ops: OpDiff, report: Callable[[Difference], None]) -> None:
        self._a = before
        self._b = after
        self._ops = ops
        self._report = report

    def functions(self, one: Block, other: Block) -> None:
        """Compare the functions of two modules: by name, and those that were renamed by what they are."""
        held_a, held_b = _by_name(self._a, one), _by_name(self._b, other)
        renamed = self._renamed(held_a, held_b)
        taken = set(renamed.values())
        for name, op in held_a.items():
            if name in held_b or name in renamed:
                self._function(f"@{name}", op, held_b[renamed.get(name, name)])
            else:
                self._say("function", f"@{name}", self._summary(self._a, op), None)
        for name, op in held_b.items():
            if name not in held_a and name not in taken:
                self._say("function", f"@{name}", None, self._summary(self._b, op))

    def _renamed(self, held_a: Mapping[str, Operation], held_b: Mapping[str, Operation]) -> dict[str, str]:
        """Find functions that differ in nothing but their names, and let both sides know of them."""
        gone = {name: op for name, op in held_a.items() if name not in held_b}
        come = {name: op for name, op in held_b.items() if name not in held_a}
        renamed: dict[str, str] = {}
        known: dict[object, list[str]] = {}
        for name in reversed(come):
            known.setdefault(self._print_of(self._b, come[name]), []).append(name)
        for name in gone:
            if same := known.get(self._print_of(self._a, gone[name])):
                renamed[name] = same.pop()
        canon = self._b.canon
        canon.renamed = {canon.string(new.encode()): canon.string(old.encode()) for old, new in renamed.items()}
        canon.forget_blocks()
        for old, new in renamed.items():
            self._say("function attribute", f"@{old} sym_name", f'"{old}"', f'"{new}"')
        return renamed

    def _print_of(self, side: Side, op: Operation) -> object:
        """Return what a function is but for its name, and those of the functions that it calls."""
        canon = side.canon
        held = {name: canon.attribute(index) for name, index in canon.attributes_of(op).items() if name != "sym_name"}
        blocks = [block for region in op.regions for block in region.blocks]
        inner = tuple(tuple(canon.block(block, blind=True)) for block in blocks)
        uses = tuple(tuple(each.operands for each in block.operations) for block in blocks)
        return frozenset(held.items()), inner, uses

    def _function(self, path: str, one: Operation, other: Operation) -> None:
        a, b = self._a.canon, self._b.canon
        held_a, held_b = a.attributes_of(one), b.attributes_of(other)
        self._ops.attributes(path, one, other, lambda name: "function attribute", _OF_THEIR_OWN)
        self._ops.op_location(path, one, other)
        types_a, types_b = _signature(self._a, held_a), _signature(self._b, held_b)
        if types_a is None or types_b is None:
            self._ops.attribute("signature", path, held_a.get("function_type"), held_b.get("function_type"))
        else:
            for number, (word, key) in enumerate((("argument", "arg_attrs"), ("result", "res_attrs"))):
                pairs = self._side_of_signature(path, word, types_a[number], types_b[number])
                dictionaries = (_dictionaries(self._a, held_a.get(key)), _dictionaries(self._b, held_b.get(key)))
                self._attributes_of_each(f"{path} {word}", pairs, *dictionaries)
        self._ops.function(path, one, other)

    def _side_of_signature(self, path: str, word: str, one: Sequence[int], other: Sequence[int]) -> Pairs:
        """Compare the types of arguments or of results, and return which belong together."""
        types_a, types_b = [self._a.canon.type(each) for each in one], [self._b.canon.type(each) for each in other]
        pairs = paired(types_a, types_b)
        for i, j in pairs:
            if types_a[i] != types_b[j]:
                before, after = self._a.describe.type(one[i]), self._b.describe.type(other[j])
                self._say("signature", f"{path} {word} {i}", before, after)
        here, there = {i for i, _ in pairs}, {j for _, j in pairs}
        for i, kind in enumerate(one):
            if i not in here:
                self._say("signature", f"{path} {word} {i}", self._a.describe.type(kind), None)
        for j, kind in enumerate(other):
            if j not in there:
                self._say("signature", f"{path} {word} {j}", None, self._b.describe.type(kind))
        return pairs

    def _attributes_of_each(
        self, path: str, pairs: Pairs, one: Sequence[Mapping[str, int]], other: Sequence[Mapping[str, int]]
    ) -> None:
        kind: DifferenceKind = "argument attribute" if path.endswith("argument") else "result attribute"
        joined = [(i, _at(one, i), _at(other, j)) for i, j in pairs]
        joined += [(i, each, {}) for i, each in enumerate(one) if i not in {i for i, _ in pairs}]
        joined += [(j, {}, each) for j, each in enumerate(other) if j not in {j for _, j in pairs}]
        for number, a, b in joined:
            for name in sorted({**a, **b}):
                self._ops.attribute(kind_of(name, kind), f"{path} {number} {name}", a.get(name), b.get(name))

    def _summary(self, side: Side, op: Operation) -> str:
        signature = _signature(side, side.canon.attributes_of(op))
        types = " -> ".join(map(side.describe.types, signature)) if signature else "a function"
        ops = [each for region in op.regions for block in region.blocks for each in block.operations]
        return f"{types}, {side.describe.ops(ops)}"

    def _say(self, kind: DifferenceKind, path: str, before: str | None, after: str | None) -> None:
        self._report(Difference(kind, path, before, after))


def _by_name(side: Side, block: Block) -> dict[str, Operation]:
    named: dict[str, Operation] = {}
    for op in block.operations:
        if is_function(side, op):
            index = side.canon.attributes_of(op).get("sym_name")
            value = side.canon.file.decode("attribute", index) if index is not None else None
            known = value is not None and value.name in ("string", "string_v1")
            named[side.canon.file.string(value.field("value")) if value and known else ""] = op
    return named


def _signature(side: Side, held: Mapping[str, int]) -> _Signature | None:
    """Return the types of arguments and results; ``None`` if the function has no type of a function."""
    index, file = held.get("function_type"), side.canon.file
    holder = file.decode("attribute", index) if index is not None else None
    if holder is None or holder.name != "type_v1":
        return None
    kind = file.decode("type", holder.field("value"))
    return (kind.field("inputs"), kind.field("outputs")) if kind and kind.name == "func_v1" else None


def _dictionaries(side: Side, index: int | None) -> list[dict[str, int]]:
    """Return the attributes of each argument or result; anything that is no list of dictionaries stands for none."""
    value = side.canon.file.decode("attribute", index) if index is not None else None
    if value is None or value.name not in ("array", "array_v1"):
        return []
    return [side.canon.dictionary(each) for each in value.field("elements")]


def _at(dictionaries: Sequence[Mapping[str, int]], index: int) -> Mapping[str, int]:
    return dictionaries[index] if index < len(dictionaries) else {}
