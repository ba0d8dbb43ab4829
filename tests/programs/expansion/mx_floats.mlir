func.func @main(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = stablehlo.convert %a : (tensor<8x4xf32>) -> tensor<8x4xf4E2M1FN>
  %1 = stablehlo.convert %b : (tensor<8x4xf32>) -> tensor<8x4xf4E2M1FN>
  %2 = stablehlo.add %0, %1 : tensor<8x4xf4E2M1FN>
  %3 = stablehlo.convert %2 : (tensor<8x4xf4E2M1FN>) -> tensor<8x4xf32>
  %4 = stablehlo.convert %a : (tensor<8x4xf32>) -> tensor<8x4xf6E2M3FN>
  %5 = stablehlo.convert %b : (tensor<8x4xf32>) -> tensor<8x4xf6E2M3FN>
  %6 = stablehlo.add %4, %5 : tensor<8x4xf6E2M3FN>
  %7 = stablehlo.convert %6 : (tensor<8x4xf6E2M3FN>) -> tensor<8x4xf32>
  %8 = stablehlo.convert %a : (tensor<8x4xf32>) -> tensor<8x4xf6E3M2FN>
  %9 = stablehlo.convert %b : (tensor<8x4xf32>) -> tensor<8x4xf6E3M2FN>
  %10 = stablehlo.add %8, %9 : tensor<8x4xf6E3M2FN>
  %11 = stablehlo.convert %10 : (tensor<8x4xf6E3M2FN>) -> tensor<8x4xf32>
  // A zero has no equal in f8E8M0FNU, and engines differ in what it becomes.
  %least = stablehlo.constant dense<0.125> : tensor<8x4xf32>
  %abs = stablehlo.abs %a : tensor<8x4xf32>
  %12 = stablehlo.maximum %abs, %least : tensor<8x4xf32>
  %13 = stablehlo.convert %12 : (tensor<8x4xf32>) -> tensor<8x4xf8E8M0FNU>
  %14 = stablehlo.convert %13 : (tensor<8x4xf8E8M0FNU>) -> tensor<8x4xf32>
  return %3, %7, %11, %14 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}
