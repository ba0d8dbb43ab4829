// RUN: opt --mlir-print-op-generic %s
// CHECK: "func.func"() <{
// CHECK: "stablehlo.add"(%arg0, %arg0) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
// RUN: opt --mlir-print-debuginfo %s
// CHECK: loc("there":3:4)
// RUN: opt --mlir-print-debuginfo --mlir-print-local-scope %s
// CHECK: stablehlo.add %arg0, %arg0 : tensor<3xi32> loc("there":3:4)
// RUN: opt --mlir-print-debuginfo --strip-debuginfo %s
// CHECK: loc(unknown)
// CHECK-NOT: there
// RUN: opt --mlir-elide-elementsattrs-if-larger=2 %s
// CHECK: dense_resource<__elided__>
// RUN: opt --emit-bytecode %s | opt --mlir-print-debuginfo
// CHECK: loc("there":3:4)
func.func @f(%a: tensor<3xi32>) -> tensor<3xi32> {
  %c = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %0 = stablehlo.add %a, %a : tensor<3xi32> loc("there":3:4)
  return %0 : tensor<3xi32>
}
