func.func @main(%a: tensor<2x8xf32>, %b: tensor<2x3x1xi32>, %c: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x8xf32>) {
  %0 = "stablehlo.gather"(%a, %b) {
    dimension_numbers = #stablehlo.gather<
      collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0],
      start_index_map = [1], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 1>
  } : (tensor<2x8xf32>, tensor<2x3x1xi32>) -> tensor<2x3xf32>
  %1 = "stablehlo.scatter"(%a, %b, %c) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %2 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {
    scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0],
      scatter_dims_to_operand_dims = [1], index_vector_dim = 2>
  } : (tensor<2x8xf32>, tensor<2x3x1xi32>, tensor<2x3xf32>) -> tensor<2x8xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x8xf32>
}
