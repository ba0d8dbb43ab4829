func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.tanh"(%a) {
    result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
