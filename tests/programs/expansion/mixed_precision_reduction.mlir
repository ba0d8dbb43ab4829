func.func @main(%a: tensor<4x8xbf16>) -> tensor<4xf32> {
  %init = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = "stablehlo.reduce"(%a, %init) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<4x8xbf16>, tensor<bf16>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
