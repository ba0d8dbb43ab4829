// RUN: translate --interpret --args='[dense<[1, 2]> : tensor<2xi32>, dense<3> : tensor<2xi32>]' %s
// CHECK: tensor<2xi32> {
// CHECK:   [4, 5]
// CHECK: }
// RUN: translate --interpret --interpreter-print-dense --args='[dense<1> : tensor<2xi32>, dense<3> : tensor<2xi32>]' %s
// CHECK: dense<4> : tensor<2xi32>
// RUN: not translate --interpret --args=nothing %s
// CHECK: array attribute string for args, i.e. --args=[dense<1> : tensor<2xi32>, ...]
// RUN: not translate --interpret --args='[4.0 : f32]' %s
// CHECK: expected dense elements attribute for args elements
// RUN: not translate --interpret %s
// CHECK: incorrect number of arguments specified, provided 0 inputs but function expected 2
// RUN: not translate --interpret --args='[dense<1> : tensor<2xi32>, dense<1> : tensor<3xi32>]' %s
// CHECK: invalid input argument type at index 1, input type was tensor<3xi32> but entry function expected tensor<2xi32>
// RUN: translate --serialize --target=1.0.0 %s | translate --deserialize --print-stablehlo-version
// CHECK: // Reading portable artifact with StableHLO version: 1.0.0
// CHECK: stablehlo.add
// RUN: translate --serialize --target=current --strip-debuginfo %s | translate --deserialize --mlir-print-debuginfo
// CHECK: loc(unknown)
// RUN: not translate --serialize %s
// CHECK: error
// RUN: not translate %s
// CHECK: --serialize, --deserialize, --interpret
func.func @main(%a: tensor<2xi32>, %b: tensor<2xi32>) -> tensor<2xi32> {
  %0 = stablehlo.add %a, %b : tensor<2xi32>
  return %0 : tensor<2xi32>
}
