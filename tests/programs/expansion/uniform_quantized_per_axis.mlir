func.func @main(%a: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = stablehlo.uniform_quantize %a : (tensor<2x8xf32>) -> tensor<2x8x!quant.uniform<i8:f32:0, {0.5, 0.25:3}>>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<2x8x!quant.uniform<i8:f32:0, {0.5, 0.25:3}>>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}
