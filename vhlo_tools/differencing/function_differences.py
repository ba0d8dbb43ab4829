"""Compare the functions of two programs: their presence, signatures, attributes and ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final

from vhlo_tools.bytecode import Block, Operation, function_types
from vhlo_tools.differencing.alignment import Pairs, paired
from vhlo_tools.differencing.difference import Difference, DifferenceKind
from vhlo_tools.differencing.op_differences import OpDiff, Side

_FUNCTION: Final = "vhlo.func_v"
_OF_THEIR_OWN: Final = frozenset({"sym_name", "function_type", "arg_attrs", "res_attrs"})
# The attributes that declare aliased and donated buffers, on arguments or on the module.
_ALIASING: Final[dict[str, DifferenceKind]] = {
    "tf.aliasing_output": "alias",
    "mhlo.input_output_alias": "alias",
    "jax.buffer_donor": "donor",
    "mhlo.buffer_donor": "donor",
}

_Signature = tuple[tuple[int, ...], tuple[int, ...]]


def is_function(side: Side, op: Operation) -> bool:
    return side.name(op).startswith(_FUNCTION)


def kind_of(name: str, otherwise: DifferenceKind) -> DifferenceKind:
    return _ALIASING.get(name, otherwise)


class FunctionDiff:
    def __init__(self, before: Side, after: Side, ops: OpDiff, report: Callable[[Difference], None]) -> None:
        self._a = before
        self._b = after
        self._ops = ops
        self._report = report

    def functions(self, one: Block, other: Block) -> None:
        """Compare functions of equal names, and renamed functions by their contents."""
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
        """Find functions that differ only in their names, and record the renaming in the second program's numbering."""
        gone = {name: op for name, op in held_a.items() if name not in held_b}
        come = {name: op for name, op in held_b.items() if name not in held_a}
        renamed: dict[str, str] = {}
        known: dict[object, list[str]] = {}
        for name in reversed(come):
            known.setdefault(self._print_of(self._b, come[name]), []).append(name)
        for name in gone:
            if same := known.get(self._print_of(self._a, gone[name])):
                renamed[name] = same.pop()
        numbering = self._b.numbering
        numbering.renamed = {
            numbering.string(new.encode()): numbering.string(old.encode()) for old, new in renamed.items()
        }
        numbering.forget_blocks()
        for old, new in renamed.items():
            self._say("function attribute", f"@{old} sym_name", f'"{old}"', f'"{new}"')
        return renamed

    def _print_of(self, side: Side, op: Operation) -> object:
        """Return a key of a function's contents, without its name and the names of the functions that it calls."""
        numbering = side.numbering
        held = {
            name: numbering.attribute(index)
            for name, index in numbering.attributes_of(op).items()
            if name != "sym_name"
        }
        blocks = [block for region in op.regions for block in region.blocks]
        inner = tuple(numbering.block(block, blind=True).tobytes() for block in blocks)
        uses = tuple(block.rows.operands.tobytes() for block in blocks)
        return frozenset(held.items()), inner, uses

    def _function(self, path: str, one: Operation, other: Operation) -> None:
        a, b = self._a.numbering, self._b.numbering
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
        """Compare the types of arguments or of results, and return the corresponding positions."""
        types_a, types_b = (
            [self._a.numbering.type(each) for each in one],
            [self._b.numbering.type(each) for each in other],
        )
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
        signature = _signature(side, side.numbering.attributes_of(op))
        types = " -> ".join(map(side.describe.types, signature)) if signature else "a function"
        heads = (block.rows.kinds_of_ops for region in op.regions for block in region.blocks)
        return f"{types}, {side.describe.ops(chain.from_iterable(heads))}"

    def _say(self, kind: DifferenceKind, path: str, before: str | None, after: str | None) -> None:
        self._report(Difference(kind, path, before, after))


def _by_name(side: Side, block: Block) -> dict[str, Operation]:
    named: dict[str, Operation] = {}
    for op in block.operations:
        if is_function(side, op):
            named[side.numbering.file.text(side.numbering.attributes_of(op).get("sym_name")) or ""] = op
    return named


def _signature(side: Side, held: Mapping[str, int]) -> _Signature | None:
    """Return ``None`` if the function has no function type."""
    return function_types(side.numbering.file, held.get("function_type"))


def _dictionaries(side: Side, index: int | None) -> list[Mapping[str, int]]:
    """Return the attributes of each argument or result; empty if ``index`` is not a list of dictionaries."""
    file = side.numbering.file
    return [file.dictionary(each) or {} for each in file.elements(index) or ()]


def _at(dictionaries: Sequence[Mapping[str, int]], index: int) -> Mapping[str, int]:
    return dictionaries[index] if index < len(dictionaries) else {}
