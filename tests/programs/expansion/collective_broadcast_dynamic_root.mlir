module @dynamic_root attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
    %roots = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
    %0:2 = "stablehlo.collective_broadcast"(%a, %b, %roots) {
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root
    } : (tensor<4xf32>, tensor<4xi32>, tensor<2xi32>) -> (tensor<4xf32>, tensor<4xi32>)
    return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
  }
}
