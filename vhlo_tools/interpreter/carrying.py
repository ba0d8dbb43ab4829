"""A new ``main`` around a program, for values that the interpreter cannot exchange.

Its arguments and results are tensors of carrier types; in between it converts, makes and takes apart tuples and tokens,
and calls the program's own ``main``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from vhlo_tools.interpreter.values import ArgumentType, TokenType, ValueType

__all__ = ["carried_in", "carried_out", "carrying_main", "is_direct"]


def is_direct(value: ValueType) -> bool:
    """Tell whether the interpreter takes and gives values of a type as they are."""
    return isinstance(value, ArgumentType) and value.is_direct


def carried_in(array: np.ndarray[Any, Any], argument: ArgumentType) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that carry ``array`` into the interpreter."""
    if argument.carriage == "parts":
        return [array.real.copy(), array.imag.copy()]
    if argument.carriage == "bits":
        return [array.view(argument.carrier_dtype())]
    return [array.astype(argument.carrier_dtype(), copy=False)]


def carried_out(arrays: Iterable[np.ndarray[Any, Any]], results: Sequence[ValueType]) -> list[Any]:
    """Return the results that ``arrays`` carry, in order."""
    pending = iter(arrays)
    return [_value(pending, result) for result in results]


def _value(pending: Iterator[np.ndarray[Any, Any]], result: ValueType) -> Any:
    if isinstance(result, TokenType):
        return None
    if not isinstance(result, ArgumentType):
        return tuple(_value(pending, part) for part in result.parts)
    array = next(pending)
    if result.carriage == "parts":
        value = np.empty(array.shape, result.dtype)
        value.real, value.imag = array, next(pending)
        return value
    return array.view(result.dtype) if result.carriage == "bits" else array.astype(result.dtype, copy=False)


def carrying_main(arguments: Sequence[ValueType], results: Sequence[ValueType], inner: str) -> str:
    """Return, as MLIR text, a module with a ``main`` of carrier types that calls ``inner``, and its declaration."""
    text = _Main()
    operands = [text.take(argument) for argument in arguments]
    taken, given = (", ".join(each.text for each in types) for types in (arguments, results))
    call = f"func.call @{inner}({', '.join(operands)}) : ({taken}) -> ({given})"
    text.body.append(f"%r:{len(results)} = {call}" if results else call)
    for index, result in enumerate(results):
        text.give(f"%r#{index}", result)
    names, types = (", ".join(each) for each in zip(*text.returned, strict=True)) if text.returned else ("", "")
    text.body.append(f"return {names} : {types}" if text.returned else "return")
    return (
        "module {\n"
        f"  func.func private @{inner}({taken}) -> ({given})\n"
        f"  func.func @main({', '.join(text.parameters)}) -> ({types}) {{\n    "
        + "\n    ".join(text.body)
        + "\n  }\n}\n"
    )


class _Main:
    """The text of the new ``main``.

    Attributes:
        parameters: What it takes.
        body: Its ops.
        returned: Names and types of what it returns.
    """

    def __init__(self) -> None:
        self.parameters: list[str] = []
        self.body: list[str] = []
        self.returned: list[tuple[str, str]] = []
        self._made = 0

    def take(self, argument: ValueType) -> str:
        """Return the name of a value of the type ``argument``, made of new parameters."""
        if isinstance(argument, TokenType):
            return self._op(f"stablehlo.after_all : {argument.text}")
        if not isinstance(argument, ArgumentType):
            parts = ", ".join(self.take(part) for part in argument.parts)
            return self._op(f"stablehlo.tuple {parts} : {argument.text}")
        if argument.carriage == "parts":
            real, imaginary, carrier = self._parameter(argument), self._parameter(argument), argument.carrier_text()
            return self._op(f"stablehlo.complex {real}, {imaginary} : ({carrier}, {carrier}) -> {argument.text}")
        value = self._parameter(argument)
        if argument.is_direct:
            return value
        return self._op(f"stablehlo.{_convert(argument)} {value} : ({argument.carrier_text()}) -> {argument.text}")

    def give(self, value: str, result: ValueType) -> None:
        """Return ``value``, which is of the type ``result``, in its carriers."""
        if isinstance(result, TokenType):
            return
        if not isinstance(result, ArgumentType):
            for index, part in enumerate(result.parts):
                element = f"stablehlo.get_tuple_element {value}[{index}] : ({result.text}) -> {part.text}"
                self.give(self._op(element), part)
            return
        if result.carriage == "parts":
            for op in ("real", "imag"):
                name = self._op(f"stablehlo.{op} {value} : ({result.text}) -> {result.carrier_text()}")
                self.returned.append((name, result.carrier_text()))
            return
        if not result.is_direct:
            value = self._op(f"stablehlo.{_convert(result)} {value} : ({result.text}) -> {result.carrier_text()}")
        self.returned.append((value, result.carrier_text()))

    def _parameter(self, argument: ArgumentType) -> str:
        self.parameters.append(f"%a{len(self.parameters)}: {argument.carrier_text()}")
        return f"%a{len(self.parameters) - 1}"

    def _op(self, op: str) -> str:
        self._made += 1
        self.body.append(f"%v{self._made} = {op}")
        return f"%v{self._made}"


def _convert(argument: ArgumentType) -> str:
    """Return the op between a type and its carrier; both ways are exact."""
    return "convert" if argument.carriage == "wider" else "bitcast_convert"
