func.func @main(%a: tensor<1x4x4x2xf8E4M3FN>, %b: tensor<3x3x2x2xf8E5M2>) -> tensor<1x2x2x2xf32> {
  %0 = stablehlo.convolution(%a, %b)
    dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x4x4x2xf8E4M3FN>, tensor<3x3x2x2xf8E5M2>) -> tensor<1x2x2x2xf32>
  return %0 : tensor<1x2x2x2xf32>
}
