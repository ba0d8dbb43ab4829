"""Handlers of custom calls, and errors that name the op that an engine cannot run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Operation, class_of, elements_of, named_attributes, source_of
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.values import ArgumentType, leaf_types, parse_value_type
from vhlo_tools.findings import SourceLocation
from vhlo_tools.program import names_in_utf8, place_of
from vhlo_tools.records import dataclass

# Handlers of custom calls: Python functions that compute the results of custom calls, by target


@dataclass(frozen=True, slots=True)
class CustomCall:
    """A custom call, as passed to a handler.

    Attributes:
        target: The name of the target.
        attributes: Its attributes as plain values: numbers, strings, booleans, tuples, dictionaries, arrays for
            tensors, and the text that MLIR prints for all others.
        results: The types of its results: elements of tuples are listed separately, tokens are left out.
        location: The location in the user's source.
    """

    target: str
    attributes: Mapping[str, Any]
    results: tuple[ArgumentType, ...]
    location: SourceLocation | None = None

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{place}custom call of {self.target}"


#: Called with the call and an array for each operand, which the handler must not modify; elements of tuples are passed
#: separately, tokens are left out. Returns an array for each result: a single array, or a sequence.
Handler = Callable[..., Any]


def handler_advice(target: str) -> str:
    return f"a handler for it (--handler {target}=MODULE:FUNCTION, handlers={{{target!r}: function}})"


def call_of(op: Operation) -> CustomCall:
    with names_in_utf8("a custom call"):
        attributes = dict(named_attributes(op.attributes))
        return CustomCall(
            str(attributes["call_target_name"].value),
            {name: plain_attribute(each) for name, each in attributes.items() if name != "call_target_name"},
            tuple(
                leaf
                for leaf in leaf_types(parse_value_type(str(each.type)) for each in op.results)
                if isinstance(leaf, ArgumentType)
            ),
            source_of(op.location),
        )


def checked_results(call: CustomCall, returned: Any) -> tuple[np.ndarray[Any, Any], ...]:
    """Python numbers get the type of the result."""
    if not call.results and returned is None:
        return ()
    values = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
    if len(values) != len(call.results):
        raise EngineError(f"{call}: its handler returned {len(values)} results, expected {len(call.results)}")
    checked = []
    for number, (value, type_) in enumerate(zip(values, call.results, strict=True)):
        array = np.asarray(value, None if isinstance(value, np.ndarray | np.generic) else type_.dtype)
        sizes = zip(array.shape, type_.shape, strict=False)
        if array.dtype != type_.dtype or array.ndim != len(type_.shape) or any(b not in (None, a) for a, b in sizes):
            found = f"{array.dtype}{list(array.shape)}"
            raise EngineError(f"{call}: its handler returned {found} as result {number}, expected {type_.text}")
        checked.append(np.ascontiguousarray(array).reshape(array.shape))
    return tuple(checked)


def plain_attribute(attribute: Any) -> Any:
    kind = class_of(attribute)
    if (read := _READ.get(kind)) is not None:
        return read(attribute)
    if kind.startswith("Dense"):
        # The bindings do not convert all elements to numpy.
        with suppress(TypeError, ValueError, RuntimeError):
            return np.array(attribute)
    return str(attribute)


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys((f"DenseI{bits}ArrayAttr" for bits in (8, 16, 32, 64)), tuple),
    **dict.fromkeys(("DenseBoolArrayAttr", "DenseF32ArrayAttr", "DenseF64ArrayAttr"), tuple),
    "ArrayAttr": lambda attribute: tuple(map(plain_attribute, elements_of(attribute))),
    "BoolAttr": lambda attribute: bool(attribute.value),
    "DictAttr": lambda attribute: {name: plain_attribute(each) for name, each in named_attributes(attribute)},
    "FlatSymbolRefAttr": lambda attribute: str(attribute.value),
    "FloatAttr": lambda attribute: float(attribute.value),
    "IntegerAttr": lambda attribute: int(attribute.value),
    "StringAttr": lambda attribute: str(attribute.value),
    "UnitAttr": lambda attribute: True,
}


# Errors that name the op that an engine cannot run, and its location


def described(op: Operation, name: str) -> str:
    return f"{_place(op, name)}: {op.name}"


def refusal(op: Operation, name: str, reason: str, engine: str = "the reference interpreter") -> EngineError:
    return EngineError(f"{_place(op, name)}: {engine} cannot run {op.name}: {reason}")


def _place(op: Operation, name: str) -> str:
    return str(place_of(source_of(op.location), name) or name)
