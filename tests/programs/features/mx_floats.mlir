func.func @main(%arg0: tensor<4xf4E2M1FN>, %arg1: tensor<4xf8E8M0FNU>) -> (tensor<4xf6E2M3FN>, tensor<4xf6E3M2FN>) {
  %0 = stablehlo.convert %arg0 : (tensor<4xf4E2M1FN>) -> tensor<4xf6E2M3FN>
  %1 = stablehlo.convert %arg1 : (tensor<4xf8E8M0FNU>) -> tensor<4xf6E3M2FN>
  return %0, %1 : tensor<4xf6E2M3FN>, tensor<4xf6E3M2FN>
}
