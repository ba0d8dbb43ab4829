// Programs for every kind of attribute an artifact can hold, in the generic form.

// ----- custom_call_string
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "kernel", backend_config = "tile=8;\00\FF\22quoted\22", has_side_effect = true, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- custom_call_plain
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "kernel"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.custom_call"(%0) {call_target_name = "kernel", backend_config = "", api_version = 2 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "stablehlo.custom_call"(%1) {call_target_name = "kernel", backend_config = "", api_version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
// ----- custom_call_dictionary
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "kernel", api_version = 4 : i32, backend_config = {flag = true, name = "n", size = 8 : i64, narrow = -1 : i8, unsigned = 7 : ui16, rate = 5.0e-01 : f32, wide = 1.0e+300 : f64, half = 1.5 : f16, brain = 1.5 : bf16, list = [1 : i32, "two", [3.0 : f32]], inner = {a = {b = {}}}, what = f32, where = tensor<4x?xi8>, data = dense<[1, 2]> : tensor<2xi32>}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- custom_call_layouts_aliases
func.func @main(%x: tensor<2x3xf32>, %y: tensor<f32>) -> (tensor<2x3xf32>, tensor<f32>) {
  %0:2 = "stablehlo.custom_call"(%x, %y) {call_target_name = "kernel", operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>, #stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 1, operand_tuple_indices = []>]} : (tensor<2x3xf32>, tensor<f32>) -> (tensor<2x3xf32>, tensor<f32>)
  return %0#0, %0#1 : tensor<2x3xf32>, tensor<f32>
}
// ----- custom_call_tuple_alias
func.func @main(%x: tuple<tensor<2xf32>, tensor<3xf32>>) -> tuple<tensor<3xf32>, tensor<2xf32>> {
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "kernel", output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 0, operand_tuple_indices = [0]>]} : (tuple<tensor<2xf32>, tensor<3xf32>>) -> tuple<tensor<3xf32>, tensor<2xf32>>
  return %0 : tuple<tensor<3xf32>, tensor<2xf32>>
}
// ----- custom_call_computations
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "kernel", called_computations = [@first, @second], mhlo.frontend_attributes = {a = "1", b = ""}, mhlo.sharding = "{replicated}", mhlo.backend_config = {factor = 0.5 : f32}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @first(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @second(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
// ----- custom_call_no_operands
func.func @main() {
  "stablehlo.custom_call"() {call_target_name = "", has_side_effect = true} : () -> ()
  return
}
// ----- aliasing_output
func.func public @main(%x: tensor<4xf32> {tf.aliasing_output = 1 : i32, mhlo.sharding = "{replicated}"}, %y: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %z: tensor<4xf32> {jax.buffer_donor = true}, %w: tensor<4xf32>) -> (tensor<4xf32> {jax.result_info = "['a']", mhlo.layout_mode = "default"}, tensor<4xf32> {jax.result_info = "[1]"}) {
  %0 = "stablehlo.add"(%x, %z) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %y : tensor<4xf32>, tensor<4xf32>
}
// ----- module_input_output_alias
module @aliased attributes {mhlo.input_output_alias = [{alias = {kind = "may_alias", parameter_index = dense<> : tensor<0xi64>, parameter_number = 0 : i64}, output_index = dense<0> : tensor<1xi64>}], mhlo.is_dynamic = false, mhlo.cross_program_prefetches = []} {
  func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    return %y, %x : tensor<4xf32>, tensor<4xf32>
  }
}
// ----- module_input_output_alias_arrays
module @aliased attributes {mhlo.input_output_alias = [{alias = {kind = "must_alias", parameter_index = array<i64>, parameter_number = 0 : i64}, output_index = array<i64: 0>}, {alias = {kind = "may_alias", parameter_index = array<i64: 1, 2>, parameter_number = 1 : i64}, output_index = array<i64: 1>}]} {
  func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    return %x, %y : tensor<4xf32>, tensor<4xf32>
  }
}
// ----- module_attributes
module @m attributes {a.string = "s", b.integer = 1 : i64, c.float = 1.0 : f64, d.array = [], e.dictionary = {}, f.type = tensor<f32>, g.bool = false, h.dense = dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>, jax.uses_shape_polymorphism = true} {
  func.func @main() {
    return
  }
}
// ----- argument_attributes
func.func @main(%a: tensor<f32> {x.string = "s"}, %b: tensor<f32> {x.integer = -9223372036854775808 : i64}, %c: tensor<f32> {x.float = 0x7FC00000 : f32}, %d: tensor<f32> {x.array = ["a", 1 : i8, 2.0 : f64]}, %e: tensor<f32> {x.dictionary = {k = "v", l = {m = 1 : i1}}}, %f: tensor<f32> {x.type = tuple<tensor<f32>, tensor<2xi1>>}, %g: tensor<f32> {x.dense = dense<[1.0, -0.0]> : tensor<2xf32>}, %h: tensor<f32> {x.a = "several", x.b = true, x.c = false}) -> (tensor<f32> {y.string = "r"}, tensor<f32>, tensor<f32> {y.integer = 3 : ui8, y.list = [[], [[]]]}) {
  return %a, %b, %c : tensor<f32>, tensor<f32>, tensor<f32>
}
// ----- argument_attribute_array
func.func @main(%a: tensor<f32> {x.array = array<i64: 1, 2>}, %b: tensor<f32> {x.array = array<i64>}) -> tensor<f32> {
  return %a : tensor<f32>
}
// ----- argument_attribute_bool_array
func.func @main(%a: tensor<f32> {x.array = array<i1: true, false, true>}) -> tensor<f32> {
  return %a : tensor<f32>
}
// ----- argument_attribute_narrow_array
func.func @main(%a: tensor<f32> {x.array = array<i32: 1, 2>}) -> tensor<f32> {
  return %a : tensor<f32>
}
// ----- argument_attribute_unit
func.func @main(%a: tensor<f32> {x.unit}) -> tensor<f32> {
  return %a : tensor<f32>
}
// ----- argument_attribute_symbol
func.func @main(%a: tensor<f32> {x.symbol = @main}) -> tensor<f32> {
  return %a : tensor<f32>
}
// ----- argument_attribute_nested_symbol
func.func @main(%a: tensor<f32> {x.symbol = @main::@inner}) -> tensor<f32> {
  return %a : tensor<f32>
}
// ----- argument_attribute_index
func.func @main(%a: tensor<f32> {x.index = 5 : index}) -> tensor<f32> {
  return %a : tensor<f32>
}
// ----- argument_attribute_integers
func.func @main(%a: tensor<f32> {x.i16 = -300 : i16, x.ui32 = 4000000000 : ui32, x.ui64 = 18446744073709551615 : ui64, x.i8 = 127 : i8, x.ui16 = 65535 : ui16}) -> tensor<f32> {
  return %a : tensor<f32>
}
// ----- argument_attribute_i4
func.func @main(%a: tensor<f32> {x.i4 = -3 : i4, x.ui4 = 9 : ui4}) -> tensor<f32> {
  return %a : tensor<f32>
}
// ----- argument_attribute_i2
func.func @main(%a: tensor<f32> {x.i2 = 1 : i2, x.ui2 = 3 : ui2}) -> tensor<f32> {
  return %a : tensor<f32>
}
// ----- argument_attribute_floats
func.func @main(%a: tensor<f32> {x.f16 = 1.0 : f16, x.bf16 = -2.0 : bf16, x.f64 = 3.141592653589793 : f64, x.inf = 0x7F800000 : f32, x.f8 = 1.0 : f8E4M3FN, x.f8u = 2.0 : f8E5M2}) -> tensor<f32> {
  return %a : tensor<f32>
}
// ----- function_attributes
func.func @main(%a: tensor<f32>) -> tensor<f32> attributes {execution_thread = "main", f.list = [1 : i32], f.dictionary = {n = 1 : i64}, f.flag = true} {
  return %a : tensor<f32>
}
// ----- op_discardable_attributes
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.add"(%a, %a) {mhlo.frontend_attributes = {k = "v"}, mhlo.sharding = "{devices=[2]0,1}", a.zz = 1 : i64, z.aa = [f32, "x"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- op_discardable_dense
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.add"(%a, %a) {a.data = dense<[[true, false], [false, true]]> : tensor<2x2xi1>, b.data = dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- op_discardable_modes
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.add"(%a, %a) {a.mode = #stablehlo.result_accuracy_mode<HIGHEST>, a.accuracy = #stablehlo.result_accuracy<ulps = 3, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- op_discardable_enums
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.add"(%a, %a) {a.direction = #stablehlo<comparison_direction LT>, a.kind = #stablehlo<comparison_type FLOAT>, a.precision = [#stablehlo<precision HIGHEST>], a.fft = #stablehlo<fft_type FFT>, a.algorithm = #stablehlo<rng_algorithm PHILOX>, a.distribution = #stablehlo<rng_distribution UNIFORM>, a.transpose = #stablehlo<transpose ADJOINT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- op_discardable_bounds
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.add"(%a, %a) {a.bounds = #stablehlo.bounds<4, ?>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- op_discardable_alias
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.add"(%a, %a) {a.alias = #stablehlo.output_operand_alias<output_tuple_indices = [0, 1], operand_index = 2, operand_tuple_indices = [3]>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- op_discardable_algorithm
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.add"(%a, %a) {a.algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = false>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- op_discardable_signed_integer
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.add"(%a, %a) {a.number = -5 : si32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- op_discardable_symbols
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.add"(%a, %a) {a.flat = @main} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- mixed_discardable_encodings
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a {a.type = tensor<4xf32, "packed">} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- mixed_stablehlo_attributes
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %a {a.dot = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, a.gather = #stablehlo.gather<offset_dims = [2], index_vector_dim = 1>, a.scatter = #stablehlo.scatter<update_window_dims = [1], index_vector_dim = 0>, a.conv = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, a.channel = #stablehlo.channel_handle<handle = 1, type = 2>, a.bounds = #stablehlo.bounds<1>, a.mode = #stablehlo.result_accuracy_mode<DEFAULT>, a.alias = #stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 2, operand_tuple_indices = []>, a.type = !stablehlo.token, a.future = !stablehlo.future<tensor<f32>>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- encoding
func.func @main(%a: tensor<4xf32, "packed">) -> tensor<4xf32, "packed"> {
  return %a : tensor<4xf32, "packed">
}
// ----- encoding_dictionary
func.func @main(%a: tensor<4xf32, {layout = "packed", n = 1 : i64}>) -> tensor<4xf32, {layout = "packed", n = 1 : i64}> {
  return %a : tensor<4xf32, {layout = "packed", n = 1 : i64}>
}
// ----- function_type_argument
func.func @main(%f: (tensor<f32>) -> (tensor<f32>, tensor<2xi32>)) -> (tensor<f32>) {
  %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  return %0 : tensor<f32>
}
// ----- none_type
func.func @main(%f: none) {
  return
}
// ----- strings
func.func @"a name with spaces"(%a: tensor<f32> {x.text = "\C3\A9\E2\82\AC tab\09 nul\00 quote\22 slash\\"}, %b: tensor<f32> {x.empty = ""}) -> tensor<f32> {
  return %a : tensor<f32>
}
// ----- result_accuracies
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.exponential"(%x) {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.exponential"(%0) {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-5, rtol = 0.5, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "stablehlo.exponential"(%1) {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
// ----- result_accuracies_of_all
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.cbrt"(%x) {result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.cosine"(%0) {result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "stablehlo.exponential_minus_one"(%1) {result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "stablehlo.log"(%2) {result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "stablehlo.log_plus_one"(%3) {result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  %5 = "stablehlo.logistic"(%4) {result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  %6 = "stablehlo.rsqrt"(%5) {result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  %7 = "stablehlo.sine"(%6) {result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  %8 = "stablehlo.sqrt"(%7) {result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  %9 = "stablehlo.tan"(%8) {result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  %10 = "stablehlo.tanh"(%9) {result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  return %10 : tensor<4xf32>
}
// ----- dot_algorithms
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "stablehlo.dot_general"(%x, %x) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, algorithm = #stablehlo.dot_algorithm<lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 6, allow_imprecise_accumulation = false>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "stablehlo.dot_general"(%0, %x) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], algorithm = #stablehlo.dot_algorithm<lhs_precision_type = f8E5M2, rhs_precision_type = f8E5M2, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = true>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
// ----- mixed_sdy
module @sharded {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"y":(1)2}]>}) {
    %0 = sdy.sharding_constraint %a <@mesh, [{"y"}, {}]> : tensor<8x4xf32>
    %1 = stablehlo.add %0, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
// ----- mixed_sdy_rule
func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.custom_call @kernel(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4}, custom>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
// ----- mixed_chlo
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = chlo.erf %a : tensor<4xf32> -> tensor<4xf32>
  %1 = chlo.asin %0 : tensor<4xf32> -> tensor<4xf32>
  %2 = chlo.broadcast_add %1, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v, %i = chlo.top_k(%2, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)
  return %1 : tensor<4xf32>
}
// ----- mixed_chlo_compare
func.func @main(%a: tensor<4xf32>) -> tensor<4xi1> {
  %0 = "chlo.broadcast_compare"(%a, %a) {comparison_direction = #chlo<comparison_direction EQ>, compare_type = #chlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}
// ----- mixed_arith
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %1 = arith.addf %0, %a fastmath<fast> : tensor<4xf32>
  %c = arith.constant 7 : index
  %d = arith.constant true
  return %1 : tensor<4xf32>
}
// ----- mixed_dense_resource
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.constant dense_resource<weights> : tensor<4xf32>
  %1 = arith.constant dense_resource<bytes> : tensor<3xi8>
  %2 = stablehlo.add %0, %a : tensor<4xf32>
  return %2 : tensor<4xf32>
}
{-#
  dialect_resources: {
    builtin: {
      weights: "0x040000000000803F000000400000404000008040",
      bytes: "0x01000000010203"
    }
  }
#-}
// ----- mixed_builtin_attributes
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %a {u.unit, u.symbol = @main::@inner::@leaf, u.flat = @main, u.array = array<i32: 1, 2>, u.bytes = array<i8: 1>, u.floats = array<f64: 1.5>, u.bools = array<i1: true>, u.map = affine_map<(d0, d1)[s0] -> (d0 + s0, d1 floordiv 2)>, u.set = affine_set<(d0) : (d0 - 1 >= 0)>, u.strided = strided<[1, ?], offset: 3>, u.sparse = sparse<[[0, 0], [1, 2]], [1, 5]> : tensor<3x4xi32>, u.strings = dense<["a", "bc"]> : tensor<2x!unknown.str>, u.opaque = #unknown<"x">, u.types = [vector<4x[8]xf32>, memref<4x?xf32, 3>, memref<*xf32>, complex<f64>, none, index, tuple<i1, f16>, tensor<*xf32>, (i1) -> (), !unknown.t<1>, i1024, f80, f128, tf32], u.index = 3 : index, u.location = loc("there":1:2)} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// ----- mixed_control_flow
func.func @main(%a: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  cf.cond_br %p, ^yes(%a : tensor<4xf32>), ^no
^yes(%b: tensor<4xf32>):
  %0 = stablehlo.add %b, %b : tensor<4xf32>
  cf.br ^end(%0 : tensor<4xf32>)
^no:
  cf.br ^end(%a : tensor<4xf32>)
^end(%c: tensor<4xf32>):
  return %c : tensor<4xf32>
}
// ----- mesh_sub_axes
func.func @main(%x: tensor<4xf32>) -> tensor<16xf32> {
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, #stablehlo.mesh_axis<name = "y", size = 4>]>, axes = [#stablehlo.axis_ref<name = "x">, #stablehlo.axis_ref<name = "y", sub_axis_info = (1)2>]>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids} : (tensor<4xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
// ----- mesh_device_ids
func.func @main(%x: tensor<4xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>], device_ids = dense<[1, 0]> : tensor<2xi64>>, axes = [#stablehlo.axis_ref<name = "x">]>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// ----- mesh_collectives
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%3) : (tensor<f32>) -> ()
  }) {replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, #stablehlo.mesh_axis<name = "y", size = 4>]>, axes = [#stablehlo.axis_ref<name = "x">, #stablehlo.axis_ref<name = "y", sub_axis_info = (1)2>]>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = "stablehlo.all_to_all"(%0) {split_dimension = 1 : i64, concat_dimension = 1 : i64, split_count = 4 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, #stablehlo.mesh_axis<name = "y", size = 4>]>, axes = [#stablehlo.axis_ref<name = "x">, #stablehlo.axis_ref<name = "y", sub_axis_info = (1)2>]>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = "stablehlo.reduce_scatter"(%1) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%3) : (tensor<f32>) -> ()
  }) {scatter_dimension = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, #stablehlo.mesh_axis<name = "y", size = 4>]>, axes = [#stablehlo.axis_ref<name = "x">, #stablehlo.axis_ref<name = "y", sub_axis_info = (1)2>]>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids} : (tensor<8x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<8x8xf32>
}
// ----- mixed_mesh_symbol
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<4xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
