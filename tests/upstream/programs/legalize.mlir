// RUN: opt --stablehlo-legalize-to-vhlo --vhlo-to-version='target=1.0.0' %s
// CHECK: vhlo.func_v1 @f(
// CHECK: "vhlo.tanh_v1"(%arg0)
// RUN: opt -pass-pipeline='builtin.module(stablehlo-legalize-to-vhlo,vhlo-to-version{target=1.0.0})' %s
// CHECK: "vhlo.tanh_v1"(%arg0)
// RUN: opt --stablehlo-legalize-to-vhlo --stablehlo-deserialize %s
// CHECK: stablehlo.tanh %arg0 : tensor<2xf32>
func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.tanh %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}
