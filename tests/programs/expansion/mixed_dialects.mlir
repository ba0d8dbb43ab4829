sdy.mesh @m = <["a"=2]>
func.func @main(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}, %b: tensor<8x8xf32>
) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"a"}]>}) {
  %0 = stablehlo.add %a, %b : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@m, [{}, {"a"}]> : tensor<8x8xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.multiply %2, %a : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}
