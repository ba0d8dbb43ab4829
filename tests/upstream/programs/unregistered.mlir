// RUN: not opt %s
// CHECK: error: operation being parsed with an unregistered dialect
// RUN: opt --allow-unregistered-dialect %s
// CHECK: "foreign.op"() : () -> ()
// RUN: opt -allow-unregistered-dialect -debug-only=anything --mlir-disable-threading %s
// CHECK: "foreign.op"() : () -> ()
"foreign.op"() : () -> ()
