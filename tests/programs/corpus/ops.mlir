// Small programs that together use every op with structure of its own; `tests/corpus_tools/make_corpus.py` lets old releases write
// them. Everything is in the generic form, which releases of all ages parse; `array<i64: ...>` is respelled for those
// that want dense attributes instead. Each program starts after a line with its name.

// ----- all_gather
func.func @main(%arg0: tensor<4x2xf32>) -> tensor<8x2xf32> {
  %0 = "stablehlo.all_gather"(%arg0) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 3, type = 0>, use_global_device_ids} : (tensor<4x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}
// ----- all_gather_plain
func.func @main(%arg0: tensor<4x2xf32>) -> tensor<8x2xf32> {
  %0 = "stablehlo.all_gather"(%arg0) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}
// ----- all_reduce
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%arg0) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%1) : (tensor<f32>) -> ()
  }) {replica_groups = dense<[[0, 1, -1], [2, 3, 4]]> : tensor<2x3xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- reduce_scatter
func.func @main(%arg0: tensor<4xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.reduce_scatter"(%arg0) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%1) : (tensor<f32>) -> ()
  }) {scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>} : (tensor<4xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ----- all_to_all
func.func @main(%arg0: tensor<2x4xf32>) -> tensor<4x2xf32> {
  %0 = "stablehlo.all_to_all"(%arg0) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
// ----- all_to_all_plain
func.func @main(%arg0: tensor<2x4xf32>) -> tensor<4x2xf32> {
  %0 = "stablehlo.all_to_all"(%arg0) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
// ----- collective_permute
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.collective_permute"(%arg0) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 7, type = 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- cross_replica_sum
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.cross-replica-sum"(%arg0) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- ids
func.func @main() -> (tensor<ui32>, tensor<ui32>) {
  %0 = "stablehlo.partition_id"() : () -> tensor<ui32>
  %1 = "stablehlo.replica_id"() : () -> tensor<ui32>
  return %0, %1 : tensor<ui32>, tensor<ui32>
}
// ----- tokens
func.func @main(%arg0: tensor<3xi32>) -> !stablehlo.token {
  %0 = "stablehlo.create_token"() : () -> !stablehlo.token
  %1 = "stablehlo.after_all"(%0, %0) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token
  %2:3 = "stablehlo.infeed"(%1) {infeed_config = "feed", layout = [[0], [0, 1]]} : (!stablehlo.token) -> (tensor<3xi32>, tensor<2x2xf32>, !stablehlo.token)
  %3 = "stablehlo.outfeed"(%arg0, %2#0, %2#2) {outfeed_config = ""} : (tensor<3xi32>, tensor<3xi32>, !stablehlo.token) -> !stablehlo.token
  return %3 : !stablehlo.token
}
// ----- send_recv
func.func @main(%arg0: tensor<3xi32>, %arg1: !stablehlo.token) -> (tensor<3xi32>, !stablehlo.token) {
  %0 = "stablehlo.send"(%arg0, %arg1) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true} : (tensor<3xi32>, !stablehlo.token) -> !stablehlo.token
  %1:2 = "stablehlo.recv"(%0) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>, is_host_transfer = true} : (!stablehlo.token) -> (tensor<3xi32>, !stablehlo.token)
  return %1#0, %1#1 : tensor<3xi32>, !stablehlo.token
}
// ----- batch_norm
func.func @main(%x: tensor<2x2x2x2xf32>, %s: tensor<2xf32>, %o: tensor<2xf32>) -> (tensor<2x2x2x2xf32>, tensor<2x2x2x2xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<2x2x2x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2x2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  %1 = "stablehlo.batch_norm_inference"(%x, %s, %o, %0#1, %0#2) {epsilon = 1.0e-30 : f32, feature_index = 3 : i64} : (tensor<2x2x2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x2x2x2xf32>
  %2:3 = "stablehlo.batch_norm_grad"(%x, %s, %0#1, %0#2, %1) {epsilon = 0.0 : f32, feature_index = 0 : i64} : (tensor<2x2x2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2x2x2xf32>) -> (tensor<2x2x2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  return %0#0, %2#0 : tensor<2x2x2x2xf32>, tensor<2x2x2x2xf32>
}
// ----- broadcast
func.func @main(%arg0: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %0 = "stablehlo.broadcast"(%arg0) {broadcast_sizes = array<i64: 2, 3>} : (tensor<4xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}
// ----- broadcast_in_dim
func.func @main(%arg0: tensor<1x4xf32>, %arg1: tensor<f32>) -> (tensor<4x3x2xf32>, tensor<5xf32>) {
  %0 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 1, 0>} : (tensor<1x4xf32>) -> tensor<4x3x2xf32>
  %1 = "stablehlo.broadcast_in_dim"(%arg1) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<5xf32>
  return %0, %1 : tensor<4x3x2xf32>, tensor<5xf32>
}
// ----- case
func.func @main(%i: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.case"(%i) ({
    "stablehlo.return"(%x) : (tensor<4xf32>) -> ()
  }, {
    %1 = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%1) : (tensor<4xf32>) -> ()
  }, {
    %1 = "stablehlo.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%1) : (tensor<4xf32>) -> ()
  }) : (tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- if
func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0:2 = "stablehlo.if"(%p) ({
    "stablehlo.return"(%x, %p) : (tensor<4xf32>, tensor<i1>) -> ()
  }, {
    %1 = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.not"(%p) : (tensor<i1>) -> tensor<i1>
    "stablehlo.return"(%1, %2) : (tensor<4xf32>, tensor<i1>) -> ()
  }) : (tensor<i1>) -> (tensor<4xf32>, tensor<i1>)
  return %0#0 : tensor<4xf32>
}
// ----- while
func.func @main(%n: tensor<i32>, %x: tensor<f32>) -> (tensor<i32>, tensor<f32>) {
  %one = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %0:2 = "stablehlo.while"(%n, %x) ({
  ^bb0(%i: tensor<i32>, %a: tensor<f32>):
    %1 = "stablehlo.compare"(%i, %one) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%1) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<f32>):
    %1 = "stablehlo.subtract"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %2 = "stablehlo.multiply"(%a, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%1, %2) : (tensor<i32>, tensor<f32>) -> ()
  }) : (tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>)
  return %0#0, %0#1 : tensor<i32>, tensor<f32>
}
// ----- nested_regions
func.func @main(%n: tensor<i32>, %x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
  %z = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0:2 = "stablehlo.while"(%n, %x) ({
  ^bb0(%i: tensor<i32>, %a: tensor<4xf32>):
    %1 = "stablehlo.compare"(%i, %n) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%1) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<4xf32>):
    %1 = "stablehlo.if"(%p) ({
      %3 = "stablehlo.case"(%i) ({
        %4 = "stablehlo.while"(%a) ({
        ^bb0(%b: tensor<4xf32>):
          "stablehlo.return"(%p) : (tensor<i1>) -> ()
        }, {
        ^bb0(%b: tensor<4xf32>):
          %5 = "stablehlo.add"(%b, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          "stablehlo.return"(%5) : (tensor<4xf32>) -> ()
        }) : (tensor<4xf32>) -> tensor<4xf32>
        "stablehlo.return"(%4) : (tensor<4xf32>) -> ()
      }, {
        "stablehlo.return"(%x) : (tensor<4xf32>) -> ()
      }) : (tensor<i32>) -> tensor<4xf32>
      "stablehlo.return"(%3) : (tensor<4xf32>) -> ()
    }, {
      %3 = "stablehlo.multiply"(%a, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%3) : (tensor<4xf32>) -> ()
    }) : (tensor<i1>) -> tensor<4xf32>
    "stablehlo.return"(%i, %1) : (tensor<i32>, tensor<4xf32>) -> ()
  }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}
// ----- cholesky
func.func @main(%arg0: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = "stablehlo.cholesky"(%arg0) {lower = true} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}
// ----- triangular_solve
func.func @main(%a: tensor<3x3xf32>, %b: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %1 = "stablehlo.triangular_solve"(%a, %0) {left_side = true, lower = false, unit_diagonal = true, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %2 = "stablehlo.triangular_solve"(%a, %1) {left_side = true, lower = false, unit_diagonal = true, transpose_a = #stablehlo<transpose ADJOINT>} : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %2 : tensor<3x2xf32>
}
// ----- compare_directions
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xi1> {
  %0 = "stablehlo.compare"(%a, %b) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %1 = "stablehlo.compare"(%a, %b) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type TOTALORDER>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %2 = "stablehlo.compare"(%a, %b) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %3 = "stablehlo.compare"(%a, %b) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %4 = "stablehlo.compare"(%0, %1) {comparison_direction = #stablehlo<comparison_direction LE>, compare_type = #stablehlo<comparison_type UNSIGNED>} : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %5 = "stablehlo.compare"(%2, %3) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type UNSIGNED>} : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %6 = "stablehlo.xor"(%4, %5) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return %6 : tensor<4xi1>
}
// ----- concatenate_slice_pad_reverse_transpose_reshape
func.func @main(%a: tensor<2x3xf32>, %z: tensor<f32>) -> tensor<13x2xf32> {
  %0 = "stablehlo.concatenate"(%a, %a, %a) {dimension = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x9xf32>
  %1 = "stablehlo.slice"(%0) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 2, 9>, strides = array<i64: 1, 2>} : (tensor<2x9xf32>) -> tensor<2x4xf32>
  %2 = "stablehlo.pad"(%1, %z) {edge_padding_low = array<i64: 0, 1>, edge_padding_high = array<i64: 0, -1>, interior_padding = array<i64: 0, 3>} : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x13xf32>
  %3 = "stablehlo.reverse"(%2) {dimensions = array<i64: 0, 1>} : (tensor<2x13xf32>) -> tensor<2x13xf32>
  %4 = "stablehlo.transpose"(%3) {permutation = array<i64: 1, 0>} : (tensor<2x13xf32>) -> tensor<13x2xf32>
  %5 = "stablehlo.reshape"(%4) : (tensor<13x2xf32>) -> tensor<26xf32>
  %6 = "stablehlo.reshape"(%5) : (tensor<26xf32>) -> tensor<13x2xf32>
  return %6 : tensor<13x2xf32>
}
// ----- convolution
func.func @main(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x2x4xf32>) -> tensor<1x8x8x4xf32> {
  %0 = "stablehlo.convolution"(%x, %w) {batch_group_count = 1 : i64, feature_group_count = 2 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, window_strides = array<i64: 1, 1>, padding = dense<[[1, 1], [1, 1]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGHEST>]} : (tensor<1x8x8x4xf32>, tensor<3x3x2x4xf32>) -> tensor<1x8x8x4xf32>
  return %0 : tensor<1x8x8x4xf32>
}
// ----- convolution_window_reversal
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = "stablehlo.convolution"(%x, %w) {batch_group_count = 1 : i64, feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, window_reversal = array<i1: true, false>} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}
// ----- convolution_window_reversal_dense
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = "stablehlo.convolution"(%x, %w) {batch_group_count = 1 : i64, feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, window_reversal = dense<[true, false]> : tensor<2xi1>} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}
// ----- dot
func.func @main(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = "stablehlo.dot"(%x, %w) {precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
// ----- dot_general
func.func @main(%x: tensor<5x2x3xf32>, %w: tensor<5x3x4xf32>) -> tensor<5x2x4xf32> {
  %0 = "stablehlo.dot_general"(%x, %w) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]} : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
  return %0 : tensor<5x2x4xf32>
}
// ----- dot_general_plain
func.func @main(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = "stablehlo.dot_general"(%x, %w) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
// ----- einsum
func.func @main(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>) {
  %0 = "stablehlo.einsum"(%x, %w) {einsum_config = "ab,bc->ac"} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = "stablehlo.unary_einsum"(%x) {einsum_config = "ab->a"} : (tensor<2x3xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<2xf32>
}
// ----- torch_index_select
func.func @main(%x: tensor<5x1x5xi32>, %i: tensor<2xi32>) -> tensor<2x1x5xi32> {
  %0 = "stablehlo.torch_index_select"(%x, %i) {dim = 0 : i64, batch_dims = 0 : i64} : (tensor<5x1x5xi32>, tensor<2xi32>) -> tensor<2x1x5xi32>
  return %0 : tensor<2x1x5xi32>
}
// ----- dynamic_shapes
func.func @main(%x: tensor<?xf32>, %s: tensor<2xi32>, %n: tensor<1xindex>, %one: tensor<1xi32>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xi32>) {
  %0 = "stablehlo.dynamic_broadcast_in_dim"(%x, %s) {broadcast_dimensions = array<i64: 1>} : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %1 = "stablehlo.dynamic_reshape"(%x, %n) : (tensor<?xf32>, tensor<1xindex>) -> tensor<?xf32>
  %2 = "stablehlo.dynamic_iota"(%n) {iota_dimension = 0 : i64} : (tensor<1xindex>) -> tensor<?xi32>
  %3 = "stablehlo.real_dynamic_slice"(%1, %one, %one, %one) : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return %0, %3, %2 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xi32>
}
// ----- dynamic_broadcast_expanding
func.func @main(%x: tensor<1x?x4xf32>, %s: tensor<3xi64>) -> tensor<?x?x?xf32> {
  %0 = "stablehlo.dynamic_broadcast_in_dim"(%x, %s) {broadcast_dimensions = array<i64: 0, 1, 2>, known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1, 2>} : (tensor<1x?x4xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}
// ----- dynamic_pad
func.func @main(%x: tensor<?xf32>, %v: tensor<f32>, %l: tensor<1xi32>, %h: tensor<1xi32>, %i: tensor<1xi32>) -> tensor<?xf32> {
  %0 = "stablehlo.dynamic_pad"(%x, %v, %l, %h, %i) : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// ----- dynamic_conv
func.func @main(%x: tensor<1x8x8x2xf32>, %w: tensor<3x3x2x4xf32>, %p: tensor<2x2xi64>) -> tensor<1x?x?x4xf32> {
  %0 = "stablehlo.dynamic_conv"(%x, %w, %p) {batch_group_count = 1 : i64, feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, window_strides = array<i64: 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>, tensor<2x2xi64>) -> tensor<1x?x?x4xf32>
  return %0 : tensor<1x?x?x4xf32>
}
// ----- dynamic_gather
func.func @main(%x: tensor<2x4x9xf32>, %i: tensor<1x5x2xi32>, %s: tensor<3xi32>) -> tensor<1x5x8xf32> {
  %0 = "stablehlo.dynamic_gather"(%x, %i, %s) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, indices_are_sorted = true} : (tensor<2x4x9xf32>, tensor<1x5x2xi32>, tensor<3xi32>) -> tensor<1x5x8xf32>
  return %0 : tensor<1x5x8xf32>
}
// ----- dynamic_slices
func.func @main(%x: tensor<4x4xf32>, %i: tensor<i64>, %u: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<4x4xf32>) {
  %0 = "stablehlo.dynamic_slice"(%x, %i, %i) {slice_sizes = array<i64: 2, 2>} : (tensor<4x4xf32>, tensor<i64>, tensor<i64>) -> tensor<2x2xf32>
  %1 = "stablehlo.dynamic_update_slice"(%x, %u, %i, %i) : (tensor<4x4xf32>, tensor<2x2xf32>, tensor<i64>, tensor<i64>) -> tensor<4x4xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<4x4xf32>
}
// ----- shape_assertion
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "stablehlo.get_dimension_size"(%x) {dimension = 0 : i64} : (tensor<?xf32>) -> tensor<i32>
  %1 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
  %2 = "stablehlo.compare"(%0, %1) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.custom_call"(%2, %0) {call_target_name = "shape_assertion", has_side_effect = true, error_message = "at least {1} rows", api_version = 2 : i32} : (tensor<i1>, tensor<i32>) -> ()
  return %x : tensor<?xf32>
}
// ----- set_dimension_size
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>> {
  %0 = "stablehlo.set_dimension_size"(%x, %n) {dimension = 0 : i64} : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
  return %0 : tensor<?xf32, #stablehlo.bounds<4>>
}
// ----- bounds
func.func @main(%x: tensor<?x3x?xf32, #stablehlo.bounds<4, ?, ?>>) -> tensor<?x3x?xf32, #stablehlo.bounds<4, ?, ?>> {
  %0 = "stablehlo.abs"(%x) : (tensor<?x3x?xf32, #stablehlo.bounds<4, ?, ?>>) -> tensor<?x3x?xf32, #stablehlo.bounds<4, ?, ?>>
  return %0 : tensor<?x3x?xf32, #stablehlo.bounds<4, ?, ?>>
}
// ----- fft
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "stablehlo.fft"(%x) {fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 8>} : (tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>
  %1 = "stablehlo.fft"(%0) {fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 4, 5>} : (tensor<4x5xcomplex<f32>>) -> tensor<4x5xcomplex<f32>>
  %2 = "stablehlo.fft"(%1) {fft_type = #stablehlo<fft_type IFFT>, fft_length = array<i64: 4, 5>} : (tensor<4x5xcomplex<f32>>) -> tensor<4x5xcomplex<f32>>
  %3 = "stablehlo.fft"(%2) {fft_type = #stablehlo<fft_type IRFFT>, fft_length = array<i64: 8>} : (tensor<4x5xcomplex<f32>>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}
// ----- gather
func.func @main(%x: tensor<3x4x2xi32>, %i: tensor<2x3x2xi64>) -> tensor<2x3x2x2xi32> {
  %0 = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [1, 0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 2, 2>, indices_are_sorted = false} : (tensor<3x4x2xi32>, tensor<2x3x2xi64>) -> tensor<2x3x2x2xi32>
  return %0 : tensor<2x3x2x2xi32>
}
// ----- scatter
func.func @main(%x: tensor<3x4x2xi64>, %i: tensor<2x3x2xi64>, %u: tensor<2x3x2x2xi64>) -> tensor<3x4x2xi64> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<i64>, %b: tensor<i64>):
    %1 = "stablehlo.add"(%a, %b) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    "stablehlo.return"(%1) : (tensor<i64>) -> ()
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2, 3], inserted_window_dims = [0], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 2>, indices_are_sorted = true, unique_indices = true} : (tensor<3x4x2xi64>, tensor<2x3x2xi64>, tensor<2x3x2x2xi64>) -> tensor<3x4x2xi64>
  return %0 : tensor<3x4x2xi64>
}
// ----- scatter_batching
func.func @main(%x: tensor<2x8xf32>, %i: tensor<2x3x1xi64>, %u: tensor<2x3xf32>) -> tensor<2x8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    "stablehlo.return"(%b) : (tensor<f32>) -> ()
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>} : (tensor<2x8xf32>, tensor<2x3x1xi64>, tensor<2x3xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
// ----- scatter_variadic
func.func @main(%x: tensor<4xf32>, %y: tensor<4xi32>, %i: tensor<1x1xi32>, %u: tensor<1xf32>, %v: tensor<1xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %0:2 = "stablehlo.scatter"(%x, %y, %i, %u, %v) ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    "stablehlo.return"(%c, %d) : (tensor<f32>, tensor<i32>) -> ()
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<4xf32>, tensor<4xi32>, tensor<1x1xi32>, tensor<1xf32>, tensor<1xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
}
// ----- tuples
func.func @main(%x: tensor<4xf32>, %t: tuple<tensor<i32>, tuple<tensor<2xf64>, tuple<>>>) -> tuple<tensor<4xf32>, tensor<i32>> {
  %0 = "stablehlo.get_tuple_element"(%t) {index = 0 : i32} : (tuple<tensor<i32>, tuple<tensor<2xf64>, tuple<>>>) -> tensor<i32>
  %1 = "stablehlo.tuple"(%x, %0) : (tensor<4xf32>, tensor<i32>) -> tuple<tensor<4xf32>, tensor<i32>>
  return %1 : tuple<tensor<4xf32>, tensor<i32>>
}
// ----- map
func.func @main(%x: tensor<4x2xf32>, %y: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = "stablehlo.map"(%x, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = "stablehlo.power"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%1) : (tensor<f32>) -> ()
  }) {dimensions = array<i64: 0, 1>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
// ----- reduce
func.func @main(%x: tensor<4x2xf32>, %y: tensor<4x2xi32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %f = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %i = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %0:2 = "stablehlo.reduce"(%x, %y, %f, %i) ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %1 = "stablehlo.compare"(%a, %c) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = "stablehlo.select"(%1, %a, %c) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %3 = "stablehlo.select"(%1, %b, %d) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    "stablehlo.return"(%2, %3) : (tensor<f32>, tensor<i32>) -> ()
  }) {dimensions = array<i64: 0>} : (tensor<4x2xf32>, tensor<4x2xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<2xi32>
}
// ----- reduce_window
func.func @main(%x: tensor<4x4xf32>, %z: tensor<f32>) -> tensor<2x5xf32> {
  %0 = "stablehlo.reduce_window"(%x, %z) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%1) : (tensor<f32>) -> ()
  }) {window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>} : (tensor<4x4xf32>, tensor<f32>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}
// ----- select_and_scatter
func.func @main(%x: tensor<4x4xf32>, %s: tensor<2x2xf32>, %z: tensor<f32>) -> tensor<4x4xf32> {
  %0 = "stablehlo.select_and_scatter"(%x, %s, %z) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = "stablehlo.compare"(%a, %b) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%1) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%1) : (tensor<f32>) -> ()
  }) {window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>, padding = dense<0> : tensor<2x2xi64>} : (tensor<4x4xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// ----- sort
func.func @main(%x: tensor<4x2xf32>, %y: tensor<4x2xi32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
  %0:2 = "stablehlo.sort"(%x, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %1 = "stablehlo.compare"(%a, %b) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type TOTALORDER>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%1) : (tensor<i1>) -> ()
  }) {dimension = 0 : i64, is_stable = true} : (tensor<4x2xf32>, tensor<4x2xi32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  return %0#0, %0#1 : tensor<4x2xf32>, tensor<4x2xi32>
}
// ----- rng
func.func @main(%a: tensor<f32>, %b: tensor<f32>, %s: tensor<2xi64>, %k: tensor<2xui64>) -> (tensor<4x5xf32>, tensor<4x5xf32>, tensor<4xui32>) {
  %0 = "stablehlo.rng"(%a, %b, %s) {rng_distribution = #stablehlo<rng_distribution NORMAL>} : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x5xf32>
  %1 = "stablehlo.rng"(%a, %b, %s) {rng_distribution = #stablehlo<rng_distribution UNIFORM>} : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x5xf32>
  %2:2 = "stablehlo.rng_bit_generator"(%k) {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  %3:2 = "stablehlo.rng_bit_generator"(%2#0) {rng_algorithm = #stablehlo<rng_algorithm PHILOX>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  %4:2 = "stablehlo.rng_bit_generator"(%3#0) {rng_algorithm = #stablehlo<rng_algorithm DEFAULT>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  return %0, %1, %4#1 : tensor<4x5xf32>, tensor<4x5xf32>, tensor<4xui32>
}
// ----- optimization_barrier
func.func @main(%x: tensor<4xf32>, %t: !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token) {
  %0:2 = "stablehlo.optimization_barrier"(%x, %t) : (tensor<4xf32>, !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  return %0#0, %0#1 : tensor<4xf32>, !stablehlo.token
}
// ----- select_clamp_iota_complex
func.func @main(%p: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>, %s: tensor<f32>) -> (tensor<4xcomplex<f32>>, tensor<4x2xi32>, tensor<4xf32>) {
  %0 = "stablehlo.select"(%p, %x, %y) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.clamp"(%s, %0, %s) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = "stablehlo.complex"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  %3 = "stablehlo.real"(%2) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %4 = "stablehlo.imag"(%2) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %5 = "stablehlo.atan2"(%3, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<4x2xi32>
  return %2, %6, %5 : tensor<4xcomplex<f32>>, tensor<4x2xi32>, tensor<4xf32>
}
// ----- unary_float
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>) {
  %0 = "stablehlo.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.cbrt"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "stablehlo.ceil"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "stablehlo.cosine"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "stablehlo.exponential"(%3) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = "stablehlo.exponential_minus_one"(%4) : (tensor<4xf32>) -> tensor<4xf32>
  %6 = "stablehlo.floor"(%5) : (tensor<4xf32>) -> tensor<4xf32>
  %7 = "stablehlo.log"(%6) : (tensor<4xf32>) -> tensor<4xf32>
  %8 = "stablehlo.log_plus_one"(%7) : (tensor<4xf32>) -> tensor<4xf32>
  %9 = "stablehlo.logistic"(%8) : (tensor<4xf32>) -> tensor<4xf32>
  %10 = "stablehlo.negate"(%9) : (tensor<4xf32>) -> tensor<4xf32>
  %11 = "stablehlo.round_nearest_afz"(%10) : (tensor<4xf32>) -> tensor<4xf32>
  %12 = "stablehlo.round_nearest_even"(%11) : (tensor<4xf32>) -> tensor<4xf32>
  %13 = "stablehlo.rsqrt"(%12) : (tensor<4xf32>) -> tensor<4xf32>
  %14 = "stablehlo.sign"(%13) : (tensor<4xf32>) -> tensor<4xf32>
  %15 = "stablehlo.sine"(%14) : (tensor<4xf32>) -> tensor<4xf32>
  %16 = "stablehlo.sqrt"(%15) : (tensor<4xf32>) -> tensor<4xf32>
  %17 = "stablehlo.tanh"(%16) : (tensor<4xf32>) -> tensor<4xf32>
  %18 = "stablehlo.is_finite"(%17) : (tensor<4xf32>) -> tensor<4xi1>
  %19 = "stablehlo.reduce_precision"(%17) {exponent_bits = 5 : i32, mantissa_bits = 10 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %19, %18 : tensor<4xf32>, tensor<4xi1>
}
// ----- binary
func.func @main(%x: tensor<4xi32>, %y: tensor<4xi32>) -> tensor<4xi16> {
  %0 = "stablehlo.add"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %1 = "stablehlo.and"(%0, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %2 = "stablehlo.divide"(%1, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %3 = "stablehlo.maximum"(%2, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %4 = "stablehlo.minimum"(%3, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %5 = "stablehlo.multiply"(%4, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %6 = "stablehlo.or"(%5, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %7 = "stablehlo.power"(%6, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %8 = "stablehlo.remainder"(%7, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %9 = "stablehlo.shift_left"(%8, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %10 = "stablehlo.shift_right_arithmetic"(%9, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %11 = "stablehlo.shift_right_logical"(%10, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %12 = "stablehlo.subtract"(%11, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %13 = "stablehlo.xor"(%12, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %14 = "stablehlo.not"(%13) : (tensor<4xi32>) -> tensor<4xi32>
  %15 = "stablehlo.popcnt"(%14) : (tensor<4xi32>) -> tensor<4xi32>
  %16 = "stablehlo.count_leading_zeros"(%15) : (tensor<4xi32>) -> tensor<4xi32>
  %17 = "stablehlo.convert"(%16) : (tensor<4xi32>) -> tensor<4xi8>
  %18 = "stablehlo.bitcast_convert"(%16) : (tensor<4xi32>) -> tensor<4x2xi16>
  %19 = "stablehlo.convert"(%17) : (tensor<4xi8>) -> tensor<4xi16>
  return %19 : tensor<4xi16>
}
// ----- quantize
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.uniform_quantize"(%x) : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5:-3>>
  %1 = "stablehlo.add"(%0, %0) : (tensor<4x!quant.uniform<i8:f32, 0.5:-3>>, tensor<4x!quant.uniform<i8:f32, 0.5:-3>>) -> tensor<4x!quant.uniform<i8:f32, 0.5:-3>>
  %2 = "stablehlo.uniform_dequantize"(%1) : (tensor<4x!quant.uniform<i8:f32, 0.5:-3>>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
// ----- quantize_storage
func.func @main(%x: tensor<4x!quant.uniform<u8:f32, 0.003921568627450980:128>>, %y: tensor<2x!quant.uniform<i8<-127:127>:f32, 3.0e-2>>, %z: tensor<2x!quant.uniform<i32:f32, 1.0>>, %w: tensor<2x!quant.uniform<i4<-7:7>:f32, 2.0>>) -> tensor<4xf32> {
  %0 = "stablehlo.uniform_dequantize"(%x) : (tensor<4x!quant.uniform<u8:f32, 0.003921568627450980:128>>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- quantize_per_axis
func.func @main(%x: tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.5, 0.25:3, 1.0e-3:-4}>>) -> tensor<2x3xf32> {
  %0 = "stablehlo.uniform_dequantize"(%x) : (tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.5, 0.25:3, 1.0e-3:-4}>>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// ----- calls
module @model attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 8 : i32} {
  func.func public @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0:2 = func.call @twice(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %1 = func.call @once(%0#1) : (tensor<4xf32>) -> tensor<4xf32>
    func.call @nothing() : () -> ()
    return %0#0, %1 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @twice(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = func.call @once(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = func.call @once(%y) : (tensor<4xf32>) -> tensor<4xf32>
    return %1, %0 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @once(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @nothing() {
    return
  }
}
// ----- nested_modules
module @outer {
  module @inner attributes {a.tag = "inner"} {
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      return %x : tensor<4xf32>
    }
  }
  module {
  }
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
// ----- empty_module
module {
}
// ----- empty_module_with_attributes
module @nothing attributes {a.text = "text", a.number = -7 : i32} {
}
// ----- declaration
func.func private @elsewhere(tensor<4xf32>, tensor<*xf32>) -> tensor<4xf32>
// ----- unranked
func.func @main(%x: tensor<*xf32>) -> tensor<*xf32> {
  %0 = "stablehlo.abs"(%x) : (tensor<*xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
// ----- witness
func.func @main(%w: !shape.witness) -> !shape.witness {
  return %w : !shape.witness
}
// ----- compute_reshape_shape
func.func @main(%n: index, %s: tensor<2xi32>) -> tensor<2xi32> {
  %0 = "stablehlo.compute_reshape_shape"(%n, %s) : (index, tensor<2xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
// ----- cstr_reshapable
func.func @main(%n: index, %s: tensor<2xi32>) -> !shape.witness {
  %0 = "stablehlo.cstr_reshapable"(%n, %s) : (index, tensor<2xi32>) -> !shape.witness
  return %0 : !shape.witness
}
// ----- trace
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  "stablehlo.trace"(%x) {tag = "probe"} : (tensor<4xf32>) -> ()
  return %x : tensor<4xf32>
}
// ----- collective_broadcast_plain
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.collective_broadcast"(%arg0) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- composite_attributes
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.composite"(%arg0) {name = "my.scale", decomposition = @scale, version = 3 : i32, composite_attributes = {rate = 5.0e-01 : f32, on = true, dims = dense<[0, 1]> : tensor<2xi64>, kind = f32, names = ["a", "b"], nested = {depth = 1 : i64}}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @scale(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  return %arg0 : tensor<4xf32>
}
// ----- async_collectives
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.async_start"(%arg0) ({
  ^bb0(%arg1: tensor<4xf32>):
    %2 = "stablehlo.all_reduce"(%arg1) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %3 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%3) : (tensor<f32>) -> ()
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%2) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>
  %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
