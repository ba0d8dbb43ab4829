"""What is counted from the bytes, against the program as MLIR has it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from corpus import EXAMPLES, FEATURES, example_programs, features_of_library

import vhlo_tools as vt
from vhlo_tools.artifact import inspect_bytes
from vhlo_tools.artifact.inventory import Alias, Donor
from vhlo_tools.bindings import Provider

PROGRAMS = (*example_programs(), *(FEATURES / f"{feature.id}.mlir" for feature in features_of_library()))


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
