func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %0:2 = "stablehlo.while"(%zero, %x) ({
  ^bb0(%n: tensor<i32>, %v: tensor<4xf32>):
    %less = stablehlo.compare LT, %n, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }, {
  ^bb0(%n: tensor<i32>, %v: tensor<4xf32>):
    %next = stablehlo.add %n, %one : tensor<i32>
    %sum = stablehlo.add %v, %x : tensor<4xf32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<4xf32>
  }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
  %positive = stablehlo.compare GT, %i, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %1 = "stablehlo.if"(%positive) ({
    %cosine = stablehlo.cosine %0#1 : tensor<4xf32>
    stablehlo.return %cosine : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %2 = "stablehlo.case"(%i) ({
    stablehlo.return %zero : tensor<i32>
  }, {
    stablehlo.return %one : tensor<i32>
  }, {
    stablehlo.return %0#0 : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return %1, %2 : tensor<4xf32>, tensor<i32>
}
