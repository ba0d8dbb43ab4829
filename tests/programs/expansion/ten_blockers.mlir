module @ten_blockers attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func @main(%a: tensor<2x4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<2x4xbf16>) -> (tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x2xf32>) {
    %tan = stablehlo.tan %a {model.layer = "first"} : tensor<2x4xf32> loc("model.py":10:3)
    %exp = stablehlo.exponential %tan {result_accuracy = #stablehlo.result_accuracy<ulps = 4, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x4xf32> loc("model.py":11:3)
    %sine = stablehlo.sine %exp {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<2x4xf32> loc("model.py":12:3)
    %half = "stablehlo.composite"(%sine) <{name = "model.half", decomposition = @half}> ({
      ^bb0(%x: tensor<f32>):
        stablehlo.return %x : tensor<f32>
    }) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("model.py":14:3)
    %dot = stablehlo.dot_general %b, %b, contracting_dims = [1] x [1], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<2x2xf32> loc("model.py":15:3)
    %sums:2 = "stablehlo.all_reduce"(%half, %dot) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<2x4xf32>, tensor<2x2xf32>) -> (tensor<2x4xf32>, tensor<2x2xf32>) loc("model.py":16:3)
    %meshed = "stablehlo.all_gather"(%sums#0) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 1>]>, axes = [#stablehlo.axis_ref<name = "x">]>}> : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("model.py":17:3)
    %future = "stablehlo.async_start"(%meshed) ({
      ^bb0(%x: tensor<2x4xf32>):
        %g = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<2x4xf32>) -> tensor<2x4xf32>
        stablehlo.return %g : tensor<2x4xf32>
    }) : (tensor<2x4xf32>) -> !stablehlo.future<tensor<2x4xf32>> loc("model.py":18:3)
    %done = "stablehlo.async_done"(%future) : (!stablehlo.future<tensor<2x4xf32>>) -> tensor<2x4xf32> loc("model.py":19:3)
    %indices = stablehlo.constant dense<[[[3], [0]], [[1], [2]]]> : tensor<2x2x1xi32>
    %rows = "stablehlo.gather"(%a, %indices) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x4xf32>, tensor<2x2x1xi32>) -> tensor<2x2xf32> loc("model.py":20:3)
    %pinned = stablehlo.custom_call @Pin(%done) {api_version = 4 : i32} : (tensor<2x4xf32>) -> memref<2x4xf32> loc("model.py":21:3)
    %unpinned = stablehlo.custom_call @Unpin(%pinned) {api_version = 4 : i32} : (memref<2x4xf32>) -> tensor<2x4xf32> loc("model.py":22:3)
    return %tan, %rows, %unpinned, %meshed, %sums#1 : tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x2xf32>
  }
  func.func private @half(%a: tensor<2x4xf32>) -> tensor<2x4xf32> {
    %h = stablehlo.constant dense<0.5> : tensor<2x4xf32>
    %0 = stablehlo.multiply %a, %h : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
