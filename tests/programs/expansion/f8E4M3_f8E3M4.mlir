func.func @main(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = stablehlo.convert %a : (tensor<8x4xf32>) -> tensor<8x4xf8E4M3>
  %1 = stablehlo.convert %b : (tensor<8x4xf32>) -> tensor<8x4xf8E4M3>
  %2 = stablehlo.add %0, %1 : tensor<8x4xf8E4M3>
  %3 = stablehlo.convert %2 : (tensor<8x4xf8E4M3>) -> tensor<8x4xf32>
  %4 = stablehlo.convert %a : (tensor<8x4xf32>) -> tensor<8x4xf8E3M4>
  %5 = stablehlo.convert %b : (tensor<8x4xf32>) -> tensor<8x4xf8E3M4>
  %6 = stablehlo.add %4, %5 : tensor<8x4xf8E3M4>
  %7 = stablehlo.convert %6 : (tensor<8x4xf8E3M4>) -> tensor<8x4xf32>
  return %3, %7 : tensor<8x4xf32>, tensor<8x4xf32>
}
