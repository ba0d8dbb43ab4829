func.func @main(%arg0: tensor<4xi2>) -> tensor<4xui2> {
  %0 = stablehlo.convert %arg0 : (tensor<4xi2>) -> tensor<4xui2>
  return %0 : tensor<4xui2>
}
