"""What is counted from the bytes, against the program as MLIR has it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.corpus import EXAMPLES, FEATURES, example_programs, features_of_library

import vhlo_tools as vt
from vhlo_tools.aliasing.config import Alias, Donor
from vhlo_tools.artifact import inspect_bytes
from vhlo_tools.bindings import Provider
from vhlo_tools.bindings.xla import hlo_of_text
from vhlo_tools.bytecode import Printer
from vhlo_tools.bytecode.editing import Tables

PROGRAMS = (*example_programs(), *(FEATURES / f"{feature.id}.mlir" for feature in features_of_library()))


@pytest.mark.sample(24)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("target", ["current", "minimum"])
def test_ops_and_functions_are_those_of_the_module(path: Path, target: str, provider: Provider) -> None:
    try:
        artifact = vt.serialize(path, target, allow_other_dialects=True)
    except vt.DowngradeError:
        artifact = vt.serialize(path, allow_other_dialects=True)
    inventory = artifact.inventory()
    module = provider.parse(provider.new_context(), bytes(artifact))
    assert inventory.ops == Counter(str(op.name) for op in provider.walk(module))
    program = vt.deserialize(artifact)
    functions = [op.operation for op in program.body.operations if op.operation.name == "func.func"]
    assert [each.name for each in inventory.functions] == [op.attributes["sym_name"].value for op in functions]
    for ours, theirs in zip(inventory.functions, functions, strict=True):
        kind = theirs.attributes["function_type"].value
        for mine, their in zip((*ours.arguments, *ours.results), (*kind.inputs, *kind.results), strict=True):
            assert mine == str(their) or mine.startswith(("!vhlo.", "tensor<2x2x!vhlo.quant"))


def test_aliases_of_arguments_and_donors() -> None:
    program = """
    func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<4xf32> {jax.buffer_donor = true},
                    %c: tensor<4xf32> {tf.aliasing_output = "x"}) -> (tensor<4xf32>, tensor<4xf32>) {
      return %b, %a : tensor<4xf32>, tensor<4xf32>
    }
    func.func private @other(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) { return }
    """
    for target in ("current", "0.9.0"):
        inventory = vt.serialize(program, target).inventory()
        assert inventory.aliases == (Alias((1,), 0, (), "may-alias"),)
        assert inventory.donors == (Donor(1),)
    step = vt.serialize(EXAMPLES / "transformer_step.mlir").inventory()
    assert step.aliases == tuple(Alias((number,), number, (), "may-alias") for number in range(25))


def test_aliases_of_the_module() -> None:
    program = """
    module attributes {mhlo.input_output_alias = [
      {alias = {kind = "must_alias", parameter_index = array<i64: 1, 0>, parameter_number = 2 : i64},
       output_index = array<i64: 0>},
      {alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 0 : i64},
       output_index = array<i64>}]} {
      func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }
    }"""
    for target in ("current", "0.9.0"):
        assert vt.serialize(program, target, alias_lint=False).inventory().aliases == (
            Alias((0,), 2, (1, 0), "must-alias"),
            Alias((), 0, (), "may-alias"),
        )


def test_constants() -> None:
    constants = vt.serialize(EXAMPLES / "convnet.bc").inventory().constants
    assert constants.largest is not None
    assert (constants.largest["type"], constants.largest["bytes"]) == ("tensor<256x10xf32>", 4 * 256 * 10)
    assert 12_000 < constants.bytes < 16_000
    none = vt.serialize(EXAMPLES / "saxpy.mlir").inventory().constants
    assert (none.count, none.bytes, none.largest) == (0, 0, None)


def test_inspection_has_the_fields_of_the_design() -> None:
    described = inspect_bytes(bytes(vt.serialize(EXAMPLES / "transformer_step.mlir")), "x")
    assert set(described) >= {
        *("kind", "producer", "version", "bytecode_version", "size", "ops", "types", "attributes", "functions"),
        *("aliases", "donors", "constants", "sections"),
    }
    main = described["functions"][0]
    assert main["name"] == "main"
    assert main["arguments"][0] == {"type": "tensor<64x16xf32>", "attributes": {"tf.aliasing_output": 0}}
    assert main["results"][-1] == {"type": "tensor<f32>", "attributes": {"jax.result_info": "result[2]"}}


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("array<i64: 1, -2>", [1, -2]),
        ("array<i64>", []),
        ("dense<7> : tensor<3xi64>", [7, 7, 7]),
        ("dense<[[1, 2]]> : tensor<1x2xi64>", "16 bytes of tensor<1x2xi64>"),
        ("dense<7> : tensor<i64>", "8 bytes of tensor<i64>"),
        ("dense<[1, 2]> : tensor<2xi32>", "8 bytes of tensor<2xi32>"),
        (f"array<i64: {', '.join(map(str, range(1000)))}>", [*range(1000)]),
        (f"array<i64: {', '.join(map(str, range(1001)))}>", "8008 bytes of tensor<1001xi64>"),
        ("5 : i32", 5),
        ("-5 : i8", -5),
        ('"text"', "text"),
        ("true", True),
        ('[1 : i32, {k = "v"}]', [1, {"k": "v"}]),
        ("1.5 : f32", "#vhlo.float_v1<1.5 : !vhlo.f32_v1>"),
    ],
)
def test_attributes_of_arguments_are_plain_where_they_can_be(attribute: str, value: object) -> None:
    program = f"func.func @main(%a: tensor<f32> {{my.x = {attribute}}}) {{ return }}"
    (function,) = vt.serialize(program).inventory().functions
    assert function.argument_attributes == ({"my.x": value},)


@pytest.mark.parametrize(
    ("bits", "size", "value"),
    [(64, 2, [7, 7]), (64, 1000, [7] * 1000), (64, 1001, "8008 bytes of an array"), (32, 2, "16 bytes of an array")],
)
def test_arrays_of_mlir_itself(bits: int, size: int, value: object) -> None:
    """Which an artifact has in attributes of its module, and a damaged one anywhere."""
    artifact = vt.serialize("func.func @main(%a: tensor<f32> {my.x = 5 : i32}) { return }")
    file = artifact.copy_of_file()
    (index,) = (
        index
        for index in range(len(file.attributes))
        if (each := file.decode("attribute", index)) is not None and each.name == "integer_v1"
    )
    tables = Tables(file)
    data = (7).to_bytes(8, "little") * size
    array = tables.builtin("dense_array", tables.builtin_type("integer", bits << 2), size, data)
    file.attributes[index] = file.attributes[array]
    (function,) = artifact.edited(file).inventory().functions
    assert function.argument_attributes == ({"my.x": value},)


def test_constants_are_counted_op_by_op_and_weighed_once() -> None:
    constant = "stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>"
    program = (
        f"func.func @main() {{ %0 = {constant} %1 = {constant} %2 = stablehlo.constant dense<1> : tensor<i8> return }}"
    )
    constants = vt.serialize(program).inventory().constants
    assert (constants.count, constants.bytes) == (3, 13)
    assert constants.largest == {"bytes": 12, "type": "tensor<3xi32>"}


def test_inspection_of_hlo() -> None:
    text = (
        "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n\nENTRY e {\n  ROOT %p = f32[4] parameter(0)\n}\n"
    )
    proto = inspect_bytes(hlo_of_text(text), "x")
    assert (proto["kind"], proto["module"], proto["parameters"], proto["result"]) == (
        "hlo-proto",
        "m",
        ["f32[4]"],
        "f32[4]",
    )
    (alias,) = proto["aliases"]
    assert (alias["parameter_number"], proto["donors"]) == (0, [])
    assert {**inspect_bytes(text.encode(), "x"), "parameters": ["f32[4]"], "result": "f32[4]"}.items() >= {
        "kind": "hlo-text",
        "module": "m",
        "aliases": proto["aliases"],
        "lines": 5,
    }.items()


def test_a_type_is_printed_once_however_many_arguments_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand functions of 600 arguments, in a file of 1.3 MB, took 12 s."""
    arguments = ", ".join(f"%{number}: tensor<{1 + number % 2}xf32>" for number in range(70))
    functions = [f"func.func private @f{number}({arguments}) {{ return }}" for number in range(30)]
    artifact = vt.serialize("\n".join([*functions, "func.func @main() { return }"]))
    printed: Counter[int] = Counter()
    of_printer = Printer.builtin_tensor

    def counted(printer: Printer, index: int) -> tuple[str, tuple[int, ...], str]:
        printed[index] += 1
        return of_printer(printer, index)

    monkeypatch.setattr(Printer, "builtin_tensor", counted)
    found = artifact.inventory().functions
    assert found[0].arguments == ("tensor<1xf32>", "tensor<2xf32>") * 35
    assert list(printed.values()) == [1, 1]
