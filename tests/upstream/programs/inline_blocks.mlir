// RUN: opt --inline --no-implicit-module %s
// CHECK: func.func @main
// CHECK: call @of_blocks
// CHECK-NOT: call @of_one
// CHECK: stablehlo.tanh
// CHECK: call @in_a_circle
// CHECK: func.func private @of_blocks
// CHECK: func.func private @in_a_circle
// CHECK-NOT: func.func private @of_one
module {
  func.func @main(%a: tensor<f32>, %c: i1) -> tensor<f32> {
    %0 = func.call @of_blocks(%a, %c) : (tensor<f32>, i1) -> tensor<f32>
    %1 = func.call @of_one(%0) : (tensor<f32>) -> tensor<f32>
    %2 = func.call @in_a_circle(%1) : (tensor<f32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
  func.func private @of_one(%a: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.tanh %a : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @of_blocks(%a: tensor<f32>, %c: i1) -> tensor<f32> {
    cf.cond_br %c, ^one, ^other
  ^one:
    %0 = stablehlo.sine %a : tensor<f32>
    return %0 : tensor<f32>
  ^other:
    return %a : tensor<f32>
  }
  func.func private @in_a_circle(%a: tensor<f32>) -> tensor<f32> {
    %0 = func.call @in_a_circle(%a) : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
