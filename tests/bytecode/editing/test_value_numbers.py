"""Values are found again wherever ops move to."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.walking import walk
from support.weights_files import round_trip

import vhlo_tools as vt
from vhlo_tools.bytecode import Operation, encode
from vhlo_tools.bytecode.editing import Values, read_orders, write_orders
from vhlo_tools.bytecode.program import UseListOrder

PROGRAM = """
func.func @main(%a: tensor<3xf32>, %p: tensor<i1>) -> tensor<3xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %1 = stablehlo.constant dense<[4.0, 5.0, 6.0]> : tensor<3xf32>
  %2 = stablehlo.subtract %0, %a : tensor<3xf32>
  %3 = "stablehlo.if"(%p) ({
    %4 = stablehlo.subtract %1, %2 : tensor<3xf32>
    stablehlo.return %4 : tensor<3xf32>
  }, {
    %4 = stablehlo.constant dense<7.0> : tensor<3xf32>
    %5 = stablehlo.add %4, %0 : tensor<3xf32>
    stablehlo.return %5 : tensor<3xf32>
  }) : (tensor<i1>) -> tensor<3xf32>
  return %3 : tensor<3xf32>
}
"""


@pytest.fixture
def with_outer_value() -> vt.Artifact:
    """Return a program whose function uses a constant of the module, as some producers make them."""
    artifact = vt.serialize(PROGRAM)
    file = artifact.copy_of_file()
    (module,) = file.ir.operations
    function = module.regions[0].blocks[0].operations[0]
    body = function.regions[0].blocks[0].operations
    values = Values(module, 0)
    function.isolated = False
    module.regions[0].blocks[0].operations.insert(0, body.pop(0))
    values.number()
    return vt.open_artifact(encode(file))


def operands_in(artifact: vt.Artifact) -> list[tuple[int, ...]]:
    return [item.operands for item in walk(artifact.file.ir) if isinstance(item, Operation) and item.operands]


def test_values_from_outside_of_the_function(with_outer_value: vt.Artifact, tmp_path: Path) -> None:
    # The constant of the module is number 0, and all others move up by what it was before.
    subtract, condition, *_ = operands_in(with_outer_value)
    assert (subtract, condition) == ((0, 1), (2,))
    outer, *_ = vt.constants(with_outer_value)
    assert (outer.path, outer.uses) == ("0:stablehlo.constant", 2)
    result, restored = round_trip(with_outer_value, tmp_path)
    assert [each.path for each in result.record.moved] == [
        "@main/0:stablehlo.constant",
        "@main/2:stablehlo.if/1/0:stablehlo.constant",
    ]
    assert vt.diff(with_outer_value, restored, locations=True) == []
    assert operands_in(restored) == operands_in(with_outer_value)


def test_nothing_moved_is_nothing_changed() -> None:
    file = vt.serialize(PROGRAM).copy_of_file()
    before = [item.operands for item in walk(file.ir) if isinstance(item, Operation)]
    values = Values(file.ir.operations[0], 0)
    assert [item.operands for item in walk(file.ir) if isinstance(item, Operation)] != before
    values.number()
    assert [item.operands for item in walk(file.ir) if isinstance(item, Operation)] == before


def test_a_value_that_is_out_of_reach() -> None:
    file = vt.serialize(PROGRAM).copy_of_file()
    body = file.ir.operations[0].regions[0].blocks[0].operations[0].regions[0].blocks[0]
    values = Values(file.ir.operations[0], 0)
    branch = next(op for op in body.operations if op.regions)
    # Into the first branch, while the second uses it too.
    branch.regions[0].blocks[0].operations.insert(0, body.operations.pop(0))
    with pytest.raises(ValueError, match="used outside its scope"):
        values.number()


@pytest.mark.parametrize("arguments", [1, 2])
def test_the_number_of_a_single_argument_is_not_written(arguments: int) -> None:
    types = ", ".join(f"%a{number}: tensor<f32>" for number in range(arguments))
    file = vt.serialize(f"func.func @main({types}) {{ return }}").copy_of_file()
    block = file.ir.operations[0].regions[0].blocks[0].operations[0].regions[0].blocks[0]
    assert len(block.arguments) == arguments
    orders = [UseListOrder(arguments - 1, False, (1, 0))]
    write_orders(block, orders)
    assert [each.value for each in block.use_lists] == [None if arguments == 1 else 1]
    assert read_orders(block) == orders
