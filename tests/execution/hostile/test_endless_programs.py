"""Programs without an end, which only running them tells, for it depends on values: in a process with limits."""

from __future__ import annotations

import numpy as np
import pytest

import vhlo_tools as vt

SCALAR = "tensor<i32>"

LOOP = f"""func.func @main(%a: {SCALAR}) -> {SCALAR} {{
  %0 = stablehlo.while(%x = %a) : {SCALAR}
  cond {{
    %c = stablehlo.constant dense<0> : {SCALAR}
    %m = stablehlo.compare NE, %x, %c : ({SCALAR}, {SCALAR}) -> tensor<i1>
    stablehlo.return %m : tensor<i1>
  }} do {{
    stablehlo.return %x : {SCALAR}
  }}
  return %0 : {SCALAR}
}}"""

#: Deep as its argument says, and without an end below zero.
RECURSION = f"""func.func @main(%a: {SCALAR}) -> {SCALAR} {{
  %c = stablehlo.constant dense<0> : {SCALAR}
  %m = stablehlo.compare EQ, %a, %c : ({SCALAR}, {SCALAR}) -> tensor<i1>
  %0 = "stablehlo.if"(%m) ({{
    stablehlo.return %a : {SCALAR}
  }}, {{
    %one = stablehlo.constant dense<1> : {SCALAR}
    %less = stablehlo.subtract %a, %one : {SCALAR}
    %1 = func.call @main(%less) : ({SCALAR}) -> {SCALAR}
    %2 = stablehlo.add %1, %one : {SCALAR}
    stablehlo.return %2 : {SCALAR}
  }}) : (tensor<i1>) -> {SCALAR}
  return %0 : {SCALAR}
}}"""


def value(program: str, number: int) -> int:
    (result,) = vt.run(program, [np.int32(number)], engine="reference", timeout=20)
    return int(result)


def test_a_loop_without_an_end_is_ended_and_one_with_an_end_is_not() -> None:
    with pytest.raises(vt.EngineTimeoutError, match="1 s"):
        vt.run(LOOP, [np.int32(1)], engine="reference", timeout=1)
    assert value(LOOP, 0) == 0


def test_recursion_without_an_end_is_told_as_the_crash_that_it_is_and_the_next_run_is_right() -> None:
    with pytest.raises(vt.EngineCrashError, match="SIGSEGV"):
        value(RECURSION, -1)
    assert value(RECURSION, 5) == 5
