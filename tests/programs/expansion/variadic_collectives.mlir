module @variadic attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%a: tensor<4xf32>, %b: tensor<2x3xi32>) -> (tensor<8xf32>, tensor<4x3xi32>) {
    %0:2 = "stablehlo.all_gather"(%a, %b) {
      all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>
    } : (tensor<4xf32>, tensor<2x3xi32>) -> (tensor<8xf32>, tensor<4x3xi32>)
    return %0#0, %0#1 : tensor<8xf32>, tensor<4x3xi32>
  }
}
