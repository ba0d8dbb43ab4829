"""Rules for custom calls: operands, results and attributes of a known target."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from vhlo_tools.execution.custom_calls.call_forms import CallForm
from vhlo_tools.execution.custom_calls.configurations import EMPTY, Configuration
from vhlo_tools.execution.custom_calls.shape_patterns import Bindings, Pattern
from vhlo_tools.execution.values.arrays import ArgumentType, TokenType, TupleType, ValueType
from vhlo_tools.records import dataclass

#: A matrix with more elements has offsets that 32-bit numbers in LAPACK do not represent.
_MOST_ELEMENTS: Final = 2**31 - 1

_ALIAS: Final = re.compile(
    r".*output_tuple_indices = \[(\d*)\], operand_index = (\d+), operand_tuple_indices = \[\]>", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Signature:
    """Operands and results of a call, as patterns of :mod:`vhlo_tools.execution.custom_calls.shape_patterns`."""

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
            return f"it has called_computations, expected {self._described_comparisons()}"
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
        named = (*_named("operand", form.operands), *_named("result", form.results))
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

    def _described_comparisons(self) -> str:
        said = [f"one that compares two values of {each} by {by}" for each, by in self.comparisons]
        return " and ".join(said) or "none"

    def _wrong_aliases(self, form: CallForm) -> str | None:
        if self.aliases is None:
            return None
        pairs = []
        for each in form.attributes.get("output_operand_aliases", ()):
            found = _ALIAS.fullmatch(str(each))
            pair = (int(found[2]), int(found[1] or 0)) if found else None
            if pair not in self.aliases or (found and not found[1] and len(form.results) > 1):
                return f"its output_operand_aliases contain {each}, expected {self._described_aliases()}"
            pairs.append(pair)
        return "its output_operand_aliases contain an alias twice" if len(set(pairs)) < len(pairs) else None

    def _described_aliases(self) -> str:
        pairs = sorted(self.aliases or ())
        return " or ".join(f"operand {operand} with result {result}" for operand, result in pairs) or "none"


def _wrong_number(form: CallForm, signature: Signature) -> str | None:
    for name, found, wanted in (
        ("operands", form.operands, signature.operands),
        ("results", form.results, signature.results),
    ):
        if wanted is not None and len(found) != len(wanted):
            return f"it has {len(found)} {name}, expected {len(wanted)}"
    return None


def _named(name: str, types: Sequence[ValueType | str]) -> Iterator[tuple[str, ValueType | str]]:
    for number, type_ in enumerate(types):
        yield f"{name} {number}", type_


def _orders(layouts: Any) -> list[Any]:
    try:
        return [[int(each) for each in order] for order in layouts]
    except (TypeError, ValueError):
        return [str(layouts)]


def _text(type_: ValueType | str) -> str:
    return type_.text if isinstance(type_, ArgumentType | TokenType | TupleType) else type_
