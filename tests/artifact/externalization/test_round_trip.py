"""Constants taken out and put back: the same program, from bytes and in the library's eyes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.corpus import EXAMPLES, example_programs
from support.corpus_files import corpus_files
from support.release_environments import read_by
from support.walking import walk
from support.weights_files import arguments_of, read_header, round_trip, text_of

import vhlo_tools as vt
from vhlo_tools.bytecode import Operation, UseListOrder, encode

NESTED = """
module @nested {
  func.func public @main(%n: tensor<i32> {jax.buffer_donor = true}) -> (tensor<3xf32>, tensor<i32>) {
    %unused = stablehlo.constant dense<7.0> : tensor<f32>
    %start = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32> loc("start.py":1:2)
    %0:2 = stablehlo.while(%i = %n, %x = %start) : tensor<i32>, tensor<3xf32>
    cond {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %1 = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.subtract %i, %one : tensor<i32>
      %odd = stablehlo.and %i, %one : tensor<i32>
      %2 = "stablehlo.case"(%odd) ({
        %ten = stablehlo.constant dense<[10.0, 20.0, 30.0]> : tensor<3xf32>
        %3 = stablehlo.add %x, %ten : tensor<3xf32>
        %4 = stablehlo.add %3, %ten : tensor<3xf32>
        stablehlo.return %4 : tensor<3xf32>
      }, {
        %half = stablehlo.constant dense<0.5> : tensor<3xf32>
        %3 = stablehlo.multiply %half, %start : tensor<3xf32>
        stablehlo.return %3 : tensor<3xf32>
      }) : (tensor<i32>) -> tensor<3xf32>
      stablehlo.return %next, %2 : tensor<i32>, tensor<3xf32>
    }
    %5 = func.call @other(%0#0) : (tensor<i32>) -> tensor<i32>
    return %0#1, %5 : tensor<3xf32>, tensor<i32>
  }
  func.func private @other(%a: tensor<i32>) -> tensor<i32> {
    %c = stablehlo.constant dense<5> : tensor<i32>
    %0 = stablehlo.add %a, %c : tensor<i32>
    return %0 : tensor<i32>
  }
}
"""


def assert_same(artifact: vt.Artifact, restored: vt.Artifact) -> None:
    assert vt.diff(artifact, restored, locations=True) == []
    assert (restored.version, restored.bytecode_version) == (artifact.version, artifact.bytecode_version)


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", example_programs(), ids=lambda path: path.name)
def test_examples(path: Path, tmp_path: Path) -> None:
    """Of each kind of layout, as far down as they go."""
    newest = vt.serialize(path, "current", allow_other_dialects=True)
    oldest = newest.requirements().downgradable_to
    for version in {oldest, vt.Version("0.14.0"), newest.version}:
        if version >= oldest:
            moved = newest if version == newest.version else vt.retarget(newest, version, engine="bytes")
            assert_examples_come_back(moved, tmp_path)


def assert_examples_come_back(artifact: vt.Artifact, tmp_path: Path) -> None:
    result, restored = round_trip(artifact, tmp_path)
    assert_same(artifact, restored)
    assert text_of(restored) == text_of(artifact)
    vt.deserialize(result.artifact)
    moved = {each.path for each in result.record.moved}
    assert moved == {each.path for each in vt.constants(artifact) if each.path.startswith("@main/")}
    assert moved.isdisjoint(each.path for each in vt.constants(result.artifact) if each.path.startswith("@main/"))


@pytest.mark.long
def test_the_corpus(tmp_path: Path) -> None:
    moved = refused = 0
    versions = set()
    for name, data in list(corpus_files(ordinary=False))[::7]:
        artifact = vt.open_artifact(data, name=name)
        try:
            result, restored = round_trip(artifact, tmp_path)
        except vt.InvalidInputError as error:
            assert "has no function @main" in str(error)
            refused += 1
            continue
        assert_same(artifact, restored)
        moved += len(result.record.moved)
        versions.add(artifact.bytecode_version)
    assert moved > 200
    assert refused < 20
    assert versions >= {0, 1, 3, 4, 6}


@pytest.mark.parametrize("version", ["0.9.0", "0.14.0", "1.9.0"])
def test_regions_of_control_flow(version: str, tmp_path: Path) -> None:
    artifact = vt.serialize(NESTED, version)
    result, restored = round_trip(artifact, tmp_path)
    assert [each.path for each in result.record.moved] == [
        "@main/0:stablehlo.constant",
        "@main/1:stablehlo.constant",
        "@main/2:stablehlo.while/0/0:stablehlo.constant",
        "@main/2:stablehlo.while/1/0:stablehlo.constant",
        "@main/2:stablehlo.while/1/3:stablehlo.case/0/0:stablehlo.constant",
        "@main/2:stablehlo.while/1/3:stablehlo.case/1/0:stablehlo.constant",
    ]
    assert result.notes == ("constants of functions other than @main, which were not externalized: 1",)
    assert_same(artifact, restored)
    assert text_of(restored) == text_of(artifact)
    (main, _) = result.artifact.inventory().functions
    assert main.arguments == (
        *("tensor<i32>", "tensor<f32>", "tensor<3xf32>", "tensor<i32>"),
        *("tensor<i32>", "tensor<3xf32>", "tensor<3xf32>"),
    )
    assert main.argument_attributes == ({"jax.buffer_donor": True}, *[{}] * 6)
    weights = arguments_of(tmp_path / "out.safetensors")
    for count in (0, 1, 4):
        expected = vt.run(artifact, [count])
        for one, other in zip(expected, vt.run(result.artifact, [count, *weights]), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_network_gives_the_same_with_its_weights_as_arguments(tmp_path: Path) -> None:
    artifact = vt.serialize(EXAMPLES / "convnet.bc")
    (main,) = (each for each in artifact.inventory().functions if each.name == "main")
    shapes = [[int(size) for size in each[len("tensor<") : -len("xf32>")].split("x")] for each in main.arguments]
    inputs = [np.random.default_rng(0).normal(size=shape).astype("float32") for shape in shapes]
    result, _ = round_trip(artifact, tmp_path, min_size=30)
    weights = arguments_of(tmp_path / "out.safetensors")
    assert len(weights) == len([each for each in vt.constants(artifact) if each.bytes >= 30]) > 5
    # Nothing of them is left behind.
    assert len(result.artifact) < len(artifact) - sum(each.nbytes for each in weights) + 1000
    for one, other in zip(vt.run(artifact, inputs), vt.run(result.artifact, [*inputs, *weights]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_became_of_the_artifact_meanwhile(tmp_path: Path) -> None:
    artifact = vt.serialize(NESTED, "1.9.0")
    result, _ = round_trip(artifact, tmp_path)
    weights = tmp_path / "out.safetensors"
    assert vt.diff(vt.restore_constants(vt.retarget(result.artifact, "0.12.0"), weights), artifact) == [
        vt.Difference("version", "", "0.12.0", "1.9.0")
    ]
    assert_same(vt.strip(artifact), vt.restore_constants(vt.strip(result.artifact), weights))
    # Written by the library, which knows nothing of constants that are not there.
    again = vt.serialize(vt.deserialize(result.artifact), "1.9.0")
    assert_same(artifact, vt.restore_constants(again, weights))


def test_an_artifact_that_has_lost_the_name_of_the_op(tmp_path: Path) -> None:
    """A library writes the names of the ops that a program has, and with its constants out it has none of them."""
    program = """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %1 = stablehlo.add %a, %0 : tensor<2xf32>
      return %1 : tensor<2xf32>
    }"""
    artifact = vt.serialize(program, "1.9.0")
    result, _ = round_trip(artifact, tmp_path)
    again = vt.serialize(vt.deserialize(result.artifact), "1.9.0")
    assert "vhlo.constant_v1" not in {again.file.op_name(index) for index in range(len(again.file.dialects.ops))}
    restored = vt.restore_constants(again, tmp_path / "out.safetensors")
    assert_same(artifact, restored)
    assert text_of(restored) == text_of(artifact)


@pytest.mark.releases
def test_releases_read_both(tmp_path: Path) -> None:
    artifact = vt.serialize(NESTED, "jaxlib==0.4.31")
    result, restored = round_trip(artifact, tmp_path)
    before, between, after = read_by("jaxlib==0.4.31", map(bytes, (artifact, result.artifact, restored)))
    assert before == after
    assert len(between["text"].partition("->")[0].split("%arg")) == 1 + 7
    assert "error" not in {*before, *between}


def test_constants_that_share_their_value_do_so_again(tmp_path: Path) -> None:
    values = ", ".join(map(str, range(5000)))
    constants = "\n".join(f"%{i} = stablehlo.constant dense<[{values}]> : tensor<5000xi64>" for i in range(3))
    results = ", ".join(["tensor<5000xi64>"] * 3)
    program = f"func.func @main() -> ({results}) {{ {constants}\n return %0, %1, %2 : {results} }}"
    artifact = vt.serialize(program)
    result, restored = round_trip(artifact, tmp_path)
    assert len(result.tensors) == 1
    assert (tmp_path / "out.safetensors").stat().st_size < 42000
    assert len(result.artifact) < 1000
    assert_same(artifact, restored)
    assert abs(len(restored) - len(artifact)) < 100
    header, _ = read_header(tmp_path / "out.safetensors")
    assert set(header) == {"__metadata__", "@main/0:stablehlo.constant"}


def test_a_constant_of_a_quantized_type(tmp_path: Path) -> None:
    quantized = "tensor<3x!quant.uniform<i8:f32, 0.5:3>>"
    artifact = vt.serialize(
        f"""func.func @main() -> {quantized} {{
          %0 = "stablehlo.constant"() {{value = dense<[1, 2, 3]> : tensor<3xi8>}} : () -> {quantized}
          return %0 : {quantized} }}"""
    )
    result, restored = round_trip(artifact, tmp_path)
    assert len(result.record.moved) == 1
    assert_same(artifact, restored)
    assert text_of(restored) == text_of(artifact)
    assert vt.deserialize(result.artifact) is not None


def orders_in(artifact: vt.Artifact) -> list[tuple[UseListOrder, ...]]:
    return [item.use_lists for item in walk(artifact.file.ir) if item.use_lists]


def test_orders_of_uses_of_arguments_stay(tmp_path: Path) -> None:
    seen = 0
    for name, data in corpus_files(ordinary=False):
        artifact = vt.open_artifact(data, name=name)
        # Where there is one argument, its number is not written, and has to be as soon as there are more.
        if orders_in(artifact) and any(each.path.startswith("@main/") for each in vt.constants(artifact)):
            _, restored = round_trip(artifact, tmp_path)
            assert orders_in(restored) == orders_in(artifact)
            seen += 1
    assert seen > 3


@pytest.mark.parametrize("arguments", ["", "%a: tensor<f32>", "%a: tensor<f32>, %b: tensor<f32>"])
def test_orders_of_uses_of_constants_become_those_of_arguments(arguments: str, tmp_path: Path) -> None:
    artifact = vt.serialize(
        f"""func.func @main({arguments}) -> tensor<f32> {{
          %0 = stablehlo.constant dense<2.0> : tensor<f32>
          %1 = stablehlo.constant dense<3.0> : tensor<f32>
          %2 = stablehlo.add %1, %0 : tensor<f32>
          %3 = stablehlo.add %1, %2 : tensor<f32>
          return %3 : tensor<f32> }}"""
    )
    file = artifact.copy_of_file()
    ops = (op for op in walk(file.ir) if isinstance(op, Operation))
    constants = [op for op in ops if file.op_name(op.name) == "vhlo.constant_v1"]
    constants[1].use_lists = (UseListOrder(None, pairs=False, indices=(1, 0)),)
    changed = vt.open_artifact(encode(file))
    result, restored = round_trip(changed, tmp_path)
    assert orders_in(restored) == orders_in(changed)
    number = arguments.count("%") + 1
    assert orders_in(result.artifact) == [(UseListOrder(number, pairs=False, indices=(1, 0)),)]
    assert text_of(restored) == text_of(changed)
    vt.deserialize(result.artifact)


def test_names_that_locations_have_too(tmp_path: Path) -> None:
    """In old versions of the format a constant has its value in a dictionary, by a name that a location shares."""
    program = """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32> loc("value")
      %1 = stablehlo.add %a, %0 : tensor<2xf32> loc("value"("sym_name"))
      return %1 : tensor<2xf32> loc("arg_attrs")
    } loc("function_type")"""
    artifact = vt.serialize(program, "0.9.0")
    result, restored = round_trip(artifact, tmp_path)
    assert result.record.moved
    assert 'loc("value"' in vt.open_artifact(bytes(result.artifact)).text(debug_info=True)
    assert_same(artifact, restored)
    assert text_of(restored) == text_of(artifact)
