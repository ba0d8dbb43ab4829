"""Values of a narrow element type, held in a wider type throughout a module."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import CALLEES, Operation, functions_of
from vhlo_tools.conversion.expansion.expanding import WholeModule
from vhlo_tools.conversion.patterns import apply_patterns, patterns_of
from vhlo_tools.conversion.rewriter import Rewriter, retype, values_of
from vhlo_tools.conversion.tensor import Tensor
from vhlo_tools.records import dataclass

# Constants of element types that the bindings cannot give as numpy arrays, read from their printed form
#
# MLIR prints at most a hundred elements as numbers, floats that are not finite as their bits, and more elements as a
# string of bytes, one for each element. A splat is printed as its one element.
#
# Source: ``printDenseElementsAttr`` in ``mlir/lib/IR/AsmPrinter.cpp`` of llvm/llvm-project.

_BYTES: Final = re.compile(r'dense<"0x([0-9A-Fa-f]*)">')
_NUMBER: Final = re.compile(r"[-+.0-9a-zA-Z]+")


def elements_of_constant(attribute: Any, kind: Any) -> np.ndarray[Any, Any]:
    """Elements have at most 8 bits; of a splat, only the one element is returned."""
    # The type follows after the last colon.
    text = str(attribute).rpartition(" : ")[0]
    if held := _BYTES.fullmatch(text):
        return np.frombuffer(bytes.fromhex(held[1]), np.uint8).view(kind)
    words = _NUMBER.findall(text.removeprefix("dense"))
    found = np.array([0 if word.startswith("0x") else float(word) for word in words], np.float64).astype(kind)
    for at, word in enumerate(words):
        if word.startswith("0x"):
            found[at] = np.array(int(word, 16), np.uint8).view(kind)
    return found


# The regions of reductions

#: Ops that combine two values into one.
_COMBINING: Final = frozenset(
    f"stablehlo.{name}" for name in ("add", "and", "maximum", "minimum", "multiply", "or", "xor")
)


def single_op(op: Operation) -> str:
    """An empty string if the region is not a single op."""
    block = op.regions[0].blocks[0]
    ops = list(block.operations)
    if len(ops) != 2 or str(ops[0].operation.name) not in _COMBINING:
        return ""
    return str(ops[0].operation.name) if set(ops[0].operands) == set(block.arguments) else ""


# Values of a narrow element type, held in a wider type throughout a module
#
# A *held* value is the same number in a wider type. All values of the narrow type change their types at once, also
# within tuples, functions, control flow and the regions of ops. By its name, an op
#
# - only changes its types, if it moves elements, selects among them or passes them on;
# - is rewritten by its rule, if it computes: usually the op itself in the wider type, and then what makes its results
#   values of the narrow type again;
# - is refused, if it has no rule. Then nothing changes in the module.
#
# The types of a public function are known to those who call it. Its arguments and results of a narrow type are refused,
# or become integers that store these values if the caller allows it (``--allow-signature-change``).


@dataclass(frozen=True, slots=True)
class HeldType:
    """A narrow element type, and the wider type that holds its values."""

    element: str
    numpy: Any
    held: str
    rounded: Callable[[Tensor], Tensor]  # makes results in the type ``held`` values of the narrow type again
    #: converts a tensor of any other type, as a conversion to the narrow type does
    converted: Callable[[Tensor], Tensor]
    stored: str  # type of integers that store the values in the signature of a public function
    encoded: Callable[[Tensor], Tensor]  # integers that store held values
    decoded: Callable[[Tensor], Tensor]  # held values that integers store
    feed: str  # how to make these integers of an array of the narrow type, in numpy
    read: str  # how to make an array of the narrow type of these integers, in numpy


@dataclass(frozen=True, slots=True)
class Narrow:
    """The operands and results of an op, or the arguments and results of a function, that were of a narrow type."""

    operands: tuple[HeldType | None, ...]  # how each is held; None if it was of another type
    results: tuple[HeldType | None, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """How an op is rewritten that has operands, results or arguments of its regions of a narrow type."""

    #: builds results in held types, from operands that are held; None if only types change
    build: Callable[[Rewriter, Narrow], Sequence[Any]] | None = None
    check: Callable[[Operation, Narrow], str | None] | None = None  # why the op cannot be rewritten; None if it can
    body_remains: bool = False  # ops in its regions only change their types


#: The rules by the names of ops of StableHLO.
Rules = Mapping[str, Rule]

#: Ops of StableHLO that have the same effect on held values: they move elements or pass them on, choose among them, or
#: compare them, or have the narrow type in their regions only.
_SAME: Final = (
    *("all_gather", "all_to_all", "collective_broadcast", "collective_permute"),
    *("broadcast", "broadcast_in_dim", "concatenate", "dynamic_broadcast_in_dim", "dynamic_gather", "dynamic_pad"),
    *("dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "gather", "get_dimension_size", "pad"),
    *("real_dynamic_slice", "reshape", "reverse", "set_dimension_size", "slice", "transpose"),
    *("case", "get_tuple_element", "if", "optimization_barrier", "return", "tuple", "while"),
    *("map", "reduce", "reduce_window", "scatter", "select_and_scatter", "sort"),
    *("clamp", "compare", "maximum", "minimum", "select"),
)
_RULES: Final[Rules] = {
    **{f"stablehlo.{name}": Rule() for name in _SAME},
    **{name: Rule() for name in ("func.call", "func.return")},
    **{f"sdy.{name}": Rule() for name in ("manual_computation", "return", "sharding_constraint")},
}
#: Why other ops are refused.
_OTHERS: Final = {
    "stablehlo.composite": "a consumer that implements the composite by its name expects {element}",
    "stablehlo.custom_call": "the target of the custom call expects {element}",
    "stablehlo.infeed": "what feeds it sends {element}",
    "stablehlo.outfeed": "what reads it expects {element}",
    "stablehlo.recv": "what sends to it sends {element}",
    "stablehlo.send": "what receives it expects {element}",
}


def rounded(rewriter: Rewriter, values: Sequence[Any], narrow: Narrow) -> list[Any]:
    return [
        kind.rounded(Tensor(rewriter, value)).value if kind else value
        for value, kind in zip(values, narrow.results, strict=True)
    ]


def computed(rewriter: Rewriter, narrow: Narrow) -> list[Any]:
    """The op itself on held values, with its results rounded."""
    op = rewriter.op
    return rounded(rewriter, rewriter.make_like(list(op.operands), [each.type for each in op.results]), narrow)


def constant(rewriter: Rewriter, narrow: Narrow) -> list[Any]:
    (kind,) = narrow.results
    assert kind is not None
    type_ = rewriter.op.results[0].type
    numbers = elements_of_constant(rewriter.op.attributes["value"], kind.numpy).astype(_NUMPY[kind.held])
    return [rewriter.dense(type_, numbers)]


_NUMPY: Final = {"i8": np.int8, "ui8": np.uint8, "f32": np.float32, "f64": np.float64}


def change_elements(whole: WholeModule, kinds: Iterable[HeldType], rules: Rules) -> None:
    """Changes nothing if the module has no such values, or if an op or a function is refused."""
    types = _Types({kind.element: kind for kind in kinds})
    if any(map(types.mentions, whole.types())):
        _Change(whole, types, {**_RULES, **rules}).run()


class _Types:
    def __init__(self, kinds: Mapping[str, HeldType]) -> None:
        self._kinds = kinds
        self._mentioned: dict[Any, str] = {}

    def kind(self, type_: Any) -> HeldType | None:
        """``None`` if the type is no tensor of a narrow type."""
        return self._kinds.get(str(getattr(type_, "element_type", "")))

    def mentions(self, type_: Any) -> str:
        """The narrow type that a type is, or mentions; an empty string if there is none."""
        if type_ not in self._mentioned:
            words = set(re.split(r"[<>,:\s]+", str(type_)))
            # An element follows the last "x" of the sizes; the names of floats have none.
            elements = words | {word.rpartition("x")[2] for word in words}
            self._mentioned[type_] = next((element for element in self._kinds if element in elements), "")
        return self._mentioned[type_]


class _Change:
    def __init__(self, whole: WholeModule, types: _Types, rules: Rules) -> None:
        self._whole = whole
        self._types = types
        self._rules = rules
        self._plan: list[tuple[Operation, Rule, Narrow]] = []
        # By the first result: the hash of an op in the bindings is one of its contents, which change.
        self._rewritten: dict[Any, tuple[Callable[[Rewriter, Narrow], Sequence[Any]], Narrow]] = {}
        self._signatures: dict[str, Narrow] = {}
        self._refused = False

    def run(self) -> None:
        """Nothing is changed if any op is refused."""
        provider, module = self._whole.provider, self._whole.module
        remaining: set[Any] = set()
        for op in provider.walk(module):
            if op in remaining:
                continue
            if str(op.name) == "func.func":
                self._read_function(op)
            elif self._read(op).body_remains:
                remaining.update(each for each in provider.walk(op) if each != op)
        if self._refused:
            return
        with module.context, module.operation.location:
            self._note_types()
            retype(provider, module, self._held)
            self._rewrite()
            self._store_signatures()

    def _held(self, type_: Any) -> Any:
        kind = self._types.kind(type_)
        if kind is None:
            return type_
        ir = self._whole.provider.ir
        return ir.RankedTensorType.get(type_.shape, ir.Type.parse(kind.held))

    # The plan

    def _refuse(self, op: Operation, reason: str) -> None:
        self._refused = True
        self._whole.refuse(op, reason)

    def _read(self, op: Operation) -> Rule:
        values = [*op.operands, *values_of(op)]
        mentioned = next(filter(None, (self._types.mentions(value.type) for value in values)), "")
        if not mentioned:
            return Rule()
        name = str(op.name)
        rule = self._rules.get(name)
        narrow = Narrow(*(tuple(self._types.kind(each.type) for each in held) for held in (op.operands, op.results)))
        if reason := self._reason(op, rule, narrow, mentioned, values):
            self._refuse(op, reason)
        elif rule is not None:
            self._plan.append((op, rule, narrow))
            if rule.build:
                self._rewritten[op.results[0]] = rule.build, narrow
        return rule or Rule()

    def _reason(
        self, op: Operation, rule: Rule | None, narrow: Narrow, element: str, values: Sequence[Any]
    ) -> str | None:
        name = str(op.name)
        if rule is None:
            why = _OTHERS.get(name, "no rule says how to compute it on wider values of {element}")
            return f"{name}: {why.format(element=element)}"
        for value in values:
            if self._types.mentions(value.type) and not self._can_be_held(value.type):
                return f"{name} has a value of {value.type}: only plain tensors of {element} can be held in wider types"
        if name == "stablehlo.constant" and self._whole.provider.is_in_resource(op):
            return f"{name}: its elements are in a resource"
        found = rule.check(op, narrow) if rule.check else None
        return f"{name}: {found}" if found else None

    def _can_be_held(self, type_: Any) -> bool:
        ir = self._whole.provider.ir
        if isinstance(type_, ir.TupleType):
            each = [type_.get_type(index) for index in range(type_.num_types)]
            return all(self._can_be_held(item) for item in each if self._types.mentions(item))
        return isinstance(type_, ir.RankedTensorType) and self._types.kind(type_) is not None and not type_.encoding

    def _read_function(self, function: Operation) -> None:
        """For functions that others may call."""
        of_function = function.attributes["function_type"].value
        listed = (list(of_function.inputs), list(of_function.results))
        mentioned = [(type_, "argument", at) for at, type_ in enumerate(listed[0]) if self._types.mentions(type_)]
        mentioned += [(type_, "result", at) for at, type_ in enumerate(listed[1]) if self._types.mentions(type_)]
        has_body, held = bool(len(function.regions[0].blocks)), function.attributes
        is_private = "sym_visibility" in held and str(held["sym_visibility"].value) == "private"
        if not mentioned or (has_body and is_private):
            return
        name = str(function.attributes["sym_name"].value)
        stated = ", ".join(f"{what} {at} of {type_}" for type_, what, at in mentioned)
        if not has_body:
            self._refuse(function, f"@{name} has {stated}, and no body that could be rewritten")
        elif not all(self._can_be_held(type_) and self._types.kind(type_) for type_, _, _ in mentioned):
            self._refuse(function, f"@{name} has {stated}: only plain tensors can be stored as integers")
        elif not self._whole.policy.signature_change:
            self._refuse(
                function,
                f"@{name} has {stated}, on which its callers rely: --allow-signature-change "
                "(allow_signature_change=True) stores them as integers",
            )
        self._signatures[name] = Narrow(*(tuple(map(self._types.kind, types)) for types in listed))

    # The changes

    def _note_types(self) -> None:
        """Only the types of these ops change; the others are noted as they are rewritten."""
        for op, rule, narrow in self._plan:
            kinds = dict.fromkeys(kind for kind in narrow.results if kind)
            if rule.build is None and kinds:
                types = ", ".join(f"{kind.held} in place of {kind.element}" for kind in kinds)
                self._whole.notes.add(op, f"{op.name} was rewritten to {op.name} of {types}", "type")

    def _rewrite(self) -> None:
        # None of them contains another one.
        ops = [op for op, rule, _ in self._plan if rule.build or (self._signatures and str(op.name) == "func.call")]
        apply_patterns(
            self._whole.provider,
            self._whole.module,
            patterns_of(dict.fromkeys((str(op.name) for op in ops), self._replacement), required=True),
            self._whole.notes,
            retyping=True,
            ops=ops,
        )

    def _replacement(self, rewriter: Rewriter) -> Sequence[Any] | None:
        op = rewriter.op
        if str(op.name) == "func.call":
            signature = self._signatures.get(str(op.attributes[CALLEES["func.call"]].value))
            return self._call(rewriter, signature) if signature else None
        found = self._rewritten.get(op.results[0])
        return found[0](rewriter, found[1]) if found else None

    def _stored(self, rewriter: Rewriter, type_: Any, kind: HeldType) -> Any:
        return rewriter.tensor(rewriter.shape(type_), rewriter.type(kind.stored))

    def _call(self, rewriter: Rewriter, signature: Narrow) -> list[Any]:
        """Encodes the operands of a function whose signature changes, and decodes its results."""
        op = rewriter.op
        types = [
            self._stored(rewriter, result.type, kind) if kind else result.type
            for result, kind in zip(op.results, signature.results, strict=True)
        ]
        values = rewriter.make_like(_encoded(rewriter, op.operands, signature.operands), types)
        return [
            kind.decoded(Tensor(rewriter, value)).value if kind else value
            for value, kind in zip(values, signature.results, strict=True)
        ]

    def _store_signatures(self) -> None:
        ir = self._whole.provider.ir
        for name, function in functions_of(self._whole.module).items():
            signature = self._signatures.get(name)
            if signature is None:
                continue
            (block,) = function.regions[0].blocks
            *_, end = block.operations
            before_end = Rewriter(self._whole.provider, end.operation, {})
            for at, value in enumerate(_encoded(before_end, end.operands, signature.results)):
                end.operation.operands[at] = value
            first = Rewriter(self._whole.provider, block.operations[0].operation, {})
            for argument, kind in zip(block.arguments, signature.operands, strict=True):
                if kind:
                    argument.set_type(self._stored(first, argument.type, kind))
                    made = len(first.made)
                    value = kind.decoded(Tensor(first, argument)).value
                    argument.replace_all_uses_except(value, first.made[made:])
            types = ([each.type for each in values] for values in (block.arguments, end.operands))
            function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
            for at, kind in enumerate(signature.operands):
                if kind:
                    takes = f"argument {at} of @{name} takes {kind.stored} in place of {kind.element}: give {kind.feed}"
                    self._whole.notes.add(function, takes, "type")
            for at, kind in enumerate(signature.results):
                if kind:
                    gives = f"result {at} of @{name} is {kind.stored} in place of {kind.element}: read {kind.read}"
                    self._whole.notes.add(function, gives, "type")


def _encoded(rewriter: Rewriter, values: Iterable[Any], kinds: Iterable[HeldType | None]) -> list[Any]:
    return [
        kind.encoded(Tensor(rewriter, value)).value if kind else value
        for value, kind in zip(values, kinds, strict=True)
    ]
