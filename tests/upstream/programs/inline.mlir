// RUN: opt --inline %s
// CHECK: func.func @main
// CHECK: stablehlo.tanh
// CHECK: return
// CHECK-NOT: @callee
// RUN: opt --canonicalize --cse --symbol-dce %s
// CHECK: call @callee
// CHECK: func.func private @callee
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = func.call @callee(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @callee(%a: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.tanh %a : tensor<f32>
  return %0 : tensor<f32>
}
