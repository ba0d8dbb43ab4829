func.func @main(%x: tensor<3x3xf32>, %b: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT]
    : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %eye = stablehlo.constant dense<[[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]]> : tensor<3x3xf32>
  %1 = stablehlo.add %0, %eye : tensor<3x3xf32>
  %2 = "stablehlo.cholesky"(%1) {lower = true} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %3 = "stablehlo.triangular_solve"(%2, %b) {
    left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>
  } : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %3 : tensor<3x2xf32>
}
