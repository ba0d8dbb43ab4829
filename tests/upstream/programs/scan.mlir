// RUN: opt --chlo-legalize-to-stablehlo %s | translate --interpret
// RUN: opt --pass-pipeline='builtin.module(func.func(chlo-legalize-to-stablehlo,canonicalize))' %s | translate --interpret
// RUN: opt --chlo-pre-serialization-pipeline %s | translate --interpret
func.func @backwards() {
  %input = stablehlo.constant dense<[(1.0, 0.0), (2.0, 1.0)]> : tensor<2xcomplex<f32>>
  %init = stablehlo.constant dense<(0.0, 3.0)> : tensor<complex<f32>>
  // Not in the op's own form, in which releases before jaxlib 0.10.1 read no attributes.
  %0:2 = "chlo.scan"(%input, %init) <{dimension = 0 : i64, is_reverse = true,
      operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%element: tensor<complex<f32>>, %sum: tensor<complex<f32>>):
    %1 = stablehlo.add %element, %sum : tensor<complex<f32>>
    stablehlo.return %1, %1 : tensor<complex<f32>>, tensor<complex<f32>>
  }) : (tensor<2xcomplex<f32>>, tensor<complex<f32>>) -> (tensor<2xcomplex<f32>>, tensor<complex<f32>>)
  check.expect_eq_const %0#0, dense<[(3.0, 4.0), (2.0, 4.0)]> : tensor<2xcomplex<f32>>
  check.expect_eq_const %0#1, dense<(3.0, 4.0)> : tensor<complex<f32>>
  return
}
