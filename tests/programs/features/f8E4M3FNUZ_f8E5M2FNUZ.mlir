func.func @main(%arg0: tensor<4xf8E4M3FNUZ>) -> tensor<4xf8E5M2FNUZ> {
  %0 = stablehlo.convert %arg0 : (tensor<4xf8E4M3FNUZ>) -> tensor<4xf8E5M2FNUZ>
  return %0 : tensor<4xf8E5M2FNUZ>
}
