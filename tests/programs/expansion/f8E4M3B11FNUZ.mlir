func.func @main(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) -> (tensor<8x4xf32>) {
  %0 = stablehlo.convert %a : (tensor<8x4xf32>) -> tensor<8x4xf8E4M3B11FNUZ>
  %1 = stablehlo.convert %b : (tensor<8x4xf32>) -> tensor<8x4xf8E4M3B11FNUZ>
  %2 = stablehlo.add %0, %1 : tensor<8x4xf8E4M3B11FNUZ>
  %3 = stablehlo.convert %2 : (tensor<8x4xf8E4M3B11FNUZ>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}
