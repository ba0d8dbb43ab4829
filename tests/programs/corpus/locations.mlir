// Programs for every kind of source location, on ops, functions, block arguments and modules.

// ----- unknown_locations
module {
  func.func @main(%x: tensor<4xf32> loc(unknown)) -> tensor<4xf32> {
    %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc(unknown)
    return %0 : tensor<4xf32> loc(unknown)
  } loc(unknown)
} loc(unknown)
// ----- file_locations
module {
  func.func @main(%x: tensor<4xf32> loc("model.py":3:9), %y: tensor<4xf32> loc("model.py":3:20)) -> tensor<4xf32> {
    %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":5:11)
    %1 = "stablehlo.add"(%0, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("layers/dense.py":70000:130)
    return %1 : tensor<4xf32> loc("model.py":6:3)
  } loc("model.py":3:1)
} loc("model.py":0:0)
// ----- name_locations
module {
  func.func @main(%x: tensor<4xf32> loc("x"), %y: tensor<4xf32> loc("params['w']"("model.py":1:1))) -> tensor<4xf32> {
    %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("jit(f)/sin"("model.py":5:11))
    %1 = "stablehlo.add"(%0, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("outer"("inner"("model.py":5:12)))
    return %1 : tensor<4xf32> loc("")
  } loc("main")
} loc("module")
// ----- call_site_locations
module {
  func.func @main(%x: tensor<4xf32> loc(callsite("model.py":1:2 at "train.py":3:4))) -> tensor<4xf32> {
    %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc(callsite("f"("model.py":1:2) at callsite("train.py":3:4 at callsite("main.py":5:6 at unknown))))
    return %0 : tensor<4xf32> loc(callsite("a" at "b"))
  } loc(callsite(unknown at "main.py":9:1))
} loc(unknown)
// ----- fused_locations
module {
  func.func @main(%x: tensor<4xf32> loc(fused["model.py":1:2, "x"])) -> tensor<4xf32> {
    %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc(fused["model.py":1:2, "model.py":2:3, callsite("a" at "b"), fused["c", "d"]])
    return %0 : tensor<4xf32> loc(fused["model.py":1:2, "e"("f")])
  } loc(fused["g", "h"])
} loc(fused["i", "j"])
// ----- fused_metadata_string
module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc(fused<"pass">["model.py":1:2])
    %1 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32> loc(fused<"pass">["model.py":1:2, "model.py":2:3])
    return %1 : tensor<4xf32> loc(unknown)
  } loc(unknown)
} loc(unknown)
// ----- fused_metadata_other
module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc(fused<{step = 1 : i64, kind = "fusion", on = true, t = f32}>["model.py":1:2])
    %1 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32> loc(fused<[1 : i32, 2.0 : f32, unit, dense<1> : tensor<2xi8>, array<i64: 1, 2>, @main]>["model.py":1:2])
    return %1 : tensor<4xf32> loc(unknown)
  } loc(unknown)
} loc(unknown)
// ----- fused_metadata_distinct
module {
  func.func @main(%x: tensor<4xf32> loc(fused<distinct[0]<"a">>["model.py":1:2])) -> tensor<4xf32> {
    %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc(fused<distinct[1]<unit>>["model.py":1:2])
    return %0 : tensor<4xf32> loc(fused<distinct[0]<"a">>["model.py":1:2])
  } loc(unknown)
} loc(unknown)
// ----- range_locations
module {
  func.func @main(%x: tensor<4xf32> loc("model.py":1:2 to 3:4)) -> tensor<4xf32> {
    %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":5:2 to :9)
    %1 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32> loc("f"("model.py":5:2 to 70000:9))
    %2 = "stablehlo.sine"(%1) : (tensor<4xf32>) -> tensor<4xf32> loc(callsite("model.py":5:2 to 5:9 at "model.py":8:1))
    %3 = "stablehlo.sine"(%2) : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":17)
    return %3 : tensor<4xf32> loc(fused["model.py":1:1 to 1:2, "model.py":2:1 to :3])
  } loc("model.py":1:1 to 20:1)
} loc(unknown)
// ----- block_argument_locations
module {
  func.func @main(%n: tensor<i32> loc("n"), %x: tensor<f32> loc("model.py":2:9)) -> tensor<i32> {
    %0:2 = "stablehlo.while"(%n, %x) ({
    ^bb0(%i: tensor<i32> loc("i"), %a: tensor<f32> loc("a"("model.py":4:5))):
      %1 = "stablehlo.compare"(%i, %n) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("model.py":4:9)
      "stablehlo.return"(%1) : (tensor<i1>) -> () loc("model.py":4:1)
    }, {
    ^bb0(%i: tensor<i32> loc(callsite("i" at "loop.py":1:1)), %a: tensor<f32> loc(unknown)):
      "stablehlo.return"(%i, %a) : (tensor<i32>, tensor<f32>) -> () loc(unknown)
    }) : (tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>) loc("while"("model.py":3:3))
    %2 = "stablehlo.reduce"(%x, %x) ({
    ^bb0(%a: tensor<f32> loc(unknown), %b: tensor<f32> loc("b")):
      %3 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("model.py":4:9)
      "stablehlo.return"(%3) : (tensor<f32>) -> () loc(fused["r", "s"])
    }) {dimensions = array<i64>} : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("reduce")
    return %0#0 : tensor<i32> loc("model.py":9:1)
  } loc("model.py":2:1)
} loc("model.py":1:1)
// ----- unknown_block_argument_locations
module {
  func.func @main(%n: tensor<f32> loc(unknown), %x: tensor<f32> loc("x")) -> tensor<f32> {
    %0:2 = "stablehlo.while"(%n, %x) ({
    ^bb0(%i: tensor<f32> loc(unknown), %a: tensor<f32> loc(unknown)):
      %1 = "stablehlo.compare"(%i, %a) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(unknown)
      "stablehlo.return"(%1) : (tensor<i1>) -> () loc(unknown)
    }, {
    ^bb0(%i: tensor<f32> loc(unknown), %a: tensor<f32> loc("model.py":1:1)):
      "stablehlo.return"(%a, %i) : (tensor<f32>, tensor<f32>) -> () loc(unknown)
    }) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>) loc(unknown)
    return %0#1 : tensor<f32> loc(unknown)
  } loc(unknown)
} loc(unknown)
// ----- opaque_unicode_locations
module {
  func.func @main(%x: tensor<f32> loc("\C3\A9.py":1:1)) -> tensor<f32> {
    return %x : tensor<f32> loc("\E2\82\AC"("":0:0))
  } loc("a\22b\\c":2:2)
} loc("model.py":4294967295:4294967295)
