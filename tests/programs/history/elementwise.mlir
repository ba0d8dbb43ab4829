func.func @main(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xi1>) {
  %0 = stablehlo.tanh %x : tensor<3x4xf32>
  %1 = stablehlo.exponential %0 : tensor<3x4xf32>
  %2 = stablehlo.sine %y : tensor<3x4xf32>
  %3 = stablehlo.multiply %1, %2 : tensor<3x4xf32>
  %4 = stablehlo.abs %3 : tensor<3x4xf32>
  %5 = stablehlo.sqrt %4 : tensor<3x4xf32>
  %6 = stablehlo.logistic %5 : tensor<3x4xf32>
  %7 = stablehlo.maximum %6, %x : tensor<3x4xf32>
  %8 = stablehlo.compare GT, %7, %y, FLOAT : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
  %9 = stablehlo.select %8, %7, %y : tensor<3x4xi1>, tensor<3x4xf32>
  return %9, %8 : tensor<3x4xf32>, tensor<3x4xi1>
}
