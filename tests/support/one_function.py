"""Programs of one function, for engines that are compared with the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import vhlo_tools as vt

F32: Final = "tensor<4xf32>"


def main(body: str, arguments: str = f"%a: {F32}", results: str = F32, returned: str = "%0") -> str:
    return f"func.func @main({arguments}) -> ({results}) {{\n {body}\n return {returned} : {results}\n}}"


#: It does not end.
LOOP: Final = main(
    """%0 = stablehlo.while(%i = %a) : tensor<i32>
  cond {
    %t = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %a : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }""",
    "%a: tensor<i32>",
    "tensor<i32>",
)
ALIASED: Final = main(f"%0 = stablehlo.add %a, %a : {F32}", f"%a: {F32} {{tf.aliasing_output = 0 : i32}}")


def same_bits(program: str | Path, inputs: list[Any], engine: str) -> tuple[Any, ...]:
    """Run a program on an engine and on the interpreter, and return the results, which must be the same bits."""
    found, expected = (vt.run(program, inputs, engine=each) for each in (engine, "reference"))
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
    return found
