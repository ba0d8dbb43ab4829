func.func @main(%arg0: memref<4xf32>) -> memref<4xf32> {
  %0 = "stablehlo.custom_call"(%arg0) {call_target_name = "kernel", api_version = 4 : i32, output_operand_aliases = [
    #stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]
  } : (memref<4xf32>) -> memref<4xf32>
  return %0 : memref<4xf32>
}
