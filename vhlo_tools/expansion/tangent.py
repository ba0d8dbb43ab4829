"""The op tan, introduced in 1.4.0, as sine over cosine.

Real numbers: ``tan x = sin x / cos x``. Types narrower than f32 are computed in f32 and rounded once, so that the
result is that of exact arithmetic up to half a unit in the last place (ulp) and the error of f32, which is below
2 ** -8 ulp of them. In f32 and f64 the errors of sine, cosine (1 ulp each, as libm has) and of the division (1/2 ulp)
add up to at most 2.5 units of the relative error 2 ** -p, which are at most 5 ulp; cosine is never zero, because no
number of these types is a multiple of pi / 2.

Complex numbers, with ``e = exp(-2 |b|)`` and ``t = tanh b``, without a subtraction of nearly equal numbers and without
overflow for large ``b``::

    tan(a + ib) = (sin a cos a (4 e / (1 + e)²) + i t) / (cos² a + sin² a t²)

Every factor has a relative error of a few ulp, and the sum in the denominator has two terms that are not negative, so
that each part has a relative error of at most 16 ulp.

Source: the formula for tan in ``stablehlo/transforms/StablehloCompatibilityExpanderPatterns.td`` of openxla/stablehlo,
``(tan a + i tanh b) / (1 - i tan a tanh b)``, to which the one above is equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.expansion.result_accuracy import asked_accuracy
from vhlo_tools.expansion.values import elementwise, in_wider_float
from vhlo_tools.rewriting import Build, MatchFailure, Rewriter, constant_like


def _tan(rewriter: Rewriter) -> Sequence[Any]:
    if asked := asked_accuracy(rewriter):
        raise MatchFailure(f"it asks for {asked}, which is not known of a quotient")
    value = rewriter.operand(0)
    if rewriter.is_complex(value.type):
        return [_of_complex(rewriter, value)]
    return [in_wider_float(rewriter, value, lambda wide: _of_real(rewriter, wide))]


def _of_real(rewriter: Rewriter, value: Any) -> Any:
    sine, cosine = (elementwise(rewriter, name, value) for name in ("sine", "cosine"))
    return elementwise(rewriter, "divide", sine, cosine)


def _of_complex(rewriter: Rewriter, value: Any) -> Any:
    def op(name: str, *operands: Any) -> Any:
        return elementwise(rewriter, name, *operands)

    part_type = rewriter.tensor(rewriter.shape(value.type), value.type.element_type.element_type)
    a, b = (rewriter.make(f"stablehlo.{name}", [value], part_type) for name in ("real", "imag"))
    one = constant_like(rewriter, a, 1)
    sine, cosine, tanh = op("sine", a), op("cosine", a), op("tanh", b)
    size = op("abs", b)
    falling = op("exponential", op("negate", op("add", size, size)))
    half = op("divide", op("add", falling, falling), op("add", one, falling))
    # 4 e / (1 + e)² as 2 e / (1 + e) times 2 / (1 + e).
    steep = op("multiply", half, op("divide", op("add", one, one), op("add", one, falling)))
    below = op("multiply", sine, tanh)
    below = op("add", op("multiply", cosine, cosine), op("multiply", below, below))
    real = op("divide", op("multiply", op("multiply", sine, cosine), steep), below)
    return rewriter.make("stablehlo.complex", [real, op("divide", tanh, below)], value.type)


EXACT: Final[Mapping[str, Build]] = {"stablehlo.tan": _tan}
