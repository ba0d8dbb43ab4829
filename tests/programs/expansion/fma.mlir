// The call stands for an op, which no library that parses text knows yet.
func.func @main(%a: tensor<2x8xf32>, %b: tensor<2x8xf32>, %c: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = stablehlo.custom_call @vhlo_tools.fma(%a, %b, %c) : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
