"""A new ``main`` around a program, for values that the interpreter cannot exchange.

Its arguments and results are of carrier types; in between it converts and calls the program's own ``main``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vhlo_tools.interpreter.values import ArgumentType

__all__ = ["carried_in", "carried_out", "carrying_main"]


def carried_in(array: np.ndarray[Any, Any], argument: ArgumentType) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that carry ``array`` into the interpreter."""
    if argument.carriage == "parts":
        return [array.real.copy(), array.imag.copy()]
    if argument.carriage == "bits":
        return [array.view(_carrier_dtype(argument))]
    if argument.carriage == "wider":
        return [array.astype(_carrier_dtype(argument))]
    return [array]


def carried_out(arrays: list[np.ndarray[Any, Any]], results: Sequence[ArgumentType]) -> list[np.ndarray[Any, Any]]:
    """Return the results that ``arrays`` carry, in order."""
    pending = iter(arrays)
    values = []
    for result in results:
        array = next(pending)
        if result.carriage == "parts":
            value = np.empty(array.shape, result.dtype)
            value.real, value.imag = array, next(pending)
        elif result.carriage == "bits":
            value = array.view(result.dtype)
        else:
            value = array.astype(result.dtype, copy=False)
        values.append(value)
    return values


def _carrier_dtype(argument: ArgumentType) -> np.dtype[Any]:
    return np.dtype(argument.carrier.replace("ui", "uint") if argument.carrier[0] == "u" else "int8")


def carrying_main(arguments: Sequence[ArgumentType], results: Sequence[ArgumentType], inner: str) -> str:
    """Return, as MLIR text, a module with a ``main`` of carrier types that calls ``inner``, and its declaration."""
    body: list[str] = []
    parameters: list[str] = []
    operands: list[str] = []
    for index, argument in enumerate(arguments):
        carried = [f"%a{index}_{part}" for part in range(2 if argument.carriage == "parts" else 1)]
        parameters += [f"{name}: {argument.carrier_text()}" for name in carried]
        operands.append(_convert(body, carried, [argument.carrier_text()] * len(carried), argument.text, f"%o{index}"))
    taken, given = (", ".join(each.text for each in types) for types in (arguments, results))
    call = f"func.call @{inner}({', '.join(operands)}) : ({taken}) -> ({given})"
    body.append(f"%r:{len(results)} = {call}" if results else call)
    returned: list[tuple[str, str]] = []
    for index, result in enumerate(results):
        value, carrier = f"%r#{index}", result.carrier_text()
        if result.carriage == "parts":
            for part in ("real", "imag"):
                body.append(f"%{part}{index} = stablehlo.{part} {value} : ({result.text}) -> {carrier}")
                returned.append((f"%{part}{index}", carrier))
        else:
            returned.append((_convert(body, [value], [result.text], carrier, f"%c{index}"), carrier))
    names, types = (", ".join(each) for each in zip(*returned, strict=True)) if returned else ("", "")
    body.append(f"return {names} : {types}" if returned else "return")
    return (
        "module {\n"
        f"  func.func private @{inner}({taken}) -> ({given})\n"
        f"  func.func @main({', '.join(parameters)}) -> ({types}) {{\n    " + "\n    ".join(body) + "\n  }\n}\n"
    )


def _convert(body: list[str], values: list[str], types: list[str], to: str, name: str) -> str:
    """Append the op that makes a ``to`` of ``values``, and return what it is called."""
    if types == [to]:
        return values[0]
    if len(values) == 2:
        body.append(f"{name} = stablehlo.complex {', '.join(values)} : ({', '.join(types)}) -> {to}")
    else:
        # Both are exact: the carrier has as many bits, or is a wider integer of the same sign.
        op = "convert" if _is_integer(types[0]) and _is_integer(to) else "bitcast_convert"
        body.append(f"{name} = stablehlo.{op} {values[0]} : ({types[0]}) -> {to}")
    return name


def _is_integer(tensor: str) -> bool:
    element = tensor.removesuffix(">").rpartition("x")[2].removeprefix("tensor<")
    return element.startswith(("i", "ui"))
