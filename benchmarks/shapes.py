"""Programs of many ops as MLIR text, of several shapes: what is long, what is deep, and what has many different parts.

Each function takes a number of ops and returns a program of about as many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

_ELEMENTWISE: Final = ("add", "multiply", "subtract", "maximum")
_TENSOR: Final = "tensor<4xf32>"
#: How deep regions are nested, and how many ops of a program call a function in a row.
_DEPTH: Final = 30


def chain_of_ops(number: int, *, changed: bool = False) -> str:
    """Return elementwise ops, each of which uses the one before it and another.

    Args:
        number: The number of ops.
        changed: Whether the one in the middle is another op.
    """
    names = [_ELEMENTWISE[index % 4] for index in range(number)]
    if changed:
        names[number // 2] = "divide"
    return _program(f"stablehlo.{name} %{i}, %{max(0, i - 3)} : {_TENSOR}" for i, name in enumerate(names))


def constants(size: int, number: int) -> str:
    """Return ``number`` constants of f32, together of about ``size`` bytes, each added to what was before."""
    length = max(1, size // number // 4)
    tensor = f"tensor<{length}xf32>"
    lines = [f"func.func @main(%0: {tensor}) -> {tensor} {{"]
    for index in range(number):
        # As bytes: numbers would be long, and reading them what is measured.
        data = (index.to_bytes(4, "little") * length).hex().upper()
        value = f'dense<"0x{data[:-8]}0000803F">'
        lines.append(f"  %c{index} = stablehlo.constant {value} : {tensor}")
        lines.append(f"  %{index + 1} = stablehlo.add %{index}, %c{index} : {tensor}")
    return "\n".join([*lines, f"  return %{number} : {tensor}", "}"])


def _program(ops: Iterator[str]) -> str:
    lines = [f"  %{index + 1} = {op}" for index, op in enumerate(ops)]
    return "\n".join(
        [f"func.func @main(%0: {_TENSOR}) -> {_TENSOR} {{", *lines, f"  return %{len(lines)} : {_TENSOR}", "}"]
    )


def _moving(number: int) -> str:
    """A quarter is `exponential`, which older versions have in another form."""
    rest = ("add", "multiply", "subtract")
    return _program(
        f"stablehlo.exponential %{i} : {_TENSOR}"
        if i % 4 == 3
        else f"stablehlo.{rest[i % 4]} %{i}, %{max(0, i - 3)} : {_TENSOR}"
        for i in range(number)
    )


def _attributes(number: int) -> str:
    """Each op has attributes that no other has."""
    tensor = f"tensor<{number + 4}xf32>"
    lines = [f"  %{i + 1} = stablehlo.slice %0 [{i}:{i + 4}] : ({tensor}) -> {_TENSOR}" for i in range(number)]
    return "\n".join([f"func.func @main(%0: {tensor}) -> {_TENSOR} {{", *lines, f"  return %{number} : {_TENSOR}", "}"])


def _types(number: int) -> str:
    """Each op has a type that no other has."""
    lines = [f"  %{i} = stablehlo.iota dim = 0 : tensor<{i + 1}xf32>" for i in range(number)]
    tensor = f"tensor<{number}xf32>"
    return "\n".join([f"func.func @main() -> {tensor} {{", *lines, f"  return %{number - 1} : {tensor}", "}"])


def _values(number: int) -> str:
    """Each op is a small constant that no other is."""
    return _constants(range(number))


def _shared_values(number: int) -> str:
    """Each op is a small constant, of a thousand values."""
    return _constants(i % 1000 for i in range(number))


def _constants(values: Iterable[int]) -> str:
    lines = [f"  %{i} = stablehlo.constant dense<[{v}.0, 1.0, 2.0, 3.0]> : {_TENSOR}" for i, v in enumerate(values)]
    return "\n".join([f"func.func @main() -> {_TENSOR} {{", *lines, f"  return %{len(lines) - 1} : {_TENSOR}", "}"])


def _nested(number: int) -> str:
    """Ops stand in conditionals within conditionals, thirty deep."""
    lines = [f"func.func @main(%p: tensor<i1>, %r0: {_TENSOR}) -> {_TENSOR} {{"]
    # Each level is an `if` and two `return`; the innermost has an op.
    groups = max(1, number // (3 * _DEPTH + 1))
    for group in range(groups):
        names = [f"%r{group + 1}", *(f"%g{group}x{level}" for level in range(1, _DEPTH + 1))]
        lines += [f'{name} = "stablehlo.if"(%p) ({{' for name in names[:-1]]
        lines.append(f"{names[-1]} = stablehlo.add %r{group}, %r{group} : {_TENSOR}")
        for name in reversed(names[1:]):
            lines.append(f"stablehlo.return {name} : {_TENSOR}")
            lines.append(f"}}, {{ stablehlo.return %r{group} : {_TENSOR} }}) : (tensor<i1>) -> {_TENSOR}")
    return "\n".join([*lines, f"return %r{groups} : {_TENSOR}", "}"])


def _functions(number: int) -> str:
    """A function for every three ops: a call, an op, a return."""
    functions = max(1, number // 3)
    calls = [f"  %{i + 1} = func.call @f{i}(%{i}) : ({_TENSOR}) -> {_TENSOR}" for i in range(functions)]
    bodies = [
        f"func.func private @f{i}(%a: {_TENSOR}) -> {_TENSOR} {{\n"
        f"  %0 = stablehlo.add %a, %a : {_TENSOR}\n  return %0 : {_TENSOR}\n}}"
        for i in range(functions)
    ]
    head = f"func.func @main(%0: {_TENSOR}) -> {_TENSOR} {{"
    return "\n".join([head, *calls, f"  return %{functions} : {_TENSOR}", "}", *bodies])


def _wide(number: int) -> str:
    """Every op uses what the first one gave, and the last ones use all."""
    return _program(f"stablehlo.add %{min(i, 1)}, %{i} : {_TENSOR}" for i in range(number))


#: Programs by what is said of them.
SHAPES: Final[dict[str, Callable[[int], str]]] = {
    "ops that move": _moving,
    "attributes of their own": _attributes,
    "types of their own": _types,
    "values of their own": _values,
    "nested regions": _nested,
    "functions": _functions,
    "one value used by all": _wide,
}

#: And those that an aim is about.
OF_AIMS: Final[dict[str, Callable[[int], str]]] = {"a thousand values": _shared_values}
