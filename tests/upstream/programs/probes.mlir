// RUN: opt --interpreter-instrument-with-probe=useDebugInfo=true %s
// CHECK: interpreter.probe %0, probe_id = "named.1" : tensor<2xf32>
// CHECK: interpreter.probe
// CHECK: probe_id = "probe2" : tensor<2xf32>
// RUN: opt --interpreter-instrument-with-probe %s
// CHECK: probe_id = "probe1"
// RUN: not opt --interpreter-instrument-with-probe=foo=1 %s
// CHECK: no such option foo
func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<2xf32>
  %0 = stablehlo.add %a, %c : tensor<2xf32> loc("named")
  %1 = stablehlo.tanh %0 : tensor<2xf32>
  return %1 : tensor<2xf32>
}
