"""Ops that move to other versions of theirs, each by what it is itself."""

from __future__ import annotations

import pytest
from support.corpus import EXAMPLES
from support.walking import walk

import vhlo_tools as vt
from vhlo_tools.artifact import retarget_file
from vhlo_tools.bytecode import Operation

pytestmark = pytest.mark.every_python

CONVOLUTIONS = """
func.func @main(%a: tensor<1x8x8x1xf32>, %w: tensor<3x3x1x1xf32>, %p: tensor<2x2xi64>, %v: tensor<8xf32>)
    -> (tensor<1x?x?x1xf32>, tensor<1x?x?x1xf32>) {
  %0 = "stablehlo.dynamic_conv"(%a, %w, %p) {ATTRIBUTES} : TYPES
  %1 = "stablehlo.dynamic_conv"(%a, %w, %p) {ATTRIBUTES} : TYPES
  return %0, %1 : tensor<1x?x?x1xf32>, tensor<1x?x?x1xf32>
}
""".replace(
    "ATTRIBUTES",
    "batch_group_count = 1 : i64, feature_group_count = 1 : i64, "
    "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>",
).replace("TYPES", "(tensor<1x8x8x1xf32>, tensor<3x3x1x1xf32>, tensor<2x2xi64>) -> tensor<1x?x?x1xf32>")


def test_what_is_computed_of_operands_is_computed_for_each_op() -> None:
    """Below 0.20.0 a convolution has its padding as an attribute too, whose shape is that of its operand."""
    artifact = vt.serialize(CONVOLUTIONS, "0.20.0")
    older = vt.retarget(artifact, "0.19.0", engine="bytes")
    assert older.text().count('padding = #vhlo.tensor_v1<dense<"0x0000000000000000"> : tensor<2x2xi64>>') == 2
    file = artifact.copy_of_file()
    second = [op for op in walk(file.ir) if isinstance(op, Operation) and len(op.operands) == 3][1]
    # Of the same attributes as the first, and of an operand that no convolution has: %v.
    second.operands = (3, *second.operands[1:])
    with pytest.raises(vt.MalformedArtifactError, match="requires a tensor with at least two dimensions as lhs"):
        retarget_file(file, vt.Version("0.19.0"))


def test_ops_that_are_at_the_target_already_stay_as_they_stand() -> None:
    """Nothing of them is written anew, so that the file does not grow."""
    artifact = vt.serialize(EXAMPLES / "saxpy.mlir", "1.8.0")
    moved = vt.retarget(artifact, "1.5.0", engine="bytes")

    def held(each: vt.Artifact) -> list[tuple[int | None, int | None]]:
        return [(op.properties, op.attributes) for op in walk(each.file.ir) if isinstance(op, Operation)]

    assert held(moved) == held(artifact)
    assert len(moved.file.properties) == len(artifact.file.properties)
    assert len(moved.file.attributes) == len(artifact.file.attributes)
