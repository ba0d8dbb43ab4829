func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.exponential"(%a) {
    result_accuracy = #stablehlo.result_accuracy<ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
