func.func @main(%arg0: tensor<4xf8E4M3B11FNUZ>) -> tensor<4xf32> {
  %0 = stablehlo.convert %arg0 : (tensor<4xf8E4M3B11FNUZ>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
