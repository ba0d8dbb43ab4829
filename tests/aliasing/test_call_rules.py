"""The rules for aliases of custom calls, on shapes."""

from __future__ import annotations

import pytest

from vhlo_tools.aliasing import Alias, Array, CallAliases, Opaque, Shape, Signature, Tuple, call_violations

F4, S4, ANY = Array("f32", (4,)), Array("s32", (4,)), Array("f32", (None,))


@pytest.mark.parametrize(
    ("operand", "result", "fits"),
    [
        (F4, F4, True),
        (F4, ANY, True),
        (F4, S4, False),
        (F4, Array("f32", (4, 1)), False),
        (Tuple((F4, ANY)), Tuple((ANY, F4)), True),
        (Tuple((F4, S4)), Tuple((F4, F4)), False),
        # The elements that both have are alike.
        (Tuple((F4,)), Tuple((F4, F4)), False),
        (Tuple(()), Tuple((F4,)), False),
        (F4, Tuple((F4,)), False),
        (Opaque(), Opaque(), True),
    ],
)
def test_a_result_has_the_shape_of_its_operand(operand: Shape, result: Shape, fits: bool) -> None:
    call = CallAliases("@main/0", "call", Signature((operand,), result), (Alias((), 0, (), "must-alias"),))
    assert [each.rule for each in call_violations(call)] == ([] if fits else ["shape"])
