"""Handlers of custom calls: functions in Python that compute what a program calls by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Operation, class_of, elements_of, named_attributes, source_of
from vhlo_tools.errors import EngineError
from vhlo_tools.findings import SourceLocation
from vhlo_tools.interpreter.values import ArgumentType, TokenType, ValueType, parse_value_type

__all__ = ["CustomCall", "Handler", "call_of", "checked_results", "handler_advice"]


@dataclass(frozen=True, slots=True)
class CustomCall:
    """A custom call, as a handler sees it.

    Attributes:
        target: What it calls.
        attributes: Its attributes as plain values: numbers, strings, booleans, tuples, dictionaries, arrays for
            tensors, and the text that MLIR prints for anything else.
        results: The types of its results: those in tuples one by one, and none for tokens.
        location: Where it stands in the user's source.
    """

    target: str
    attributes: Mapping[str, Any]
    results: tuple[ArgumentType, ...]
    location: SourceLocation | None = None

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{place}custom call of {self.target}"


#: Called with the call and an array for each operand, which it must not change, those in tuples one by one, and none
#: for tokens; returns an array for each result: one alone, or a sequence.
Handler = Callable[..., Any]


def handler_advice(target: str) -> str:
    """Return how calls of a target are given a handler, in Python and on the command line."""
    return f"a handler for it (--handler {target}=MODULE:FUNCTION, handlers={{{target!r}: function}})"


def call_of(op: Operation) -> CustomCall:
    """Return a ``stablehlo.custom_call`` as a handler sees it.

    Raises:
        EngineError: If it has a result that has no form in numpy.
    """
    attributes = dict(named_attributes(op.attributes))
    return CustomCall(
        str(attributes["call_target_name"].value),
        {name: _plain(each) for name, each in attributes.items() if name != "call_target_name"},
        tuple(leaf for each in op.results for leaf in _tensors(parse_value_type(str(each.type)))),
        source_of(op.location),
    )


def _tensors(kind: ValueType) -> Iterator[ArgumentType]:
    """Yield the types of tensors that values of a type are made of."""
    if isinstance(kind, ArgumentType):
        yield kind
    elif not isinstance(kind, TokenType):
        for part in kind.parts:
            yield from _tensors(part)


def checked_results(call: CustomCall, returned: Any) -> tuple[np.ndarray[Any, Any], ...]:
    """Return what a handler returned as one contiguous array for each result.

    Args:
        call: The call.
        returned: What its handler returned. Python numbers take the type of the result.

    Raises:
        EngineError: If there are other results than the call has, or of other types or shapes.
    """
    if not call.results and returned is None:
        return ()
    values = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
    if len(values) != len(call.results):
        raise EngineError(f"{call}: its handler returned {len(values)} results, expected {len(call.results)}")
    checked = []
    for number, (value, kind) in enumerate(zip(values, call.results, strict=True)):
        array = np.asarray(value, None if isinstance(value, np.ndarray | np.generic) else kind.dtype)
        sizes = zip(array.shape, kind.shape, strict=False)
        if array.dtype != kind.dtype or array.ndim != len(kind.shape) or any(b not in (None, a) for a, b in sizes):
            found = f"{array.dtype}{list(array.shape)}"
            raise EngineError(f"{call}: its handler returned {found} as result {number}, expected {kind.text}")
        checked.append(np.ascontiguousarray(array).reshape(array.shape))
    return tuple(checked)


def _plain(attribute: Any) -> Any:
    read = _READ.get(class_of(attribute))
    if read is not None:
        return read(attribute)
    if class_of(attribute).startswith("Dense") and (array := _tensor(attribute)) is not None:
        return array
    return str(attribute)


def _tensor(attribute: Any) -> np.ndarray[Any, Any] | None:
    try:
        return np.array(attribute)
    except (TypeError, ValueError, RuntimeError):
        return None  # elements that the bindings do not give to numpy


def _sequence(attribute: Any) -> tuple[Any, ...]:
    return tuple(attribute)


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "ArrayAttr": lambda attribute: tuple(map(_plain, elements_of(attribute))),
    "BoolAttr": lambda attribute: bool(attribute.value),
    "DenseBoolArrayAttr": _sequence,
    "DenseF32ArrayAttr": _sequence,
    "DenseF64ArrayAttr": _sequence,
    "DenseI16ArrayAttr": _sequence,
    "DenseI32ArrayAttr": _sequence,
    "DenseI64ArrayAttr": _sequence,
    "DenseI8ArrayAttr": _sequence,
    "DictAttr": lambda attribute: {name: _plain(each) for name, each in named_attributes(attribute)},
    "FlatSymbolRefAttr": lambda attribute: str(attribute.value),
    "FloatAttr": lambda attribute: float(attribute.value),
    "IntegerAttr": lambda attribute: int(attribute.value),
    "StringAttr": lambda attribute: str(attribute.value),
    "UnitAttr": lambda attribute: True,
}
