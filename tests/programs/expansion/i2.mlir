func.func @main(%a: tensor<8xi32>, %b: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %0 = stablehlo.convert %a : (tensor<8xi32>) -> tensor<8xi2>
  %1 = stablehlo.convert %b : (tensor<8xi32>) -> tensor<8xi2>
  %2 = stablehlo.add %0, %1 : tensor<8xi2>
  %3 = stablehlo.convert %2 : (tensor<8xi2>) -> tensor<8xi32>
  %4 = stablehlo.convert %a : (tensor<8xi32>) -> tensor<8xui2>
  %5 = stablehlo.multiply %4, %4 : tensor<8xui2>
  %6 = stablehlo.convert %5 : (tensor<8xui2>) -> tensor<8xi32>
  return %3, %6 : tensor<8xi32>, tensor<8xi32>
}
