// RUN: opt --chlo-legalize-to-stablehlo %s
// CHECK: stablehlo.add
// RUN: opt --pass-pipeline='builtin.module(func.func(chlo-legalize-to-stablehlo))' %s
// CHECK: stablehlo.add
// RUN: opt --chlo-pre-serialization-pipeline %s | translate --serialize --target=current | translate --deserialize
// CHECK: stablehlo.add
// RUN: not opt --pass-pipeline='builtin.module(chlo-legalize-to-stablehlo)' %s
// CHECK: restricted to 'func.func'
// RUN: not translate --serialize --target=current %s
// CHECK: error
func.func @f(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.broadcast_add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
