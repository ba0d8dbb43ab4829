"""The first op where two programs part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.cli.main import main

VECTOR = np.array([1.5, 2.5, 3.5], np.float32)


def program(*ops: str, returned: str = "%r") -> str:
    body = "\n".join(ops)
    return f"func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {{\n{body}\nreturn {returned} : tensor<3xf32>\n}}"


def op(name: str, kind: str, *operands: str) -> str:
    return f"{name} = stablehlo.{kind} {', '.join(operands)} : tensor<3xf32>"


def divergence(before: str, after: str, **options: Any) -> Any:
    report = vt.verify(before, after, [VECTOR], bisect=True, **options)
    assert not report.passed
    assert report.looked_for_divergence
    return report.divergence


HEAD = (op("%0", "add", "%a", "%a"), op("%1", "tanh", "%0"))
TAIL = (op("%3", "negate", "%2"), op("%r", "add", "%3", "%1"))


def test_an_op_that_is_another_is_named() -> None:
    before = program(*HEAD, op("%2", "sine", "%1"), *TAIL)
    after = program(*HEAD, op("%2", "cosine", "%1"), *TAIL)
    found = divergence(before, after)
    assert (found.before.op, found.after.op) == ("stablehlo.sine", "stablehlo.cosine")
    assert found.before.path == "@main/2:stablehlo.sine"
    assert found.inputs_agree
    assert found.comparison.outside == 3


def test_operands_that_are_swapped_are_named() -> None:
    before = program(*HEAD, op("%2", "subtract", "%1", "%0"), *TAIL)
    after = program(*HEAD, op("%2", "subtract", "%0", "%1"), *TAIL)
    found = divergence(before, after)
    assert found.before.path == "@main/2:stablehlo.subtract"
    assert not found.inputs_agree
    assert "its operands differ, or are results of ops that only one program has" in str(found)


def test_ops_that_stand_for_one_are_compared_by_what_came_of_them() -> None:
    before = program(*HEAD, op("%2", "tan", "%1"), *TAIL)
    wrong = (op("%x", "sine", "%1"), op("%y", "cosine", "%1"), op("%2", "multiply", "%x", "%y"))
    found = divergence(before, program(*HEAD, *wrong, *TAIL))
    assert (found.before.op, found.after.op) == ("stablehlo.tan", "stablehlo.multiply")


def test_an_op_that_came_in_between_does_not_hide_it() -> None:
    between = (op("%n", "negate", "%a"), op("%m", "negate", "%n"), op("%0", "add", "%m", "%a"))
    before = program(*HEAD, op("%2", "sine", "%1"), *TAIL)
    after = program(*between, HEAD[1], op("%2", "cosine", "%1"), *TAIL)
    found = divergence(before, after)
    assert (found.before.op, found.after.op) == ("stablehlo.sine", "stablehlo.cosine")


LOOP = """
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %w:2 = stablehlo.while(%i = %zero, %v = %a) : tensor<i32>, tensor<3xf32>
    cond { %c = stablehlo.compare LE, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1> }
    do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %l = stablehlo.compare LT, %i, LIMIT : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %n = stablehlo.negate %v : tensor<3xf32>
      %s = stablehlo.select %l, %v, %n : tensor<i1>, tensor<3xf32>
      stablehlo.return %j, %s : tensor<i32>, tensor<3xf32>
    }"""


def test_the_iteration_of_a_loop_is_named() -> None:
    before, after = (program(LOOP.replace("LIMIT", each), returned="%w#1") for each in ("%two", "%one"))
    found = divergence(before, after)
    assert found.before.op == "stablehlo.compare"
    assert found.iteration == (1,)
    assert "in iteration [1] of the loops around it" in str(found)


def test_locations_tell_which_op_stands_for_which() -> None:
    def located(name: str, kind: str, line: int) -> str:
        return f'{op(name, kind, "%a")} loc("model.py":{line}:1)'

    # In another order, which says nothing.
    before = program(located("%0", "sine", 1), located("%1", "negate", 2), op("%r", "add", "%0", "%1"))
    after = program(located("%1", "negate", 2), located("%0", "cosine", 1), op("%r", "add", "%0", "%1"))
    found = divergence(before, after)
    assert '"model.py":1:1' in (found.before.location, found.after.location)


def test_programs_that_compute_the_same_have_none() -> None:
    report = vt.verify(program(*HEAD, returned="%1"), program(*HEAD, returned="%1"), [VECTOR], bisect=True)
    assert report.passed
    assert not report.looked_for_divergence


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_the_command_line_names_it(output_format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, kind in (("a.mlir", "sine"), ("b.mlir", "cosine")):
        (tmp_path / name).write_text(program(*HEAD, op("%2", kind, "%1"), *TAIL))
    arguments = ["verify", str(tmp_path / "a.mlir"), str(tmp_path / "b.mlir"), "--bisect", "--format", output_format]
    assert main(arguments) == 1
    said = capsys.readouterr().out
    if output_format == "json":
        found = json.loads(said)["divergence"]
        assert (found["before"]["op"], found["after"]["op"]) == ("stablehlo.sine", "stablehlo.cosine")
    else:
        assert "the programs diverge at stablehlo.sine: its operands agree" in said
        assert "second: result 0 of @main/2:stablehlo.cosine" in said
