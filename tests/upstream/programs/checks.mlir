// RUN: translate --interpret --split-input-file %s
// RUN: opt --split-input-file %s
// CHECK: check.expect_eq_const %c, dense<[1, 2]> : tensor<2xi64>
// CHECK: check.expect_almost_eq_const %cst, dense<[1.050000e+00, 0x7FC00000]> : tensor<2xf32>, tolerance = 1.000000e-01
// CHECK: check.expect_close %cst, %cst, max_ulp_difference = 2 : tensor<2xf32>, tensor<2xf32>
// CHECK: check.expect_eq_const %c, dense<[1, 2]> : tensor<2xi8>
// RUN: opt --split-input-file %s | translate --interpret --split-input-file
// RUN: opt --split-input-file --mlir-print-op-generic %s
// CHECK: "check.expect_eq_const"(
// RUN: opt --split-input-file --mlir-print-op-generic %s | translate --interpret --split-input-file
func.func @pretty() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
  %1 = stablehlo.constant dense<[1.0, 0x7FC00000]> : tensor<2xf32>
  %2 = stablehlo.constant dense<[(1.0, 2.0)]> : tensor<1xcomplex<f32>>
  check.expect_eq %0, %0 : tensor<2xi64>
  check.expect_eq_const %0, dense<[1,  // check.expect_eq in a comment stays
    2]> : tensor<2xi64>
  check.expect_almost_eq %1, %1 : tensor<2xf32>
  check.expect_almost_eq %1, %1, tolerance = 0.1 : tensor<2xf32>
  check.expect_almost_eq_const %1, dense<[1.00001, 0x7FC00000]> : tensor<2xf32>
  check.expect_almost_eq_const %1, dense<[1.05, 0x7FC00000]> : tensor<2xf32> {tolerance = 0.1 : f64}
  check.expect_almost_eq_const %2, dense<[(1.0, 2.0)]> : tensor<1xcomplex<f32>>
  check.expect_close %1, %1, max_ulp_difference = 0 : tensor<2xf32>, tensor<2xf32>
  check.expect_close %1, %1, max_ulp_difference = 2, min_ulp_difference = 0 : tensor<2xf32>, tensor<2xf32>
  return
}

// -----

func.func @generic() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi8>
  %1 = stablehlo.constant dense<1.0> : tensor<f64>
  "check.expect_eq"(%0, %0) : (tensor<2xi8>, tensor<2xi8>) -> ()
  "check.expect_eq_const"(%0) <{value = dense<[1, 2]> : tensor<2xi8>}> : (tensor<2xi8>) -> ()
  "check.expect_eq_const"(%0) {value = dense<[1, 2]> : tensor<2xi8>} : (tensor<2xi8>) -> ()
  "check.expect_almost_eq_const"(%1) {value = dense<1.1> : tensor<f64>, tolerance = 0.2 : f64} : (tensor<f64>) -> ()
  "check.expect_close"(%1, %1) {max_ulp_difference = 0 : ui64} : (tensor<f64>, tensor<f64>) -> ()
  return
}

// -----

func.func @call() {
  %0 = stablehlo.constant dense<1.0> : tensor<f64>
  stablehlo.custom_call @check.expect_almost_eq(%0, %0) {has_side_effect = true} : (tensor<f64>, tensor<f64>) -> ()
  return
}
