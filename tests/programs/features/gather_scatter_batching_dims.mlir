func.func @main(%arg0: tensor<2x8xf32>, %arg1: tensor<2x3x1xi64>) -> tensor<2x3xf32> {
  %0 = "stablehlo.gather"(%arg0, %arg1) {
    dimension_numbers = #stablehlo.gather<
      collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0],
      start_index_map = [1], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 1>
  } : (tensor<2x8xf32>, tensor<2x3x1xi64>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
