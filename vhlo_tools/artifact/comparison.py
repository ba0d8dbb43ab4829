"""Compare two artifacts, from their bytes alone: functions, signatures and ops."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, chain
from operator import ne
from typing import Final

from vhlo_tools.artifact.artifact import Artifact
from vhlo_tools.artifact.differences import DIFFERENCE_KINDS, Describer, Difference, DifferenceKind
from vhlo_tools.artifact.numbering import FileNumbering, Pairs, Script, ValueNumbering, align, common_prefix, paired
from vhlo_tools.bytecode import Block, Head, Operation, Region, function_types, program_name
from vhlo_tools.errors import MalformedArtifactError

# Compare the ops of two regions
#
# Ops are paired in two steps: first those that are equal except for operands and locations, and between these, those of
# the same name. The identity of values follows: two operands are equal if they are defined by paired ops or paired
# block arguments.

_CONSTANT: Final = "vhlo.constant_v1"
# If the ops that two programs do not share are no more than this, each is reported, else all of them in one difference.
_MOST_SINGLE: Final = 1000


class Side:
    def __init__(self, numbering: FileNumbering) -> None:
        self.numbering = numbering
        self.describe: Describer = Describer(numbering)

    def name(self, op: Operation | Head) -> str:
        """The name has its dialect and version."""
        return self.numbering.names[op.name]


def _values() -> array[int]:
    """Return an empty list of tokens, one for each value in scope."""
    return array("Q")


class Starts:
    """The first tokens of the values of a block, and the labels of these values."""

    __slots__ = ("_block", "_mark", "_path", "_side", "arguments", "ops")

    def __init__(self, side: Side, path: str, block: Block, arguments: int, ops: array[int], mark: str) -> None:
        self.arguments: int = arguments
        self.ops: array[int] = ops
        self._side = side
        self._path = path
        self._block = block
        self._mark = mark

    def label(self, token: int) -> str:
        if token < self.arguments + len(self._block.arguments):
            return f"{self._mark}{self._path}{' ' if self._path else ''}argument {token - self.arguments}"
        prefix = f"{self._mark}{self._path}{'/' if self._path else ''}"
        # The last op with this start: ops before it with the same start have no results.
        index = bisect_right(self.ops, token) - 1
        head = self._block.rows.head(index)
        number = f"#{token - self.ops[index]}" if len(head.results) > 1 else ""
        return f"{prefix}{index}:{program_name(self._side.name(head))}{number}"


class OpDiff:
    def __init__(
        self, before: Side, after: Side, report: Callable[[Difference], None], *, locations: bool = False
    ) -> None:
        self._a = before
        self._b = after
        self._report = report
        self._locations = locations
        # Corresponding values have the same token.
        self._token = 0
        self._starts: list[Starts] = []
        self._root = ""
        # The tokens of the values of the module, which functions may use.
        self._outer = (_values(), _values())

    def function(self, path: str, one: Operation, other: Operation) -> None:
        """Compare the contents of two functions, in modules that :meth:`module` has compared."""
        self._root = path
        if len(one.regions) != len(other.regions):
            self._say("op", f"{path} regions", str(len(one.regions)), str(len(other.regions)))
            return
        for a, b in zip(one.regions, other.regions, strict=True):
            of_a, of_b = (
                _values() if op.isolated else outer[:] for op, outer in zip((one, other), self._outer, strict=True)
            )
            self._region(path, a, b, of_a, of_b)

    def attributes(
        self,
        path: str,
        one: Operation | Head,
        other: Operation | Head,
        kind_of: Callable[[str], DifferenceKind],
        skipped: frozenset[str] = frozenset(),
    ) -> None:
        a, b = self._a.numbering, self._b.numbering
        if a.attributes_key(one) == b.attributes_key(other):
            return
        held_a, held_b = a.attributes_of(one), b.attributes_of(other)
        for name in sorted({**held_a, **held_b}.keys() - skipped):
            self.attribute(kind_of(name), f"{path} {name}", held_a.get(name), held_b.get(name), name)
        if a.opaque_key(one) != b.opaque_key(other):
            texts = (side.describe.properties(op) for side, op in ((self._a, one), (self._b, other)))
            self._say(kind_of(""), f"{path} properties", *texts)

    def attribute(self, kind: DifferenceKind, path: str, one: int | None, other: int | None, name: str = "") -> None:
        """One of the two attributes may be absent."""
        a, b = self._a, self._b
        if one is None or other is None:
            before = None if one is None else a.describe.attribute(one)
            after = None if other is None else b.describe.attribute(other)
            if before != after:
                self._say(kind, path, before, after)
        elif a.numbering.named(name, one) != b.numbering.named(name, other):
            before, after = a.describe.attribute(one), b.describe.attribute(other)
            if before == after:
                before, after = (f"{before} ({side.describe.kind(i)})" for side, i in ((a, one), (b, other)))
            self._say(kind, path, before, after)

    def arguments(self, path: str, one: Block, other: Block) -> Pairs:
        """Compare the arguments of two blocks, and return the corresponding positions."""
        types_a = [self._a.numbering.type(each.type) for each in one.arguments]
        types_b = [self._b.numbering.type(each.type) for each in other.arguments]
        pairs = paired(types_a, types_b)
        for i, j in pairs if self._locations else ():
            self._location(f"{path} argument {i}", one.arguments[i].location, other.arguments[j].location)
        return pairs

    def op_location(self, path: str, one: Operation, other: Operation) -> None:
        if self._locations:
            self._location(path, one.location, other.location)

    def module(self, path: str, one: Block, other: Block) -> None:
        """Compare the ops of two modules other than functions.

        Functions may use the values of these ops: the library's expansions move constants of other dialects out of
        functions.
        """
        self._root = path
        of_a, of_b = self._outer = (_values(), _values())
        self._compared(path, one, other, self._defined(path, one, other, of_a, of_b), of_a, of_b)

    def _say(self, kind: DifferenceKind, path: str, before: str | None, after: str | None) -> None:
        self._report(Difference(kind, path, before, after))

    def _location(self, path: str, one: int | None, other: int | None) -> None:
        """An unknown location may be written or omitted."""
        before = "unknown" if one is None else self._a.numbering.attribute(one)
        after = "unknown" if other is None else self._b.numbering.attribute(other)
        if before != after:
            texts = self._a.describe.location(one), self._b.describe.location(other)
            if texts != ("unknown", "unknown"):
                self._say("location", path, *texts)

    def _regions(self, path: str, one: Operation, other: Operation, of_a: array[int], of_b: array[int]) -> None:
        if len(one.regions) != len(other.regions):
            self._say("op", f"{path} regions", str(len(one.regions)), str(len(other.regions)))
            return
        for number, (a, b) in enumerate(zip(one.regions, other.regions, strict=True)):
            inner_a, inner_b = _values() if one.isolated else of_a, _values() if other.isolated else of_b
            starts = len(inner_a), len(inner_b)
            self._region(f"{path}/{number}", a, b, inner_a, inner_b)
            del inner_a[starts[0] :]
            del inner_b[starts[1] :]

    def _region(self, path: str, one: Region, other: Region, of_a: array[int], of_b: array[int]) -> None:
        if len(one.blocks) != len(other.blocks):
            self._say("op", f"{path} blocks", str(len(one.blocks)), str(len(other.blocks)))
            return
        # All values of a region are numbered before those in the regions of its ops, and blocks may use each other's
        # values.
        scripts = [self._defined(path, a, b, of_a, of_b) for a, b in zip(one.blocks, other.blocks, strict=True)]
        for a, b, script in zip(one.blocks, other.blocks, scripts, strict=True):
            self._compared(path, a, b, script, of_a, of_b)

    # Pairing of ops and values

    def _defined(self, path: str, one: Block, other: Block, of_a: array[int], of_b: array[int]) -> Script:
        """Pair the ops of two blocks, and assign tokens to the values that they define."""
        pairs = self.arguments(path, one, other)
        script = self._script(one, other, same_values=len(of_a) == len(of_b) and len(pairs) == len(one.arguments))
        partners = {j: i for i, j in script.pairs}
        starts_a = self._give(path, one, of_a, "")
        arguments = {j: starts_a.arguments + i for i, j in pairs}
        starts_b = self._give(path, other, _values(), "added ", side=self._b)
        of_b.extend([arguments.get(j, starts_b.arguments + j) for j in range(len(other.arguments))])
        of_b.extend(range(starts_a.ops[0], starts_a.ops[script.same]))
        rows_a, rows_b = one.rows, other.rows
        for j in range(script.same, len(rows_b)):
            i = partners.get(j)
            own = starts_b.ops[j]
            shared = len(rows_a.head(i).results) if i is not None else 0
            first = starts_a.ops[i] if i is not None else 0
            of_b.extend([first + k if k < shared else own + k for k in range(starts_b.ops[j + 1] - own)])
        return script

    def _give(self, path: str, block: Block, values: array[int], mark: str, side: Side | None = None) -> Starts:
        """Assign tokens to the values of a block, and record their labels."""
        side = side or self._a
        arguments, rows = self._token, block.rows
        counts = rows.kinds.result_counts
        first = arguments + len(block.arguments)
        # The first token of each op, and the end.
        ops = array("Q", accumulate([counts[head] for head in rows.heads], initial=first))
        values.extend(range(arguments, ops[-1]))
        # A gap of one, so that no two blocks have the same start.
        self._token = ops[-1] + 1
        # Relative to the function, which the path of the op that uses the value names.
        inner = path.removeprefix(self._root).removeprefix("/")
        starts = Starts(side, inner, block, arguments, ops, mark)
        self._starts.append(starts)
        return starts

    def _script(self, one: Block, other: Block, *, same_values: bool) -> Script:
        keys_a, keys_b = self._a.numbering.block(one), self._b.numbering.block(other)
        start = 0
        # While the values have equal numbers, operands help to find the first difference of the programs.
        if same_values:
            start = common_prefix(keys_a, keys_b)
            rows_a, rows_b = one.rows, other.rows
            operands = common_prefix(rows_a.operands, rows_b.operands)
            start = min(start, bisect_right(rows_a.starts, operands) - 1)
        rest = align(keys_a[start:], keys_b[start:]) or []
        script = Script(start)
        at_i = at_j = start
        for i, j in [*((start + i, start + j) for i, j in rest), (len(keys_a), len(keys_b))]:
            if i > at_i or j > at_j:
                self._between(one, other, range(at_i, i), range(at_j, j), script)
            if i < len(keys_a):
                script.pairs.append((i, j))
            at_i, at_j = i + 1, j + 1
        return script

    def _between(self, one: Block, other: Block, gone: range, come: range, script: Script) -> None:
        """Pair ops by their names, in ranges without equal ops."""
        rows_a, rows_b = one.rows, other.rows
        names_a = [self._a.name(rows_a.head(i)) for i in gone]
        names_b = [self._b.name(rows_b.head(j)) for j in come]
        pairs = align(names_a, names_b)
        if pairs is None or len(gone) + len(come) - 2 * len(pairs) > _MOST_SINGLE:
            script.unlike.append((gone, come))
            return
        at_i, at_j = 0, 0
        for i, j in [*pairs, (len(gone), len(come))]:
            script.pairs += self._replaced(one, other, gone[at_i:i], come[at_j:j])
            if i < len(gone):
                script.pairs.append((gone[i], come[j]))
            at_i, at_j = i + 1, j + 1

    def _replaced(self, one: Block, other: Block, gone: range, come: range) -> Pairs:
        """Pair ops with their replacements if the result types are equal, so that their users compare equal."""
        if len(gone) != len(come):
            return []
        a, b = self._a.numbering, self._b.numbering
        pairs = list(zip(gone, come, strict=True))
        rows_a, rows_b = one.rows, other.rows
        alike = (a.types(rows_a.head(i).results) == b.types(rows_b.head(j).results) for i, j in pairs)
        return pairs if all(alike) else []

    # Reporting

    def _compared(
        self, path: str, one: Block, other: Block, script: Script, of_a: array[int], of_b: array[int]
    ) -> None:
        keys_a, keys_b = self._a.numbering.block(one), self._b.numbering.block(other)
        rows_a, rows_b = one.rows, other.rows
        used = rows_a.operands[: rows_a.starts[script.same]]
        # Values with equal numbers may correspond to others, where blocks or regions before these differ.
        is_same = not any(map(ne, map(of_a.__getitem__, used), map(of_b.__getitem__, used)))
        holders = [k for k in rows_a.extras if k < script.same]
        for k in holders if is_same and not self._locations else range(script.same):
            a, b = rows_a.operation(k), rows_b.operation(k)
            if a.regions or self._locations or not self._same(a, b, of_a, of_b):
                self._op(self._path(self._a, path, k, a), a, b, of_a, of_b, alike=True)
        for i, j in script.merged(len(keys_a), len(keys_b)):
            if isinstance(i, range) or isinstance(j, range):
                self._unlike(path, one, other, i, j)
            elif i is None and j is not None:
                op = rows_b.operation(j)
                self._say("op", self._path(self._b, path, j, op), None, self._b.describe.op(op))
            elif j is None and i is not None:
                op = rows_a.operation(i)
                self._say("op", self._path(self._a, path, i, op), self._a.describe.op(op), None)
            elif i is not None and j is not None:
                a, b = rows_a.operation(i), rows_b.operation(j)
                alike = keys_a[i] == keys_b[j]
                if alike and not a.regions and not self._locations and self._same(a, b, of_a, of_b):
                    continue
                self._op(self._path(self._a, path, i, a), a, b, of_a, of_b, alike=alike)

    def _same(self, a: Operation, b: Operation, of_a: Sequence[int], of_b: Sequence[int]) -> bool:
        return [of_a[n] for n in a.operands] == [of_b[n] for n in b.operands]

    def _op(self, path: str, a: Operation, b: Operation, of_a: array[int], of_b: array[int], *, alike: bool) -> None:
        if self._a.name(a) != self._b.name(b):
            self._say("op", path, self._a.describe.op(a), self._b.describe.op(b))
        elif not alike:
            is_constant = self._a.name(a) == _CONSTANT
            self.attributes(path, a, b, lambda name: "constant" if is_constant and name == "value" else "op")
            if self._a.numbering.types(a.results) != self._b.numbering.types(b.results):
                self._say("op", f"{path} results", self._a.describe.types(a.results), self._b.describe.types(b.results))
            if a.successors != b.successors:
                self._say("op", f"{path} successors", str(a.successors), str(b.successors))
        if not self._same(a, b, of_a, of_b):
            before, after = self._operands(a.operands, of_a), self._operands(b.operands, of_b)
            self._say("op", f"{path} operands", before, after)
        self.op_location(path, a, b)
        if a.regions or b.regions:
            self._regions(path, a, b, of_a, of_b)

    def _unlike(self, path: str, one: Block, other: Block, gone: object, come: object) -> None:
        rows_a, rows_b = one.rows, other.rows
        ops_a = [rows_a.head(i) for i in gone] if isinstance(gone, range) else []
        ops_b = [rows_b.head(j) for j in come] if isinstance(come, range) else []
        start = gone.start if isinstance(gone, range) else 0
        where = f"{path}/{start} and following"
        self._say("op", where, self._a.describe.ops(ops_a), self._b.describe.ops(ops_b))

    def _path(self, side: Side, path: str, index: int, op: Operation) -> str:
        return f"{path}/{index}:{program_name(side.name(op))}"

    def _operands(self, operands: Sequence[int], tokens: Sequence[int]) -> str:
        return f"({', '.join(self._label(tokens[number]) for number in operands)})"

    def _label(self, token: int) -> str:
        """The label is the op that defines the value, with its position."""
        starts = self._starts[bisect_right(self._starts, token, key=lambda each: each.arguments) - 1]
        return starts.label(token)


# Compare the functions of two programs: their presence, signatures, attributes and ops

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


# Compare two artifacts, from their bytes alone
#
# The meaning of the bytes is compared, independent of the layout of the tables. The order of functions has no meaning.

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
