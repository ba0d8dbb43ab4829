"""Programs that do not end."""

from __future__ import annotations

#: It does not end in a year, and no compiler finds out where it ends.
LOOP = """
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %n = stablehlo.constant dense<0> : tensor<i64>
  %most = stablehlo.constant dense<4611686018427387904> : tensor<i64>
  %0:2 = "stablehlo.while"(%n, %x) ({
  ^bb0(%i: tensor<i64>, %v: tensor<f32>):
    %less = stablehlo.compare LT, %i, %most, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }, {
  ^bb0(%i: tensor<i64>, %v: tensor<f32>):
    %one = stablehlo.constant dense<1> : tensor<i64>
    %j = stablehlo.add %i, %one : tensor<i64>
    %w = stablehlo.sine %v : tensor<f32>
    stablehlo.return %j, %w : tensor<i64>, tensor<f32>
  }) : (tensor<i64>, tensor<f32>) -> (tensor<i64>, tensor<f32>)
  return %0#1 : tensor<f32>
}
"""
