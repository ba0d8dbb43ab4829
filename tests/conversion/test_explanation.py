"""Refusals name what stands in the way, where, and since when."""

from __future__ import annotations

from typing import Any

import pytest
from support.corpus import EXAMPLES
from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.artifact import other_dialects

pytestmark = pytest.mark.every_python

BLOCKED = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tan %a : tensor<4xf32> loc("model.py":42:3)
  %1 = "stablehlo.tanh"(%0) {
    result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>
  } : (tensor<4xf32>) -> tensor<4xf32> loc(callsite("layer"("layers.py":7:5) at "model.py":43:3))
  %2 = stablehlo.convert %1 : (tensor<4xf32>) -> tensor<4xf8E3M4>
  %3 = stablehlo.convert %2 : (tensor<4xf8E3M4>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}
"""


def test_every_reason_is_named_with_its_place() -> None:
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(BLOCKED, "1.3.0", name="blocked.mlir")
    error = refused.value
    assert error.summary == "blocked.mlir cannot be written for 1.3.0; it can be written for StableHLO 1.10.0 or later"
    assert [(f.feature, str(f.introduced), str(f.location)) for f in error.findings] == [
        ("tan", "1.4.0", "model.py:42:3"),
        ("result_accuracy", "1.10.0", "layers.py:7:5"),
        ("f8E4M3_f8E3M4", "1.7.0", "blocked.mlir:7:8"),
        ("f8E4M3_f8E3M4", "1.7.0", "blocked.mlir:8:8"),
    ]
    assert [(f.function, f.path) for f in error.findings][1:3] == [
        ("main", "@main/1:stablehlo.tanh"),
        ("main", "@main/2:stablehlo.convert"),
    ]
    text = str(error)
    assert "model.py:42:3: stablehlo.tan needs StableHLO 1.4.0: the op tan" in text
    assert "write tan(x) as sine(x) / cosine(x); or rewrite it with --expand; or choose 1.4.0 or later" in text
    assert "failed to serialize module" not in text


def test_a_default_does_not_stand_in_the_way() -> None:
    # tanh has result_accuracy in VHLO since 1.10.0 in any case; only another value than the default needs it.
    assert vt.serialize(BLOCKED.replace("HIGHEST", "DEFAULT"), "1.7.0").version == vt.Version("1.7.0")
    with pytest.raises(vt.DowngradeError, match="written for StableHLO 1.7.0 or later") as refused:
        vt.serialize(BLOCKED.replace("HIGHEST", "DEFAULT"), "1.4.0")
    assert {finding.feature for finding in refused.value.findings} == {"f8E4M3_f8E3M4"}


def test_a_type_is_named_although_the_library_blames_the_function() -> None:
    program = "func.func @main(%a: tensor<4xf4E2M1FN>) -> tensor<4xf4E2M1FN> { return %a : tensor<4xf4E2M1FN> }"
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(program, "1.7.0", name="types.mlir")
    finding = refused.value.findings[0]
    assert (finding.feature, finding.kind, finding.op) == ("mx_floats", "type", "func.func")
    assert str(finding.location) == "types.mlir:1:1"


def test_a_named_consumer_stands_in_the_message() -> None:
    with pytest.raises(vt.DowngradeError, match=r"cannot be written for jaxlib==0.4.28 \(StableHLO 0.19.10\)"):
        vt.serialize(EXAMPLES / "transformer_step.mlir", "jaxlib==0.4.28")


def test_an_example_points_at_the_line_of_its_script() -> None:
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(EXAMPLES / "transformer_step.mlir", "1.0.0")
    finding = refused.value.findings[0]
    assert finding.feature == "gather_scatter_batching_dims"
    assert finding.location is not None
    assert finding.location.file == "examples/make_transformer_step.py"
    source = (EXAMPLES / "make_transformer_step.py").read_text().splitlines()
    assert "take_along_axis" in source[finding.location.line - 1]


def test_retargeting_explains_too() -> None:
    artifact = vt.serialize(BLOCKED)
    with pytest.raises(vt.DowngradeError, match="model.py:42:3: stablehlo.tan needs StableHLO 1.4.0"):
        vt.retarget(artifact, "1.3.0")


def test_ops_without_a_portable_form_are_all_named_with_their_number() -> None:
    program = """
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = chlo.erf %a : tensor<4xf32> -> tensor<4xf32> loc("model.py":1:1)
      %1 = chlo.erf %0 : tensor<4xf32> -> tensor<4xf32>
      %2 = arith.addf %1, %1 : tensor<4xf32> loc("model.py":3:1)
      return %2 : tensor<4xf32>
    }"""
    with pytest.raises(vt.UnsupportedFeatureError, match="rewriting is disabled") as refused:
        vt.serialize(program, legalize=False)
    assert [(f.op, f.count, str(f.location)) for f in refused.value.findings] == [
        ("chlo.erf", 2, "model.py:1:1"),
        ("arith.addf", 1, "model.py:3:1"),
    ]
    assert "--allow-other-dialects" in str(refused.value)
    assert str(refused.value).count("(2 times)") == 1


@pytest.mark.parametrize(
    ("attribute", "what"), [("my.unit", "a unit attribute"), ("my.array = array<i32: 1>", "an array<i32>")]
)
def test_attributes_without_a_portable_form(attribute: str, what: str) -> None:
    program = f"func.func @main(%a: tensor<4xf32> {{{attribute}}}) {{ return }}"
    with pytest.raises(vt.UnsupportedFeatureError) as refused:
        vt.serialize(program, legalize=False)
    finding = refused.value.findings[0]
    assert (finding.op, finding.kind) == ("func.func", "attribute")
    name = attribute.partition(" ")[0]
    assert finding.message == f"{name} of argument 0 of @main is {what}, which VHLO cannot represent"


def test_an_attribute_of_another_dialect_is_told_from_an_impossible_one() -> None:
    with pytest.raises(vt.UnsupportedFeatureError) as refused:
        vt.serialize(EXAMPLES / "custom_calls.mlir", legalize=False)
    finding = refused.value.findings[0]
    assert (finding.feature, finding.kind, finding.op) == ("mixed_dialects", "dialect", "stablehlo.custom_call")
    assert "the dialect sdy" in finding.message


def unregistered(raw: RawLibrary, text: str) -> Any:
    context = raw.context()
    context.allow_unregistered_dialects = True
    return raw.ir.Module.parse(text, context)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ('"foo.bar"() : () -> ()', "foo.bar is of the dialect foo, which is not part of StableHLO"),
        ("module attributes {my.x = #foo.bar<1>} {}", "an attribute or a type is of the dialect foo"),
        ('sdy.mesh @mesh = <["x"=2]>', "sdy.mesh is of the dialect sdy"),
    ],
)
def test_other_dialects_are_refused_unless_allowed(program: str, message: str, raw: RawLibrary) -> None:
    """The library writes them either way, and whoever does not know the dialect cannot read it."""
    with pytest.raises(vt.UnsupportedFeatureError, match=message):
        vt.serialize(unregistered(raw, program), legalize=not program.startswith("sdy"))
    assert other_dialects(vt.serialize(unregistered(raw, program), allow_other_dialects=True))


def test_what_no_version_has_is_no_downgrade(raw: RawLibrary) -> None:
    text = (
        """"func.func"() <{sym_name = "main", function_type = () -> ()}> ({ "func.return"() : () -> () }) : () -> ()"""
    )
    foreign = raw.ir.Context()
    foreign.allow_unregistered_dialects = True
    for target in ("1.9.0", "1.10.0", "current"):
        with pytest.raises((vt.UnsupportedFeatureError, vt.InvalidProgramError)):
            vt.serialize(raw.ir.Module.parse(text, foreign), target)


def test_findings_are_never_empty_and_versions_are_proven() -> None:
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(BLOCKED, "0.9.0")
    assert refused.value.findings
    version = refused.value.summary.rpartition("StableHLO ")[2].split()[0]
    assert vt.serialize(BLOCKED, version).version == vt.Version(version)
