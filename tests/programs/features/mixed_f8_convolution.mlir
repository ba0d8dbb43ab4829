func.func @main(%arg0: tensor<1x8x8x2xf8E4M3FN>, %arg1: tensor<3x3x2x4xf8E5M2>) -> tensor<1x6x6x4xf32> {
  %0 = stablehlo.convolution(%arg0, %arg1)
    dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x8x8x2xf8E4M3FN>, tensor<3x3x2x4xf8E5M2>) -> tensor<1x6x6x4xf32>
  return %0 : tensor<1x6x6x4xf32>
}
