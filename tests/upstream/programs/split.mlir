// RUN: not opt --split-input-file %s
// CHECK: @first
// CHECK: // -----
// CHECK: @third
// RUN: opt --split-input-file --verify-diagnostics %s
// CHECK: @first
func.func @first() {
  return
}

// -----

func.func @second(%a: tensor<2xf32>) -> tensor<3xf32> {
  // expected-error@+1 {{must have the same shape}}
  %0 = "stablehlo.abs"(%a) : (tensor<2xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @third() {
  return
}
