func.func @main(%arg0: tensor<4xf8E4M3>) -> tensor<4xf8E3M4> {
  %0 = stablehlo.convert %arg0 : (tensor<4xf8E4M3>) -> tensor<4xf8E3M4>
  return %0 : tensor<4xf8E3M4>
}
