"""What is said of attributes is what the library does with them: kept, changed, or refused."""

from __future__ import annotations

import re

import pytest
from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider

pytestmark = pytest.mark.every_python

ATTRIBUTES = """
unit|true|1 : i1|1 : i3|1 : i4|1 : i8|1 : ui8|1 : si8|1 : i32|1 : i64|1 : i128|1 : index
1.0 : f16|1.0 : bf16|1.0 : f32|1.0 : f64|1.0 : f80|1.0 : f8E4M3FN
"text"|"text" : i32|@main|@a::@b
i32|index|none|tensor<?xi8>|memref<4xf32>|vector<4xf32>|(i32) -> i32|tuple<i32>|complex<f32>|!stablehlo.token
dense<1> : tensor<2xi32>|dense<[1, 2]> : tensor<2xi64>|dense<true> : tensor<2xi1>|dense<[1, 2]> : tensor<2xindex>
dense<1.0> : vector<2xf32>|dense<(1.0, 2.0)> : tensor<1xcomplex<f32>>|sparse<[[0]], [1]> : tensor<2xi32>
array<i1: true>|array<i8: 1>|array<i16: 1>|array<i32: 1>|array<i64: 1>|array<i64>|array<f32: 1.0>|array<f64: 1.0>
[]|[1, "a"]|[array<i64: 1>]|[[@main], {a = array<i32: 1>}]|{}|{a = 1}|{a = {b = [array<i1: false>]}}|{a = [unit]}
affine_map<(d0) -> (d0)>|affine_set<(d0) : (d0 >= 0)>|strided<[1]>|distinct[0]<"a">
#stablehlo.channel_handle<handle = 1, type = 0>|#stablehlo<comparison_direction LT>|#stablehlo<precision DEFAULT>
#stablehlo.bounds<1>|#stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>
#chlo<comparison_direction LT>|#sdy.mesh<["a"=2]>
"""
PLACES = {
    "argument": "func.func @main(%a: tensor<f32> {ATTRIBUTE}) -> tensor<f32> { return %a : tensor<f32> }",
    "result": "func.func @main(%a: tensor<f32>) -> (tensor<f32> {ATTRIBUTE}) { return %a : tensor<f32> }",
    "function": "func.func @main(%a: tensor<f32>) -> tensor<f32> attributes {ATTRIBUTE} { return %a : tensor<f32> }",
    "op": """func.func @main(%a: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.negate %a {ATTRIBUTE} : tensor<f32>
      return %0 : tensor<f32>
    }""",
    "configuration": """func.func @main(%a: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.custom_call @k(%a) {api_version = 4 : i32, backend_config = {ATTRIBUTE}}
        : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }""",
    "module": """module attributes {ATTRIBUTE} {
      func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }
    }""",
}


def outcome_of(raw: RawLibrary, text: str) -> str:
    """Return what the bare library does with a program: ``kept``, ``changed`` or ``refused``."""
    before = str(raw.parse(text))
    data = raw.serialize(raw.parse(text), str(get_provider().library.current))
    if data is None:
        return "refused"
    return "kept" if str(raw.deserialize(data)) == before else "changed"


@pytest.mark.sample(12)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("attribute", [each for line in ATTRIBUTES.split("\n") if line for each in line.split("|")])
def test_findings_say_what_the_library_does(attribute: str, place: str) -> None:
    spelled = "x.y" if attribute == "unit" else f"x.y = {attribute}"
    text = PLACES[place].replace("ATTRIBUTE", spelled)
    # Which readers know the code of an entry, `builtin_codes`, is not what is asked here.
    others = ("builtin_codes",)
    found = [each for each in vt.check(text, legalize=False) if each.level != "note" and each.feature not in others]
    said = {"error": "refused", "warning": "changed"}[found[0].level] if found else "kept"
    if place == "module" and attribute[0] in "#!":
        # The library leaves what is in a module as it is; of another dialect than VHLO, it needs leave from us.
        assert said == "refused"
        assert [each.feature for each in found] == ["mixed_dialects"]
        return
    assert said == outcome_of(RawLibrary(get_provider()), text)
    holder = {"configuration": "backend_config of stablehlo.custom_call", "op": "x.y of stablehlo.negate"}
    for each in found:
        assert each.message.startswith(holder.get(place, "x.y of ")), each.message
        assert each.location
        assert not re.search(r"without a form|failed to", each.message)


def test_constants_in_resources_are_named_beside_complex_ones() -> None:
    found = vt.check(
        """func.func @main() {
      %0 = stablehlo.constant dense<(1.0, 2.0)> : tensor<1xcomplex<f32>>
      %1 = stablehlo.constant dense_resource<blob> : tensor<1xi32>
      return
    }
    {-# dialect_resources: { builtin: { blob: "0x0400000001000000" } } #-}""",
        legalize=False,
    )
    (finding,) = found
    assert finding.message.startswith(
        "value of stablehlo.constant is dense_resource<blob> : tensor<1xi32>, which VHLO cannot"
    )
    assert finding.location
    assert finding.location.line == 3
