"""The op that crashed the process, or did not end, named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.bindings import Provider
from vhlo_tools.bindings.isolation import Limits, call
from vhlo_tools.execution.stepping.stepper import Stepper
from vhlo_tools.program import load_program


def evaluate_in_child(provider: Provider, digest: str, bytecode: bytes, arrays: Any) -> Any:
    return call(
        "support.isolated_functions:evaluate",
        provider.prefix,
        digest,
        bytecode,
        list(arrays),
        limits=Limits(seconds=2.0),
    )


def run(functions: str, op: str) -> Any:
    text = f"""{functions}
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{
  %0 = stablehlo.add %a, %a : tensor<2xf32>
  %1 = stablehlo.negate %0 : tensor<2xf32>
  %2 = {op} loc("model.py":30:4)
  %3 = stablehlo.add %2, %1 : tensor<2xf32>
  %4 = stablehlo.tanh %3 : tensor<2xf32>
  return %4 : tensor<2xf32>
}}"""
    return Stepper(load_program(text), None, evaluate_in_child).run([np.ones(2, np.float32)])


@pytest.mark.long
def test_an_op_that_does_not_end_is_named() -> None:
    loop = """stablehlo.while(%v = %1) : tensor<2xf32>
      cond { %t = stablehlo.constant dense<true> : tensor<i1> stablehlo.return %t : tensor<i1> }
      do { stablehlo.return %v : tensor<2xf32> }"""
    with pytest.raises(vt.EngineTimeoutError, match=r"model.py:30:4: stablehlo.while exceeds the time limit") as caught:
        run("", loop)
    assert caught.value.op == "stablehlo.while at model.py:30:4"
    assert caught.value.seconds == 2.0


def test_an_op_that_ends_the_process_is_named() -> None:
    endless = """func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = func.call @f(%a) : (tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> }"""
    with pytest.raises(vt.EngineCrashError, match=r"model.py:30:4: func.call: ") as caught:
        run(endless, "func.call @f(%1) : (tensor<2xf32>) -> tensor<2xf32>")
    assert caught.value.op == "func.call at model.py:30:4"
    assert caught.value.signal == "SIGSEGV"


def test_segments_may_be_evaluated_in_a_child_process() -> None:
    (found,) = run("", "stablehlo.exponential %1 : tensor<2xf32>")
    np.testing.assert_allclose(found, np.tanh(np.exp(np.full(2, -2.0)) - 2), rtol=1e-6)
