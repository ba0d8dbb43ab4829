// RUN: opt -stablehlo-compatibility-expander=target=1.3.0 %s
// CHECK: stablehlo.sine
// CHECK: stablehlo.cosine
// CHECK: stablehlo.divide
func.func @f(%a: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.tan %a : tensor<f32>
  return %0 : tensor<f32>
}
