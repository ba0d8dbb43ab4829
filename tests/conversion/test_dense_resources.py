"""Constants in resources are inlined, wherever they stand and whatever they hold."""

from __future__ import annotations

from io import BytesIO

import pytest
from support.raw import RawLibrary

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

RESOURCES = """func.func @main() -> (tensor<4xf32>, tensor<3xi1>, tensor<2xi4>, tensor<2xbf16>, tensor<0xf32>, tensor<1xcomplex<f32>>) {
  %0 = stablehlo.constant dense_resource<floats> : tensor<4xf32>
  %1 = arith.constant dense_resource<booleans> : tensor<3xi1>
  %2 = stablehlo.constant dense_resource<nibbles> : tensor<2xi4>
  %3 = stablehlo.constant dense_resource<brains> : tensor<2xbf16>
  %4 = stablehlo.constant dense_resource<none> : tensor<0xf32>
  %5 = stablehlo.constant dense_resource<complex> : tensor<1xcomplex<f32>>
  return %0, %1, %2, %3, %4, %5 : tensor<4xf32>, tensor<3xi1>, tensor<2xi4>, tensor<2xbf16>, tensor<0xf32>, tensor<1xcomplex<f32>>
}
{-# dialect_resources: { builtin: {
  floats: "0x40000000000000000000803f0000004000004040",
  booleans: "0x01000000010001",
  nibbles: "0x010000000107",
  brains: "0x02000000803f0040",
  none: "0x04000000",
  complex: "0x080000000000803f00000040"
} } #-}"""  # noqa: E501


def as_bytecode(raw: RawLibrary, text: str) -> bytes:
    sink = BytesIO()
    raw.parse(text).operation.write_bytecode(sink)
    return sink.getvalue()


@pytest.mark.parametrize("form", ["text", "bytecode", "module"])
def test_constants_in_resources_are_inlined(form: str, raw: RawLibrary) -> None:
    source = (
        RESOURCES if form == "text" else as_bytecode(raw, RESOURCES) if form == "bytecode" else raw.parse(RESOURCES)
    )
    artifact = vt.serialize(source)
    assert {each.feature for each in artifact.findings} == {"rewritten"}
    text = str(vt.deserialize(artifact))
    for shown in (
        "dense<[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<4xf32>",
        "dense<[true, false, true]> : tensor<3xi1>",
        "dense<[1, 7]> : tensor<2xi4>",
        "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xbf16>",
        "dense<> : tensor<0xf32>",
        "dense<(1.000000e+00,2.000000e+00)> : tensor<1xcomplex<f32>>",
    ):
        assert shown in text


def test_aligned_bytecode_is_read_wherever_it_stands(raw: RawLibrary) -> None:
    """The library refuses it unless the bytes happen to be aligned in memory."""
    data = as_bytecode(raw, RESOURCES)
    for _ in range(20):
        assert len(vt.serialize(bytes(bytearray(data)))) > 0


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ('{-# dialect_resources: { builtin: { w: "0x040000000000803f" } } #-}', "contains 4 bytes, but .* requires 16"),
        ("", "value of stablehlo.constant is dense_resource<w.*> : tensor<4xf32>, which VHLO cannot represent"),
    ],
)
def test_resources_that_cannot_be_inlined(resource: str, message: str) -> None:
    text = f"""func.func @main() -> tensor<4xf32> {{
      %0 = stablehlo.constant dense_resource<w> : tensor<4xf32>
      return %0 : tensor<4xf32>
    }}
    {resource}"""
    with pytest.raises(vt.VhloToolsError, match=message) as refused:
        vt.serialize(text)
    assert isinstance(refused.value, vt.InvalidProgramError | vt.UnsupportedFeatureError)


def test_a_vector_in_a_resource_is_named_by_its_op() -> None:
    text = """func.func @main() {
      %0 = arith.constant dense_resource<w> : vector<4xi8>
      return
    }
    {-# dialect_resources: { builtin: { w: "0x0100000007000001" } } #-}"""
    with pytest.raises(vt.UnsupportedFeatureError) as refused:
        vt.serialize(text)
    assert [finding.op for finding in refused.value.findings] == ["arith.constant"]
