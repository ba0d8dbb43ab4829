"""VHLO text made from bytes alone, against MLIR's reading of text and bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.corpus import EXAMPLES, FEATURES, example_programs, features_of_library, writable_versions

import vhlo_tools as vt
from vhlo_tools.artifact import other_dialects
from vhlo_tools.bindings import Provider
from vhlo_tools.bytecode.entry_printing import _booleans

pytestmark = pytest.mark.every_python

PROGRAMS = (*example_programs(), *(FEATURES / f"{feature.id}.mlir" for feature in features_of_library()))


def generic(provider: Provider, source: str | bytes) -> str:
    return provider.text(provider.parse(provider.new_context(), source), debug_info=True, generic=True)


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_text_is_the_module_that_mlir_reads_from_the_bytes(path: Path, provider: Provider) -> None:
    for version in writable_versions()[::3] + writable_versions()[-1:]:
        try:
            artifact = vt.serialize(path, version, allow_other_dialects=True)
        except vt.VhloToolsError:
            continue
        text = artifact.text(debug_info=True)
        if other_dialects(artifact):
            assert "<sdy attribute code" in text  # named, and not refused
        else:
            assert generic(provider, text) == generic(provider, bytes(artifact))


@pytest.mark.parametrize(
    "program",
    [
        # values of every kind, with names that need quotes
        """
        module @"odd name" attributes {
            my.text = "a\\0A\\"b\\\\c\\C3\\A9", "my.key-x" = 1.5 : f64, my.list = [1 : i8, -2 : i8, true]} {
          func.func @main(%a: tensor<2x?xf32> {my.f16 = 1.5 : f16, my.bf16 = -2.5 : bf16})
              -> tensor<2x?xf32> { return %a : tensor<2x?xf32> }
        }""",
        # constants: splats, booleans packed and not, empty ones, complex numbers, small types
        """
        func.func @main() -> tensor<3xi1> {
          %0 = stablehlo.constant dense<true> : tensor<9xi1>
          %1 = stablehlo.constant dense<[[true, false], [false, true]]> : tensor<2x2xi1>
          %2 = stablehlo.constant dense<> : tensor<0x3xf32>
          %3 = stablehlo.constant dense<[(1.0, -2.0), (0.5, 3.0)]> : tensor<2xcomplex<f32>>
          %4 = stablehlo.constant dense<[-8, 7]> : tensor<2xi4>
          %5 = stablehlo.constant dense<2.5> : tensor<4xf64>
          %6 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
          %7 = stablehlo.constant dense<true> : tensor<i1>
          %8 = stablehlo.constant dense<1> : tensor<2xui64>
          return %6 : tensor<3xi1>
        }""",
        # regions, several results, quantized types, tuples, tokens
        """
        func.func @main(%a: tensor<4xf32>, %q: tensor<2x!quant.uniform<i8:f32, 0.1:-3>>,
                        %t: tuple<tensor<f32>, !stablehlo.token>) -> (tensor<4xf32>, tensor<i32>) {
          %i = stablehlo.constant dense<0> : tensor<i32>
          %n = stablehlo.constant dense<3> : tensor<i32>
          %0:2 = stablehlo.while(%x = %i, %y = %a) : tensor<i32>, tensor<4xf32>
            cond {
              %c = stablehlo.compare LT, %x, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
              stablehlo.return %c : tensor<i1>
            } do {
              %z = stablehlo.add %y, %a : tensor<4xf32>
              %w = stablehlo.add %x, %n : tensor<i32>
              stablehlo.return %w, %z : tensor<i32>, tensor<4xf32>
            }
          return %0#1, %0#0 : tensor<4xf32>, tensor<i32>
        }""",
        # locations of every kind
        """
        func.func @main(%a: tensor<f32> loc("arg"("a.py":1:2))) -> tensor<f32> {
          %0 = stablehlo.abs %a : tensor<f32> loc(fused<"meta">["a.py":3:4, callsite("f"("b.py":5:6) at unknown)])
          %1 = stablehlo.abs %0 : tensor<f32> loc("a \\"quoted\\" name")
          %2 = stablehlo.abs %1 : tensor<f32> loc("c.py":7:8 to :9)
          %3 = stablehlo.abs %2 : tensor<f32> loc("c.py":7:8 to 9:10)
          return %3 : tensor<f32> loc(unknown)
        }""",
    ],
    ids=["attributes", "constants", "regions", "locations"],
)
def test_odd_programs(program: str, provider: Provider) -> None:
    for target in ("current", "1.9.0", "0.14.0", "0.9.0"):
        artifact = vt.serialize(program, target)
        assert generic(provider, artifact.text(debug_info=True)) == generic(provider, bytes(artifact))


@pytest.mark.parametrize("numbers", [(), (7,), (7, 8), (7, 8, 9), (7, 8, 9, 10)])
def test_ranges_of_any_number_of_lines_and_columns(numbers: tuple[int, ...], provider: Provider) -> None:
    artifact = vt.serialize('func.func @main() { return loc("a.py":1:2 to 3:4) }')
    file = artifact.copy_of_file()
    (index,) = (
        index
        for index in range(len(file.attributes))
        if (each := file.decode("attribute", index)) is not None and each.name == "file_line_col_range"
    )
    value = file.decode("attribute", index)
    assert value is not None
    file.attributes[index] = file.encode("attribute", replace(value, fields=(value.field("file"), numbers)))
    changed = artifact.edited(file)
    assert generic(provider, changed.text(debug_info=True)) == generic(provider, bytes(changed))


def test_text_without_locations_has_none() -> None:
    assert "loc(" not in vt.serialize(EXAMPLES / "transformer_step.mlir").text()


def test_floats_that_the_text_of_vhlo_cannot_say_are_spelled_as_mlir_spells_them(provider: Provider) -> None:
    """MLIR prints the bits of what is no number, and reads them back as those of a double."""
    program = "func.func @main(%a: tensor<f32> {my.nan = 0x7FC00000 : f32}) { return }"
    artifact = vt.serialize(program)
    spelled = "#vhlo.float_v1<0x7FC00000 : !vhlo.f32_v1>"
    assert spelled in artifact.text()
    assert spelled in generic(provider, bytes(artifact))


def test_booleans_of_old_files_take_a_byte_each() -> None:
    assert _booleans(b"\1\0\1", 3) == ["true", "false", "true"]
    assert _booleans(b"\5", 3) == ["true", "false", "true"]
    assert _booleans(b"\1\0", 3) == []
