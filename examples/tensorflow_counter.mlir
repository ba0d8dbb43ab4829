module @a_inference_update_51__.3 attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [{alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 1 : i64}, output_index = array<i64: 1>}, {alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 2 : i64}, output_index = array<i64: 2>}, {alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 3 : i64}, output_index = array<i64: 3>}], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} {
  func.func private @Mean_reduction.1(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @Sum_reduction.2(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @main(%arg0: tensor<8x4xf32> loc("batch"), %arg1: tensor<i32> loc("rows"), %arg2: tensor<4xf32> loc("mean"), %arg3: tensor<4xf32> loc("squares")) -> (tensor<8x4xf32>, tensor<i32>, tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.convert %0 : tensor<8x4xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.convert %cst : tensor<f32>
    %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    %c = stablehlo.constant dense<8> : tensor<i32>
    %4 = stablehlo.convert %c : (tensor<i32>) -> tensor<f32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %6 = stablehlo.divide %3, %5 : tensor<4xf32>
    %7 = stablehlo.convert %6 : tensor<4xf32>
    %8 = stablehlo.subtract %7, %arg2 : tensor<4xf32>
    %cst_0 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %9 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %10 = stablehlo.add %9, %cst_1 : tensor<f32>
    %11 = stablehlo.divide %cst_0, %10 : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %13 = stablehlo.multiply %8, %12 : tensor<4xf32>
    %14 = stablehlo.add %arg2, %13 : tensor<4xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
    %16 = stablehlo.subtract %0, %15 : tensor<8x4xf32>
    %17 = stablehlo.broadcast_in_dim %7, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
    %18 = stablehlo.subtract %0, %17 : tensor<8x4xf32>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %20 = stablehlo.power %18, %19 : tensor<8x4xf32>
    %21 = stablehlo.convert %20 : tensor<8x4xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %22 = stablehlo.convert %cst_3 : tensor<f32>
    %23 = stablehlo.reduce(%21 init: %22) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    %24 = stablehlo.convert %23 : tensor<4xf32>
    %25 = stablehlo.multiply %8, %8 : tensor<4xf32>
    %cst_4 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %26 = stablehlo.multiply %9, %cst_4 : tensor<f32>
    %27 = stablehlo.divide %26, %10 : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %29 = stablehlo.multiply %25, %28 : tensor<4xf32>
    %30 = stablehlo.add %24, %29 : tensor<4xf32>
    %31 = stablehlo.add %arg3, %30 : tensor<4xf32>
    %32 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %33 = stablehlo.divide %31, %32 : tensor<4xf32>
    %cst_5 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %34 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %35 = stablehlo.add %33, %34 : tensor<4xf32>
    %36 = stablehlo.rsqrt %35 : tensor<4xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
    %38 = stablehlo.multiply %16, %37 : tensor<8x4xf32>
    %39 = stablehlo.reshape %38 : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c_6 = stablehlo.constant dense<8> : tensor<i32>
    %40 = stablehlo.add %arg1, %c_6 : tensor<i32>
    %41 = stablehlo.reshape %40 : (tensor<i32>) -> tensor<i32>
    %42 = mhlo.copy %41 : tensor<i32>
    %43 = stablehlo.reshape %14 : (tensor<4xf32>) -> tensor<4xf32>
    %44 = mhlo.copy %43 : tensor<4xf32>
    %45 = stablehlo.reshape %31 : (tensor<4xf32>) -> tensor<4xf32>
    %46 = mhlo.copy %45 : tensor<4xf32>
    return %39, %42, %44, %46 : tensor<8x4xf32>, tensor<i32>, tensor<4xf32>, tensor<4xf32>
  }
}
