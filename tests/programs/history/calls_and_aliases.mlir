func.func @main(%w: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %g: tensor<4xf32> {jax.buffer_donor = true})
    -> (tensor<4xf32>, tensor<f32>) {
  %0 = call @step(%w, %g) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %0, %1 : tensor<4xf32>, tensor<f32>
}
func.func private @step(%w: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %rate = stablehlo.constant dense<0.125> : tensor<4xf32>
  %0 = stablehlo.multiply %g, %rate : tensor<4xf32>
  %1 = stablehlo.subtract %w, %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
