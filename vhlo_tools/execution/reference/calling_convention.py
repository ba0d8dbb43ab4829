"""A wrapping ``main`` for programs with values that the interpreter cannot exchange.

Its arguments and results are tensors of types that the interpreter can exchange; it converts values, builds and
decomposes tuples and tokens, and calls the program's own ``main``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from vhlo_tools.execution.values import ArgumentType, TokenType, ValueType, as_arrays


def is_direct(value: ValueType) -> bool:
    return isinstance(value, ArgumentType) and value.is_direct


def convert_inputs(values: Sequence[Any], types: Sequence[ValueType], what: str) -> list[np.ndarray[Any, Any]]:
    """``None`` stands for a token, a tuple for a tuple; ``what`` is the name of values in messages."""
    return [
        part
        for number, (value, type_) in enumerate(zip(values, types, strict=True))
        for array, of_array in as_arrays(value, type_, f"{what} {number}")
        for part in convert_input(array, of_array)
    ]


def convert_input(array: np.ndarray[Any, Any], argument: ArgumentType) -> list[np.ndarray[Any, Any]]:
    if argument.conversion == "parts":
        return [array.real.copy(), array.imag.copy()]
    if argument.conversion == "bits":
        return [array.view(argument.converted_dtype())]
    return [array.astype(argument.converted_dtype(), copy=False)]


def convert_results(arrays: Iterable[np.ndarray[Any, Any]], results: Sequence[ValueType]) -> list[Any]:
    pending = iter(arrays)
    return [_value(pending, result) for result in results]


def _value(pending: Iterator[np.ndarray[Any, Any]], result: ValueType) -> Any:
    if isinstance(result, TokenType):
        return None
    if not isinstance(result, ArgumentType):
        return tuple(_value(pending, part) for part in result.parts)
    array = next(pending)
    if result.conversion == "parts":
        value = np.empty(array.shape, result.dtype)
        value.real, value.imag = array, next(pending)
        return value
    return array.view(result.dtype) if result.conversion == "bits" else array.astype(result.dtype, copy=False)


def converting_main(arguments: Sequence[ValueType], results: Sequence[ValueType], inner: str) -> str:
    """MLIR text of a module with the wrapping ``main``, and the declaration of ``inner``."""
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
    def __init__(self) -> None:
        self.parameters: list[str] = []
        self.body: list[str] = []
        self.returned: list[tuple[str, str]] = []
        self._made = 0

    def take(self, argument: ValueType) -> str:
        if isinstance(argument, TokenType):
            return self._op(f"stablehlo.after_all : {argument.text}")
        if not isinstance(argument, ArgumentType):
            parts = ", ".join(self.take(part) for part in argument.parts)
            return self._op(f"stablehlo.tuple {parts} : {argument.text}")
        if argument.conversion == "parts":
            real, imaginary, part = self._parameter(argument), self._parameter(argument), argument.converted_text()
            return self._op(f"stablehlo.complex {real}, {imaginary} : ({part}, {part}) -> {argument.text}")
        value = self._parameter(argument)
        if argument.is_direct:
            return value
        return self._op(f"stablehlo.{_convert(argument)} {value} : ({argument.converted_text()}) -> {argument.text}")

    def give(self, value: str, result: ValueType) -> None:
        if isinstance(result, TokenType):
            return
        if not isinstance(result, ArgumentType):
            for index, part in enumerate(result.parts):
                element = f"stablehlo.get_tuple_element {value}[{index}] : ({result.text}) -> {part.text}"
                self.give(self._op(element), part)
            return
        if result.conversion == "parts":
            for op in ("real", "imag"):
                name = self._op(f"stablehlo.{op} {value} : ({result.text}) -> {result.converted_text()}")
                self.returned.append((name, result.converted_text()))
            return
        if not result.is_direct:
            value = self._op(f"stablehlo.{_convert(result)} {value} : ({result.text}) -> {result.converted_text()}")
        self.returned.append((value, result.converted_text()))

    def _parameter(self, argument: ArgumentType) -> str:
        self.parameters.append(f"%a{len(self.parameters)}: {argument.converted_text()}")
        return f"%a{len(self.parameters) - 1}"

    def _op(self, op: str) -> str:
        self._made += 1
        self.body.append(f"%v{self._made} = {op}")
        return f"%v{self._made}"


def _convert(argument: ArgumentType) -> str:
    """Both directions are exact."""
    return "convert" if argument.conversion == "wider" else "bitcast_convert"
