"""Programs that consist of one custom call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

_COMPUTATIONS: Final = (
    "func.func private @computation(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }\n"
    + "".join(
        f"""func.func private @{direction}_{element}(
      %a: tensor<{element}>, %b: tensor<{element}>, %c: tensor<i32>, %d: tensor<i32>) -> tensor<i1> {{
    %0 = stablehlo.compare {direction}, %a, %b : (tensor<{element}>, tensor<{element}>) -> tensor<i1>
    return %0 : tensor<i1>
    }}\n"""
        for direction in ("GT", "LT", "EQ")
        for element in ("f16", "bf16", "f32", "f64")
    )
)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor type."""

    element: str  # the element type
    shape: tuple[int, ...]  # the sizes

    def __str__(self) -> str:
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element}>"


@dataclass(frozen=True, slots=True)
class DrawnCall:
    """A custom call."""

    target: str  # the target
    operands: tuple[Tensor | str, ...]  # the types of its operands
    results: tuple[Tensor | str, ...]  # the types of its results; text for what is no tensor
    attributes: dict[str, str] = field(default_factory=dict)  # the other attributes, as MLIR text
    how: str = "right"  # ``right``, ``changed`` or ``any``
    place: str = "main"  # where it stands
    tupled: bool = False  # whether its results are one tuple


def program_of(call: DrawnCall) -> str:
    """Return a program that consists of a call, with an argument for each operand and a result for each tensor."""
    names = [f"%a{number}" for number in range(len(call.operands))]
    parameters = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, call.operands, strict=True))
    attributes = {"call_target_name": f'"{call.target}"', **call.attributes}
    given = [f"tuple<{', '.join(map(str, call.results))}>"] if call.tupled else list(map(str, call.results))
    op = f'"stablehlo.custom_call"({", ".join(names)}) {{{", ".join(f"{k} = {v}" for k, v in attributes.items())}}}'
    op += f" : ({', '.join(map(str, call.operands))}) -> ({', '.join(given)})"
    lines = [f"{f'%r:{len(given)} = ' if given else ''}{op}"]
    values = [f"%r#{number}" for number in range(len(given))]
    if call.tupled:
        lines += [
            f"%e{number} = stablehlo.get_tuple_element %r#0[{number}] : ({given[0]}) -> {type_}"
            for number, type_ in enumerate(call.results)
        ]
        values = [f"%e{number}" for number in range(len(call.results))]
    kept = [number for number, type_ in enumerate(call.results) if isinstance(type_, Tensor)]
    types = ", ".join(str(call.results[number]) for number in kept)
    outputs = ", ".join(values[number] for number in kept)
    taken = ", ".join(map(str, call.operands))
    body = "\n  ".join(lines)
    end = f"return {outputs}{' : ' if kept else ''}{types}"
    results = ", ".join(f"%o#{number}" for number in range(len(kept)))
    bound = f"%o:{len(kept)} = " if kept else ""
    finish = f"return {results}{' : ' if kept else ''}{types}"
    extra = _COMPUTATIONS if "called_computations" in call.attributes else ""
    header = f"func.func @main({parameters}) -> ({types})"
    inner = f"func.func private @inner({parameters}) -> ({types}) {{\n  {body}\n  {end}\n}}"
    if call.place == "function":
        use = f"{bound}func.call @inner({', '.join(names)}) : ({taken}) -> ({types})"
        return f"{extra}{inner}\n{header} {{\n  {use}\n  {finish}\n}}"
    if call.place == "composite":
        use = f'{bound}stablehlo.composite "some.name" {", ".join(names)} {{decomposition = @inner}}'
        use += f" : ({taken}) -> ({types})"
        return f"{extra}{inner}\n{header} {{\n  {use}\n  {finish}\n}}"
    if call.place == "branch" and kept:
        zeros = [f"%z{at} = stablehlo.constant dense<{_zero(call.results[at])}> : {call.results[at]}" for at in kept]
        other = "\n  ".join(zeros)
        yielded = f'"stablehlo.return"({outputs}) : ({types}) -> ()'
        yielded_zeros = f'"stablehlo.return"({", ".join(f"%z{at}" for at in kept)}) : ({types}) -> ()'
        use = f'{bound}"stablehlo.if"(%t) ({{\n  {body}\n  {yielded}\n}}, {{\n  {other}\n  {yielded_zeros}\n}})'
        use += f" : (tensor<i1>) -> ({types})"
        return f"{extra}{header} {{\n  %t = stablehlo.constant dense<true> : tensor<i1>\n  {use}\n  {finish}\n}}"
    if call.place == "twice":
        body += "\n  " + body.replace("%r", "%s").replace("%e", "%f")
    return f"{extra}{header} {{\n  {body}\n  {end}\n}}"


def _zero(type_: Any) -> str:
    if type_.element.startswith("complex"):
        return "(0.0, 0.0)"
    if type_.element == "i1":
        return "false"
    return "0" if type_.element[0] in "iu" else "1.0" if type_.element == "f8E8M0FNU" else "0.0"
