func.func @main(%a: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = stablehlo.tan %a : tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
