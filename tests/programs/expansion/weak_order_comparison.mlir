func.func @main(%a: tensor<8xf32>) -> (tensor<8xi1>, tensor<8xi1>) {
  %b = stablehlo.constant dense<[0.0, -0.0, 1.0, -1.0, 0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000]> : tensor<8xf32>
  %0 = stablehlo.compare LE, %a, %b, WEAKORDER : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  %1 = stablehlo.compare EQ, %a, %b, WEAKORDER : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  return %0, %1 : tensor<8xi1>, tensor<8xi1>
}
