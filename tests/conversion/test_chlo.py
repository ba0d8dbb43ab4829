"""CHLO becomes StableHLO, or is refused where the library does not survive that."""

from __future__ import annotations

import numpy as np
import pytest
from support.raw import RawLibrary

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

MATRIX = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)

CHLO = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "conj", "cosh", "digamma", "erf", "erf_inv"),
    *("erfc", "lgamma", "sinh", "square", "tan", "next_after", "polygamma", "zeta", "broadcast_add"),
    *("broadcast_atan2", "broadcast_divide", "broadcast_maximum", "broadcast_minimum", "broadcast_multiply"),
    *("broadcast_next_after", "broadcast_polygamma", "broadcast_power", "broadcast_remainder", "broadcast_subtract"),
    "broadcast_zeta",
)


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.needs("chlo.conj") if each == "conj" else ()) for each in CHLO]
)
def test_chlo_is_legalized(name: str, raw: RawLibrary) -> None:
    kind = "tensor<4xf32>"
    several = name in {"next_after", "polygamma", "zeta"}
    two = several or name.startswith("broadcast")
    types = f"({kind}, {kind})" if name.startswith("broadcast") else f"{kind}, {kind}" if several else kind
    text = f"""func.func @main(%a: {kind}) -> {kind} {{
      %0 = chlo.{name} %a{", %a" if two else ""} : {types} -> {kind}
      return %0 : {kind}
    }}"""
    artifact = vt.serialize(text)
    (note,) = artifact.findings
    assert note.message == f"chlo.{name} was rewritten to StableHLO"
    assert raw.deserialize(bytes(artifact)) is not None
    assert "chlo" not in artifact.dialects


@pytest.mark.parametrize("kind", ["i32", "i1", "complex<f32>", "!quant.uniform<i8:f32, 2.0>"])
@pytest.mark.parametrize("name", ["broadcast_next_after", "broadcast_polygamma"])
def test_chlo_that_the_library_dies_of_is_refused(name: str, kind: str) -> None:
    tensor = f"tensor<2x{kind}>"
    op = f'%0 = "chlo.{name}"(%a, %a) : ({tensor}, {tensor}) -> {tensor}'
    with pytest.raises(vt.UnsupportedFeatureError, match=rf"chlo\.{name} is of the dialect chlo"):
        vt.serialize(f"func.func @main(%a: {tensor}) -> {tensor} {{ {op} return %0 : {tensor} }}", target="1.8.0")


def test_chlo_of_dynamic_shapes_computes_with_shapes() -> None:
    artifact = vt.serialize("""func.func @main(%a: tensor<?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
      %0 = chlo.broadcast_add %a, %b : (tensor<?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
      return %0 : tensor<?x?xf32>
    }""")
    assert [each.message for each in artifact.findings] == ["chlo.broadcast_add was rewritten to StableHLO"]
    (found,) = vt.run(artifact, [MATRIX[0], MATRIX])
    np.testing.assert_array_equal(found, MATRIX[0] + MATRIX)
