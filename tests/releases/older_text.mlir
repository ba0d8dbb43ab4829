// Lists of integers as they were printed until early 2024: as tensors. Each piece says which release of jaxlib is the last
// that reads it.

// -----

// broadcast.broadcast_sizes, until 0.4.21
func.func @main(%a: tensor<2xf32>) {
  %r = "stablehlo.broadcast"(%a) {broadcast_sizes = dense<3> : tensor<1xi64>} : (tensor<2xf32>) -> tensor<3x2xf32>
  return
}

// -----

// broadcast_in_dim.broadcast_dimensions, until 0.4.23
func.func @main(%a: tensor<2xf32>) {
  %r = "stablehlo.broadcast_in_dim"(%a) {broadcast_dimensions = dense<1> : tensor<1xi64>} : (tensor<2xf32>) -> tensor<3x2xf32>
  return
}

// -----

// dynamic_broadcast_in_dim.broadcast_dimensions, until 0.4.23
func.func @main(%a: tensor<2xf32>, %s: tensor<2xi32>) {
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a, %s) {broadcast_dimensions = dense<1> : tensor<1xi64>} : (tensor<2xf32>, tensor<2xi32>) -> tensor<?x2xf32>
  return
}

// -----

// transpose.permutation, until 0.4.21
func.func @main(%a: tensor<2x3xf32>) {
  %r = "stablehlo.transpose"(%a) {permutation = dense<[1, 0]> : tensor<2xi64>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

// reverse.dimensions, until 0.4.21
func.func @main(%a: tensor<2x3xf32>) {
  %r = "stablehlo.reverse"(%a) {dimensions = dense<1> : tensor<1xi64>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

// slice.start_indices, until 0.4.21
func.func @main(%a: tensor<4xf32>) {
  %r = "stablehlo.slice"(%a) {start_indices = dense<0> : tensor<1xi64>, limit_indices = dense<2> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>} : (tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----

// pad.edge_padding_low, until 0.4.21
func.func @main(%a: tensor<2xf32>, %z: tensor<f32>) {
  %r = "stablehlo.pad"(%a, %z) {edge_padding_low = dense<1> : tensor<1xi64>, edge_padding_high = dense<1> : tensor<1xi64>, interior_padding = dense<0> : tensor<1xi64>} : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

// dynamic_slice.slice_sizes, until 0.4.21
func.func @main(%a: tensor<4xf32>, %i: tensor<i64>) {
  %r = "stablehlo.dynamic_slice"(%a, %i) {slice_sizes = dense<2> : tensor<1xi64>} : (tensor<4xf32>, tensor<i64>) -> tensor<2xf32>
  return
}

// -----

// gather.slice_sizes, until 0.4.23
func.func @main(%a: tensor<4x2xf32>, %i: tensor<3x1xi64>) {
  %r = "stablehlo.gather"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = dense<[1, 2]> : tensor<2xi64>, indices_are_sorted = false} : (tensor<4x2xf32>, tensor<3x1xi64>) -> tensor<3x2xf32>
  return
}

// -----

// fft.fft_length, until 0.4.21
func.func @main(%a: tensor<4xcomplex<f32>>) {
  %r = "stablehlo.fft"(%a) {fft_type = #stablehlo<fft_type FFT>, fft_length = dense<4> : tensor<1xi64>} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return
}

// -----

// reduce.dimensions, until 0.4.23
func.func @main(%a: tensor<4x6xf32>, %z: tensor<f32>) {
  %r = "stablehlo.reduce"(%a, %z) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) {dimensions = dense<1> : tensor<1xi64>} : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

// map.dimensions, until 0.4.23
func.func @main(%a: tensor<4xf32>) {
  %r = "stablehlo.map"(%a) ({
  ^bb0(%x: tensor<f32>):
    "stablehlo.return"(%x) : (tensor<f32>) -> ()
  }) {dimensions = dense<0> : tensor<1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// reduce_window.window_dimensions, until 0.4.23
func.func @main(%a: tensor<4xf32>, %z: tensor<f32>) {
  %r = "stablehlo.reduce_window"(%a, %z) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) {window_dimensions = dense<2> : tensor<1xi64>, window_strides = dense<1> : tensor<1xi64>, base_dilations = dense<1> : tensor<1xi64>, window_dilations = dense<1> : tensor<1xi64>} : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
  return
}

// -----

// select_and_scatter.window_dimensions, until 0.4.23
func.func @main(%a: tensor<4xf32>, %b: tensor<2xf32>, %z: tensor<f32>) {
  %r = "stablehlo.select_and_scatter"(%a, %b, %z) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.compare"(%x, %y) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%s) : (tensor<i1>) -> ()
  }, { ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) {window_dimensions = dense<2> : tensor<1xi64>, window_strides = dense<2> : tensor<1xi64>} : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

// convolution.window_strides, until 0.4.23
func.func @main(%a: tensor<1x4x1xf32>, %k: tensor<2x1x1xf32>) {
  %r = "stablehlo.convolution"(%a, %k) {window_strides = dense<1> : tensor<1xi64>, lhs_dilation = dense<1> : tensor<1xi64>, rhs_dilation = dense<1> : tensor<1xi64>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x4x1xf32>, tensor<2x1x1xf32>) -> tensor<1x3x1xf32>
  return
}

// -----

// convolution.window_reversal, until 0.4.23
func.func @main(%a: tensor<1x4x1xf32>, %k: tensor<2x1x1xf32>) {
  %r = "stablehlo.convolution"(%a, %k) {window_reversal = dense<false> : tensor<1xi1>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x4x1xf32>, tensor<2x1x1xf32>) -> tensor<1x3x1xf32>
  return
}
