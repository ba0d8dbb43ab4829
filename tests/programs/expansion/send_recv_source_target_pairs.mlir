module @transfer attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %before = stablehlo.create_token : !stablehlo.token
    %sent = "stablehlo.send"(%a, %before) {
      channel_handle = #stablehlo.channel_handle<handle = 0, type = 1>, is_host_transfer = false,
      source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>
    } : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
    %0:2 = "stablehlo.recv"(%sent) {
      channel_handle = #stablehlo.channel_handle<handle = 0, type = 1>, is_host_transfer = false,
      source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>
    } : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
    return %0#0 : tensor<4xf32>
  }
}
