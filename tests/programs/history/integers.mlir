func.func @main(%a: tensor<6xi64>, %b: tensor<6xui8>, %c: tensor<6xi4>) -> (tensor<6xi64>, tensor<6xui8>, tensor<6xi4>) {
  %one = stablehlo.constant dense<1> : tensor<6xi64>
  %three = stablehlo.constant dense<3> : tensor<6xi64>
  %0 = stablehlo.shift_left %a, %three : tensor<6xi64>
  %1 = stablehlo.xor %0, %one : tensor<6xi64>
  %2 = stablehlo.popcnt %1 : tensor<6xi64>
  %3 = stablehlo.remainder %1, %three : tensor<6xi64>
  %4 = stablehlo.add %2, %3 : tensor<6xi64>
  %5 = stablehlo.not %b : tensor<6xui8>
  %6 = stablehlo.count_leading_zeros %5 : tensor<6xui8>
  %7 = stablehlo.negate %c : tensor<6xi4>
  return %4, %6, %7 : tensor<6xi64>, tensor<6xui8>, tensor<6xi4>
}
