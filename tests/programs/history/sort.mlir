func.func @main(%keys: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xi32>) {
  %order = stablehlo.iota dim = 1 : tensor<3x5xi32>
  %0:2 = "stablehlo.sort"(%keys, %order) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %less = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<3x5xf32>, tensor<3x5xi32>) -> (tensor<3x5xf32>, tensor<3x5xi32>)
  return %0#0, %0#1 : tensor<3x5xf32>, tensor<3x5xi32>
}
