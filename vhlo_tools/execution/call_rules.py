"""Rules for custom calls that run without a handler: operands, results and attributes.

XLA checks little of a custom call: on a wrong number of operands, a wrong type or a wrong attribute it crashes or reads
memory that is not the call's. Therefore :mod:`vhlo_tools.execution.known_targets` lists the targets that are known; all
other calls are refused. All engines check a call by the same rules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Operation, class_of, elements_of, functions_of, named_attributes
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.handlers import CustomCall, plain_attribute
from vhlo_tools.execution.values import ArgumentType, TokenType, TupleType, ValueType, parse_value_type, type_of_array
from vhlo_tools.records import dataclass

# Patterns for the types of operands and results, whose sizes depend on each other
#
# A pattern is written as words: an element type, and the dimensions. ``T * m n`` is a tensor of the element type ``T``
# with any batch dimensions, ``m`` rows and ``n`` columns.
#
# - Element types: ``T``, the same wherever it occurs; ``real`` and ``complex``, the real and the complex type of the
#   precision of ``T``; any other word is an element type itself.
# - Dimensions: ``*`` stands for batch dimensions, the same wherever it occurs, and ``~`` for dimensions of which only
#   the number is the same. A name is one size, the same wherever it occurs; ``min(m,n)`` and ``n-1`` are computed.

_REAL: Final = {"complex<f32>": "f32", "complex<f64>": "f64"}
_COMPLEX: Final = {"f32": "complex<f32>", "f64": "complex<f64>"}
_EXPRESSION: Final = re.compile(r"min\((\w+),(\w+)\)|(\w+)-1")


@dataclass(slots=True)
class Bindings:
    """Values of the names in the patterns of one call, as far as its types are known."""

    element: str | None = None  # what T stands for
    batch: tuple[int, ...] | None = None  # what * stands for
    rank: int | None = None  # number of the dimensions that ~ stands for
    sizes: dict[str, int] = field(default_factory=dict)

    def size(self, dimension: str) -> int | None:
        found = _EXPRESSION.fullmatch(dimension)
        if found is None:
            return int(dimension) if dimension.isdecimal() else self.sizes.get(dimension)
        first, second, reduced = (name and self.sizes.get(name) for name in found.groups())
        if found[3]:
            return None if reduced is None else int(reduced) - 1
        return None if first is None or second is None else min(int(first), int(second))

    def holds(self, condition: str) -> bool:
        """Evaluate a condition such as ``k <= n``; :class:`ValueError` if a size in it is not known."""
        left, sign, right = condition.split()
        sizes = self.size(left), self.size(right)
        if sizes[0] is None or sizes[1] is None or sign not in ("<=", "=="):
            raise ValueError(f"{condition} has no value")
        return sizes[0] <= sizes[1] if sign == "<=" else sizes[0] == sizes[1]


@dataclass(frozen=True, slots=True)
class Pattern:
    element: str
    leading: str  # "*", "~" or empty
    dimensions: tuple[str, ...]

    @staticmethod
    @cache
    def parse(text: str) -> Pattern:
        element, *dimensions = text.split()
        leading = dimensions.pop(0) if dimensions[:1] in (["*"], ["~"]) else ""
        return Pattern(element, leading, tuple(dimensions))

    @property
    def is_matrix(self) -> bool:
        return len(self.dimensions) == 2

    def matches(self, type_: ArgumentType, elements: Sequence[str] | None, bindings: Bindings) -> bool:
        """Match a type, and complete ``bindings`` from it."""
        if self.element == "T" and bindings.element is None and (elements is None or type_.element in elements):
            bindings.element = type_.element
        if type_.element not in self._elements(bindings) or not type_.is_static:
            return False
        shape = type_.static_shape
        leading = len(shape) - len(self.dimensions)
        if leading < 0 or (leading and not self.leading):
            return False
        if self.leading == "*":
            bindings.batch = shape[:leading] if bindings.batch is None else bindings.batch
            if bindings.batch != shape[:leading]:
                return False
        elif self.leading == "~":
            bindings.rank = leading if bindings.rank is None else bindings.rank
            if bindings.rank != leading:
                return False
        for dimension, size in zip(self.dimensions, shape[leading:], strict=True):
            if bindings.size(dimension) is None and dimension.isidentifier():
                bindings.sizes[dimension] = size
            if bindings.size(dimension) != size:
                return False
        return True

    def described(self, elements: Sequence[str] | None, bindings: Bindings) -> str:
        """The types that match, for messages, such as ``f32[..., 4, n]``."""
        found = self._elements(bindings)
        if not found:
            found = tuple(elements or ("any element type",)) if self.element == "T" else (f"the {self.element} type",)
        words = [
            str(dimension if (size := bindings.size(dimension)) is None else size) for dimension in self.dimensions
        ]
        if self.leading == "*" and bindings.batch is not None:
            words = [*map(str, bindings.batch), *words]
        elif self.leading:
            words = ["...", *words]
        return f"{' or '.join(found)}[{', '.join(words)}]"

    def _elements(self, bindings: Bindings) -> tuple[str, ...]:
        if self.element not in ("T", "real", "complex"):
            return (self.element,)
        if bindings.element is None:
            return ()
        related: Mapping[str, str] = {"real": _REAL, "complex": _COMPLEX}.get(self.element, {})
        return (related.get(bindings.element, bindings.element),)


# Static form of a custom call, for checks before it runs


@dataclass(frozen=True, slots=True)
class CallForm:
    target: str
    attributes: Mapping[str, Any]  # plain values, as in CustomCall
    operands: tuple[ValueType | str, ...]  # as text where Python cannot represent values of the type
    results: tuple[ValueType | str, ...]  # likewise; the elements of a single tuple separately
    #: (attribute, entry of a dictionary) -> type as MLIR prints it, where it is known
    entry_types: Mapping[tuple[str, str], str]
    is_tuple: bool = False  # the results are the elements of one tuple
    #: per called computation that compares the first two of four arguments: element type, and GT or LT; else None
    comparisons: tuple[tuple[str, str] | None, ...] = ()


def form_of_op(op: Operation) -> CallForm:
    attributes = dict(named_attributes(op.attributes))
    results = tuple(_type(str(each.type)) for each in op.results)
    outer = results[0] if len(results) == 1 else None
    if isinstance(outer, TupleType):
        results = outer.parts
    return CallForm(
        target=str(attributes["call_target_name"].value),
        attributes={name: plain_attribute(each) for name, each in attributes.items() if name != "call_target_name"},
        operands=tuple(_type(str(each.type)) for each in op.operands),
        results=results,
        entry_types={
            (name, entry): str(value.type)
            for name, each in attributes.items()
            if class_of(each) == "DictAttr"
            for entry, value in named_attributes(each)
            if class_of(value) in ("BoolAttr", "FloatAttr", "IntegerAttr")
        },
        is_tuple=isinstance(outer, TupleType),
        comparisons=tuple(_compared(op, str(each.value)) for each in elements_of(attributes["called_computations"]))
        if "called_computations" in attributes
        else (),
    )


def _compared(op: Operation, name: str) -> tuple[str, str] | None:
    """Element type and direction, if a called computation only compares the first two of its four arguments."""
    module: Any = op.operation
    while module.parent is not None:
        module = module.parent
    function = functions_of(module).get(name)
    if function is None or len(function.regions[0].blocks) != 1:
        return None
    block = function.regions[0].blocks[0]
    types = [str(each.type) for each in block.arguments]
    end = block.operations[len(block.operations) - 1]
    if len(types) != 4 or len(set(types[:2])) != 1 or types[2:] != ["tensor<i32>"] * 2 or len(end.operands) != 1:
        return None
    arguments = {each: str(number) for number, each in enumerate(block.arguments)}
    direction = _COMPARISONS.get(_expression(end.operands[0], arguments))
    return None if direction is None else (types[0][len("tensor<") : -1], direction)


def _expression(value: Any, known: dict[Any, str]) -> str:
    """Canonical text of a value in terms of the arguments, independent of the order of the ops."""
    if (found := known.get(value)) is not None:
        return found
    op = value.owner
    operands = [_expression(each, known) for each in op.operands]
    name = str(op.name).removeprefix("stablehlo.")
    if name == "compare":
        name = str(op.attributes["comparison_direction"]).rstrip(">").split()[-1]
    elif name == "constant":
        name = str(op.attributes["value"])
    elif name == "xor":
        operands.sort()
    elif name == "mhlo.bitcast":
        name = "bitcast_convert"  # the values are scalars
    elif name not in ("bitcast_convert", "select"):
        name = f"unknown {name}"
    known[value] = f"{name}({', '.join(operands)})"
    return known[value]


def _ordered(argument: int) -> str:
    """The bits of a float as an integer in its total order, as XLA writes that."""
    bits = f"bitcast_convert({argument})"
    flipped = ", ".join(sorted((bits, "dense<2147483647> : tensor<i32>()")))
    return f"select(LT({bits}, dense<0> : tensor<i32>()), xor({flipped}), {bits})"


#: The direction of a comparison of the first two arguments, by its expression: of floats, and of f32 in total order.
_COMPARISONS: Final = {
    f"{direction}({one}, {other})": direction
    for direction in ("GT", "LT")
    for one, other in (("0", "1"), (_ordered(0), _ordered(1)))
}


def form_of_call(call: CustomCall, arrays: Sequence[np.ndarray[Any, Any]]) -> CallForm:
    """The called computations were checked in the program, which a handler does not have."""
    operands: list[ArgumentType | str] = [type_of_array(each) or str(each.dtype) for each in arrays]
    attributes = {name: each for name, each in call.attributes.items() if name != "called_computations"}
    return CallForm(call.target, attributes, tuple(operands), call.results, {})


def _type(text: str) -> ValueType | str:
    try:
        return parse_value_type(text)
    except EngineError:
        return text


# Configurations of custom calls: rules for their attributes

_BACKEND: Final = "backend_config"
_MHLO_BACKEND: Final = "mhlo.backend_config"
_ORIGINAL, _TYPED = 1, 4
#: The types of entries that are numbers or booleans; all other entries are letters, stored as ``ui8``.
_TYPES: Final = {"bool": "i1", "i32": "i32", "i64": "i64"}
_LETTER_TYPE: Final = "ui8"


class Configuration:
    """Any attributes: they do not affect the result."""

    __slots__ = ()

    def reason_against(self, form: CallForm) -> str | None:
        """What is wrong with the attributes of a call; ``None`` if they are right."""
        return None

    def values(self, form: CallForm) -> Mapping[str, Any]:
        """The entries that types depend on, of a call whose attributes are right."""
        return {}


class _Empty(Configuration):
    def reason_against(self, form: CallForm) -> str | None:
        if form.attributes.get("api_version", _ORIGINAL) not in (1, 2, 3, 4):
            return f"its api_version is {form.attributes['api_version']}, expected 1, 2, 3 or 4"
        for name in (_BACKEND, _MHLO_BACKEND):
            if form.attributes.get(name):
                return f"its {name} is {form.attributes[name]!r}, expected none"
        return None


ANY: Final = Configuration()
EMPTY: Final = _Empty()


@dataclass(frozen=True, slots=True)
class FrontendAttribute(Configuration):
    """An annotation with its meaning in ``mhlo.frontend_attributes``."""

    name: str

    def reason_against(self, form: CallForm) -> str | None:
        found = form.attributes.get("mhlo.frontend_attributes")
        if isinstance(found, Mapping) and isinstance(found.get(self.name), str):
            return None
        return f"its mhlo.frontend_attributes have no {self.name}"


@dataclass(frozen=True, slots=True)
class TextConfiguration(Configuration):
    pattern: str
    meaning: str  # form of the string, for messages
    is_optional: bool = False

    def reason_against(self, form: CallForm) -> str | None:
        if self.is_optional and not form.attributes.get(_BACKEND):
            return EMPTY.reason_against(form)
        version, text = form.attributes.get("api_version", _ORIGINAL), form.attributes.get(_BACKEND)
        if version not in (1, 2, 3):
            return f"its api_version is {version}, expected 1, 2 or 3"
        if form.attributes.get(_MHLO_BACKEND):
            return f"it has a {_MHLO_BACKEND}, expected none"
        if not isinstance(text, str) or re.fullmatch(self.pattern, text) is None:
            found = "missing" if text is None else repr(text)
            return f"its {_BACKEND} is {found}, expected {self.meaning}"
        return None


@dataclass(frozen=True, slots=True)
class TypedConfiguration(Configuration):
    """For XLA's typed FFI; JAX wrote it to ``mhlo.backend_config`` before it could export ``api_version = 4``."""

    entries: Mapping[str, str] = field(default_factory=dict)  # values are "bool", "i32", or the letters that one may be

    def reason_against(self, form: CallForm) -> str | None:
        version = form.attributes.get("api_version", _ORIGINAL)
        named = _MHLO_BACKEND in form.attributes
        if version != _TYPED and not (version == _ORIGINAL and named):
            return f"its api_version is {version}, expected {_TYPED}"
        if named and form.attributes.get(_BACKEND):
            return f"it has both a {_BACKEND} and a {_MHLO_BACKEND}"
        return _reason_against_entries(form, _MHLO_BACKEND if named else _BACKEND, self.entries, frozenset())

    def values(self, form: CallForm) -> Mapping[str, Any]:
        found = form.attributes.get(_MHLO_BACKEND) or form.attributes.get(_BACKEND) or {}
        return {name: found[name] if kind in _TYPES else chr(found[name]) for name, kind in self.entries.items()}


@dataclass(frozen=True, slots=True)
class MhloOp(Configuration):
    """An op of MHLO that StableHLO lacks, with its attributes in ``mhlo.attributes``."""

    entries: Mapping[str, str] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()  # optional entries, which must be true

    def reason_against(self, form: CallForm) -> str | None:
        if form.attributes.get("api_version", _ORIGINAL) != _ORIGINAL:
            return f"its api_version is {form.attributes['api_version']}, expected {_ORIGINAL}"
        for name in (_BACKEND, _MHLO_BACKEND, "has_side_effect", "operand_layouts", "result_layouts"):
            # XLA takes even an empty dictionary for that of another kind of call.
            if form.attributes.get(name, "") not in ("", False):
                return f"it has the attribute {name}, which XLA does not accept of an op of MHLO"
        if form.attributes.get("mhlo.version") != 1:
            return f"its mhlo.version is {form.attributes.get('mhlo.version')!r}, expected 1"
        if "mhlo.attributes" not in form.attributes:
            return "it has no mhlo.attributes"
        return _reason_against_entries(form, "mhlo.attributes", self.entries, self.flags)

    def values(self, form: CallForm) -> Mapping[str, Any]:
        found: Mapping[str, Any] = form.attributes["mhlo.attributes"]
        return {name: found[name] for name in self.entries}


def _reason_against_entries(
    form: CallForm, attribute: str, entries: Mapping[str, str], flags: frozenset[str]
) -> str | None:
    found = form.attributes.get(attribute) or {}
    if not isinstance(found, Mapping):
        return f"its {attribute} is {found!r}, expected a dictionary"
    if not entries.keys() <= found.keys() <= entries.keys() | flags:
        names = ", ".join(sorted(map(str, found))) or "no entries"
        return f"its {attribute} has {names}, expected {', '.join(sorted(entries)) or 'none'}"
    for name, value in found.items():
        kind = entries.get(name, "bool")
        type_ = form.entry_types.get((attribute, name))
        wanted_type = _TYPES.get(kind, _LETTER_TYPE)
        is_number = isinstance(value, int) and (kind == "bool") == isinstance(value, bool)
        if not is_number or type_ not in (None, wanted_type):
            return f"{name} in its {attribute} is {value!r}{f' : {type_}' if type_ else ''}, expected {wanted_type}"
        if kind not in _TYPES and value not in map(ord, kind):
            letters = ", ".join(f"{ord(each)} ({each})" for each in kind)
            return f"{name} in its {attribute} is {value}, expected one of {letters}"
        if name in flags and not value:
            return f"{name} in its {attribute} is false, expected true"
    return None


# Rules for custom calls: operands, results and attributes of a known target

#: A matrix with more elements has offsets that 32-bit numbers in LAPACK do not represent.
_MOST_ELEMENTS: Final = 2**31 - 1

_ALIAS: Final = re.compile(
    r".*output_tuple_indices = \[(\d*)\], operand_index = (\d+), operand_tuple_indices = \[\]>", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Signature:
    """Operands and results of a call, as patterns of :mod:`vhlo_tools.execution.call_rules`."""

    operands: tuple[str, ...] | None  # None for any number of tensors
    results: tuple[str, ...]
    where: tuple[str, ...] = ()  # conditions on sizes, such as "k <= n"
    #: applies if the entries of the configuration have one of these values
    when: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rule:
    requires: str  # end of a sentence in messages
    signatures: tuple[Signature, ...]  # one of them must match
    elements: tuple[str, ...] | None = None  # what T may stand for; None for any
    configuration: Configuration = EMPTY
    #: matrices are column-major, as the layouts of the call say; otherwise layouts are default, and optional
    column_major: bool = False
    #: pairs of operand and result that may share memory; None for any
    aliases: frozenset[tuple[int, int]] | None = frozenset()
    ranks: tuple[int, int] | None = None  # least and greatest rank of the first operand
    #: element type and direction of each called computation, as in programs that XLA has compiled
    comparisons: tuple[tuple[str, str], ...] = ()
    may_be_tuple: bool = False  # the results may be elements of one tuple, as in programs that were HLO

    def reason_against(self, form: CallForm) -> str | None:
        if form.attributes.get("called_computations") and form.comparisons != self.comparisons:
            said = " and ".join(f"one that compares two values of {each} by {by}" for each, by in self.comparisons)
            return f"it has called_computations, expected {said or 'none'}"
        if form.is_tuple and not self.may_be_tuple:
            return "its results are a tuple, expected tensors"
        if reason := self.configuration.reason_against(form):
            return reason
        values = self.configuration.values(form)
        reasons = []
        for signature in self.signatures:
            if all(values[name] in allowed for name, allowed in signature.when.items()):
                reason = self._mismatch(form, signature, values)
                if reason is None:
                    return self._wrong_layouts(form, signature) or self._wrong_aliases(form)
                reasons.append(reason)
        return reasons[0]

    def _mismatch(self, form: CallForm, signature: Signature, values: Mapping[str, Any]) -> str | None:
        operands = signature.operands
        if operands is None:
            others = [each for each in form.operands if not isinstance(each, ArgumentType)]
            return f"an operand is {_text(others[0])}, expected tensors" if others else _wrong_number(form, signature)
        if reason := _wrong_number(form, signature):
            return reason
        numbers = {name: each for name, each in values.items() if isinstance(each, int) and not isinstance(each, bool)}
        bindings = Bindings(sizes=numbers)
        named = [
            (f"{what} {number}", type_)
            for what, types in (("operand", form.operands), ("result", form.results))
            for number, type_ in enumerate(types)
        ]
        for (name, type_), text in zip(named, (*operands, *signature.results), strict=True):
            pattern = Pattern.parse(text)
            if not isinstance(type_, ArgumentType) or not pattern.matches(type_, self.elements, bindings):
                return f"its {name} is {_text(type_)}, expected {pattern.described(self.elements, bindings)}"
            if self.column_major and math.prod(type_.static_shape[-2:]) > _MOST_ELEMENTS:
                return f"its {name} is {_text(type_)}, expected matrices of at most {_MOST_ELEMENTS} elements"
        first = form.operands[0]
        if self.ranks and isinstance(first, ArgumentType) and not self.ranks[0] <= len(first.shape) <= self.ranks[1]:
            return f"its operand 0 has {len(first.shape)} dimensions, expected {self.ranks[0]} to {self.ranks[1]}"
        for condition in signature.where:
            if not bindings.holds(condition):
                left, _, right = condition.split()
                sizes = f"{left} is {bindings.size(left)} and {right} is {bindings.size(right)}"
                return f"{sizes}, expected {condition} in the operands {', '.join(operands)}"
        return None

    def _wrong_layouts(self, form: CallForm, signature: Signature) -> str | None:
        if self.aliases is None:
            return None  # XLA never gets the call
        for name, types, patterns in (
            ("operand_layouts", form.operands, signature.operands or ()),
            ("result_layouts", form.results, signature.results),
        ):
            wanted = [self._layout(type_, Pattern.parse(text)) for type_, text in zip(types, patterns, strict=True)]
            found = form.attributes.get(name)
            if found is None and not self.column_major:
                continue
            if found is None or _orders(found) != wanted:
                return f"its {name} are {_orders(found) if found is not None else 'missing'}, expected {wanted}"
        return None

    def _layout(self, type_: ValueType | str, pattern: Pattern) -> list[int]:
        """Dimensions from minor to major, as a layout lists them."""
        rank = len(type_.shape) if isinstance(type_, ArgumentType) else 0
        order = list(range(rank))[::-1]
        return [*order[1::-1], *order[2:]] if self.column_major and pattern.is_matrix else order

    def _wrong_aliases(self, form: CallForm) -> str | None:
        if self.aliases is None:
            return None
        pairs = []
        for each in form.attributes.get("output_operand_aliases", ()):
            found = _ALIAS.fullmatch(str(each))
            pair = (int(found[2]), int(found[1] or 0)) if found else None
            if pair not in self.aliases or (found and not found[1] and len(form.results) > 1):
                wanted = " or ".join(f"operand {one} with result {other}" for one, other in sorted(self.aliases))
                return f"its output_operand_aliases contain {each}, expected {wanted or 'none'}"
            pairs.append(pair)
        return "its output_operand_aliases contain an alias twice" if len(set(pairs)) < len(pairs) else None


def _wrong_number(form: CallForm, signature: Signature) -> str | None:
    for name, found, wanted in (
        ("operands", form.operands, signature.operands),
        ("results", form.results, signature.results),
    ):
        if wanted is not None and len(found) != len(wanted):
            return f"it has {len(found)} {name}, expected {len(wanted)}"
    return None


def _orders(layouts: Any) -> list[Any]:
    try:
        return [[int(each) for each in order] for order in layouts]
    except (TypeError, ValueError):
        return [str(layouts)]


def _text(type_: ValueType | str) -> str:
    return type_.text if isinstance(type_, ArgumentType | TokenType | TupleType) else type_
