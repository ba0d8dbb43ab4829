func.func @main(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = stablehlo.convert %a : (tensor<8x4xf32>) -> tensor<8x4xf8E4M3FNUZ>
  %1 = stablehlo.convert %b : (tensor<8x4xf32>) -> tensor<8x4xf8E4M3FNUZ>
  %2 = stablehlo.add %0, %1 : tensor<8x4xf8E4M3FNUZ>
  %3 = stablehlo.convert %2 : (tensor<8x4xf8E4M3FNUZ>) -> tensor<8x4xf32>
  %4 = stablehlo.convert %a : (tensor<8x4xf32>) -> tensor<8x4xf8E5M2FNUZ>
  %5 = stablehlo.convert %b : (tensor<8x4xf32>) -> tensor<8x4xf8E5M2FNUZ>
  %6 = stablehlo.add %4, %5 : tensor<8x4xf8E5M2FNUZ>
  %7 = stablehlo.convert %6 : (tensor<8x4xf8E5M2FNUZ>) -> tensor<8x4xf32>
  return %3, %7 : tensor<8x4xf32>, tensor<8x4xf32>
}
