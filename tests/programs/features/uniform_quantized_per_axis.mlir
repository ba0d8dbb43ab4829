func.func @main(%arg0: tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>> {
  %0 = stablehlo.uniform_quantize %arg0 : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  return %0 : tensor<2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
}
