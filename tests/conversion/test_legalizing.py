"""What is said of rewrites, what is refused, and what is left as it is."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider
from vhlo_tools.conversion import make_portable

pytestmark = pytest.mark.every_python


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("arith.maxnumf %a, %c", "tensor<2xf32>"),
        ("math.fma %a, %a, %a", "tensor<2xf32>"),
        ("arith.addi %b, %b", "tensor<2xi1>"),
        ("arith.maxui %b, %d", "tensor<2xi1>"),
        ("arith.cmpf ueq, %a, %a", "tensor<2xf32>"),
        ("mhlo.xla.rng_get_and_update_state {delta = 1 : i64}", "tensor<2xui64>"),
        # An op that StableHLO does not have on such elements takes none of its neighbours along.
        ("arith.shli %b, %d", "tensor<2xi1>"),
        ("math.ctpop %b", "tensor<2xi1>"),
    ],
)
def test_what_has_no_plain_form_is_named_with_its_place(op: str, kind: str) -> None:
    ending = f" : {kind}" if not op.startswith("mhlo") else ""
    arguments = "%a: tensor<2xf32>, %b: tensor<2xi1>, %c: tensor<2xf32>, %d: tensor<2xi1>"
    text = f"func.func @main({arguments}) {{\n  %0 = {op}{ending}\n  return\n}}"
    with pytest.raises(vt.UnsupportedFeatureError) as refused:
        vt.serialize(text, name="p.mlir")
    (finding,) = refused.value.findings
    assert finding.op == op.partition(" ")[0]
    assert str(finding.location) == "p.mlir:2:8"
    assert finding.remedy


@pytest.mark.parametrize(
    ("op", "kinds"),
    [
        ('"arith.truncf"(%a) {roundingmode = 3 : i32}', "(tensor<2xf32>) -> tensor<2xf16>"),
        ('"arith.addf"(%a, %a) {roundingmode = 1 : i32}', "(tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>"),
        # The lowest bit counts, and to StableHLO all of them.
        ('"arith.index_castui"(%i)', "(tensor<2xindex>) -> tensor<2xi1>"),
        ('"arith.fptoui"(%a)', "(tensor<2xf32>) -> tensor<2xi1>"),
        ('"arith.constant"() {value = sparse<[[1]], [2]> : tensor<4xindex>}', "() -> tensor<4xindex>"),
        ('"tensor.empty"()', "() -> tensor<2x!quant.uniform<i8:f32, 0.1>>"),
    ],
)
def test_what_means_something_else_is_refused(op: str, kinds: str) -> None:
    text = f"""func.func @main(%a: tensor<2xf32>) {{
      %i = arith.constant dense<2> : tensor<2xindex>
      %0 = {op} : {kinds}
      return
    }}"""
    with pytest.raises(vt.UnsupportedFeatureError) as refused:
        vt.serialize(text)
    assert op.partition('"(')[0].strip('"') in {finding.op for finding in refused.value.findings}


def test_constants_of_complex_numbers(raw: RawLibrary) -> None:
    """The bindings have no class for their values."""
    values = np.arange(400, dtype=np.float32).view(np.complex64) / 3
    listed = ", ".join(f"({each.real!r}, {each.imag!r})" for each in values.tolist())
    kind = "tensor<200xcomplex<f32>>"
    text = f"""func.func @main() -> ({kind}, tensor<2xcomplex<f64>>, tensor<3xcomplex<f32>>) {{
      %0 = arith.constant {{mhlo.sharding = "{{replicated}}"}} dense<[{listed}]> : {kind}
      %1 = "arith.constant"() {{value = dense<(1.0, -2.0)> : tensor<2xcomplex<f64>>}} : () -> tensor<2xcomplex<f64>>
      %2 = tensor.empty() : tensor<3xcomplex<f32>>
      return %0, %1, %2 : {kind}, tensor<2xcomplex<f64>>, tensor<3xcomplex<f32>>
    }}"""
    artifact = vt.serialize(text)
    found = vt.run(artifact, [])
    np.testing.assert_array_equal(found[0], values)
    np.testing.assert_array_equal(found[1], np.full(2, 1 - 2j))
    assert found[2].shape == (3,)
    assert 'mhlo.sharding = "{replicated}"' in str(raw.deserialize(bytes(artifact)))


def test_constants_of_indices_are_as_large_as_they_say() -> None:
    artifact = vt.serialize("""func.func @main() -> tensor<200000000000xi64> {
      %0 = arith.constant dense<-3> : tensor<200000000000xindex>
      %1 = arith.index_cast %0 : tensor<200000000000xindex> to tensor<200000000000xi64>
      return %1 : tensor<200000000000xi64>
    }""")
    assert "dense<-3> : tensor<200000000000xi64>" in str(vt.deserialize(artifact))


def test_padding_that_is_computed_is_refused() -> None:
    with pytest.raises(vt.UnsupportedFeatureError) as refused:
        vt.serialize("""func.func @main(%a: tensor<2xi64>) -> tensor<4xi64> {
          %0 = tensor.pad %a low[1] high[1] {
          ^bb0(%i: index):
            %z = arith.index_cast %i : index to i64
            tensor.yield %z : i64
          } : tensor<2xi64> to tensor<4xi64>
          return %0 : tensor<4xi64>
        }""")
    assert "tensor.pad" in {finding.op for finding in refused.value.findings}


def test_attributes_that_anybody_may_put_on_ops_stay_or_are_said_to_be_lost() -> None:
    artifact = vt.serialize("""func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = arith.addf %a, %a {mhlo.sharding = "{replicated}"} : tensor<2xf32>
      %1 = mhlo.copy %0 {mhlo.sharding = "{replicated}"} : tensor<2xf32>
      %2 = chlo.tan %1 {mhlo.sharding = "{replicated}"} : tensor<2xf32> -> tensor<2xf32>
      return %2 : tensor<2xf32>
    }""")
    assert {each.message for each in artifact.findings} == {
        "arith.addf was rewritten to stablehlo.add",
        "mhlo.copy was replaced by its operand, without its mhlo.sharding",
        "chlo.tan was rewritten to StableHLO, without its mhlo.sharding",
    }
    assert 'add %arg0, %arg0 {mhlo.sharding = "{replicated}"}' in str(vt.deserialize(artifact))


def test_a_fusion_is_inlined() -> None:
    artifact = vt.serialize("""func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "mhlo.fusion"(%a) <{fusion_kind = #mhlo<fusion_kind kLoop>}> ({
      ^bb0(%b: tensor<2xf32>):
        %1 = mhlo.add %b, %b : tensor<2xf32>
        mhlo.return %1 : tensor<2xf32>
      }) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }""")
    assert {each.message for each in artifact.findings} == {
        "mhlo.fusion was inlined",
        "mhlo.add was rewritten to StableHLO",
    }


def test_fusions_in_fusions_are_inlined() -> None:
    kind = "tensor<2xf32>"
    body = f"%r = mhlo.copy %v0 : {kind}"
    for depth in range(1, 4):
        body = f"""%r = "mhlo.fusion"(%v{depth}) <{{fusion_kind = #mhlo<fusion_kind kLoop>}}> ({{
          ^bb0(%v{depth - 1}: {kind}):
            {body.replace("%r", f"%r{depth}")}
            "mhlo.return"(%r{depth}) : ({kind}) -> ()
        }}) : ({kind}) -> {kind}"""
    artifact = vt.serialize(f"func.func @main(%v3: {kind}) -> {kind} {{\n{body}\nreturn %r : {kind}\n}}")
    # Ops within an op that is gone, too, are no longer asked.
    assert {each.message for each in artifact.findings} == {
        "mhlo.fusion was inlined",
        "mhlo.fusion was rewritten to StableHLO",
        "mhlo.copy was rewritten to StableHLO",
    }


@pytest.mark.parametrize("options", [{}, {"allow_other_dialects": True}, {"legalize": False}, {"target": "1.0.0"}])
def test_prefetches_are_removed(options: dict[str, Any]) -> None:
    # MHLO's verifier ends the process, once `main` is of VHLO.
    prefetch = "#mhlo.cross_program_prefetch<parameter = 0, indices = [], offset = 0>"
    main = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"
    text = f"module attributes {{mhlo.cross_program_prefetches = [{prefetch}]}} {{ {main} }}"
    (note,) = vt.serialize(text, **options).findings
    assert (note.level, note.message) == ("note", "the mhlo.cross_program_prefetches of the module were removed")


def test_notes_say_what_is_left() -> None:
    artifact = vt.serialize("""func.func @main(%a: tensor<?xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
      %unused = arith.addf %b, %b : tensor<2xf32>
      %s = shape.shape_of %a : tensor<?xf32> -> tensor<1xindex>
      %w = shape.cstr_eq %s, %s : tensor<1xindex>, tensor<1xindex>
      %0 = math.erf %b : tensor<2xf32>
      return %0 : tensor<2xf32>
    }""")
    assert {each.message for each in artifact.findings} == {
        "arith.addf was removed, because its results are not used",
        "shape.shape_of was removed, because its results are not used",
        "shape.cstr_eq was removed, and the constraint is not checked",
        "math.erf was rewritten to StableHLO",
    }


def test_a_provider_without_chlo_is_spared_its_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the dialect is not known, the pass for it crashes the process."""
    monkeypatch.setitem(vars(get_provider()), "lacking", ("chlo",))
    text = "func.func @main(%a: tensor<2xf32>) { %0 = math.erf %a : tensor<2xf32> return }"
    with pytest.raises(vt.UnsupportedFeatureError, match=r"math\.erf is of the dialect math"):
        vt.serialize(text)


def test_a_module_that_is_not_valid_is_refused(raw: RawLibrary) -> None:
    """Nobody verified it, and what rules look for may not be there."""
    module = raw.parse("func.func @main(%a: tensor<2xf32>) { %0 = arith.constant 1 : i32 return }")
    ir = raw.ir
    with module.context, ir.Location.unknown():
        block = module.body.operations[0].regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(block):
            kind = ir.Type.parse("tensor<3xf32>")
            ir.Operation.create("mhlo.copy", results=[kind], operands=[block.arguments[0]])
            ir.Operation.create("shape.assuming", results=[kind], operands=[block.arguments[0]], regions=1)
    with pytest.raises(vt.InvalidProgramError):
        vt.serialize(module)


def test_what_stays_keeps_what_it_needs() -> None:
    """An op that cannot be rewritten is named alone, and not the constants that it uses."""
    text = """func.func @main(%a: tensor<?xf32>) {
      %c = arith.constant 0 : index
      %0 = tensor.dim %a, %c : tensor<?xf32>
      "func.call"(%0) {callee = @other} : (index) -> ()
      return
    }
    func.func private @other(index)"""
    with pytest.raises(vt.UnsupportedFeatureError) as refused:
        vt.serialize(text)
    assert "tensor.dim" in {finding.op for finding in refused.value.findings}


def test_nothing_is_rewritten_unasked_or_needlessly(raw: RawLibrary) -> None:
    text = "func.func @main() -> tensor<f32> { %0 = arith.constant dense<1.0> : tensor<f32> return %0 : tensor<f32> }"
    with pytest.raises(vt.UnsupportedFeatureError, match="rewriting is disabled"):
        vt.serialize(text, legalize=False)
    kept = vt.serialize(text, allow_other_dialects=True)
    assert (kept.findings, "arith" in kept.dialects) == ((), True)
    module = raw.parse(text)
    before = str(module)
    assert "arith" not in vt.serialize(module).dialects
    assert str(module) == before


def test_what_was_refused_is_let_go_of_before_it_is_rewritten(monkeypatch: pytest.MonkeyPatch, raw: RawLibrary) -> None:
    """Of large constants there would be a copy more."""
    seen = []

    def watched(*arguments: Any, **options: Any) -> Any:
        seen.append(raw.ir.Context._get_live_count())
        return make_portable(*arguments, **options)

    monkeypatch.setattr("vhlo_tools.conversion.serialization.make_portable", watched)
    text = "func.func @main() -> tensor<f32> { %0 = arith.constant dense<1.0> : tensor<f32> return %0 : tensor<f32> }"
    gc.collect()
    gc.disable()
    try:
        before = raw.ir.Context._get_live_count()
        vt.serialize(text)
    finally:
        gc.enable()
    assert seen == [before]


def test_a_function_of_vhlo_with_an_op_of_another_dialect_is_legalized() -> None:
    program = """vhlo.func_v1 @main() -> () {
      %0 = "arith.constant"() <{value = 7 : index}> : () -> index
      "vhlo.return_v1"() : () -> ()
    } {arg_attrs = #vhlo.array_v1<[]>, res_attrs = #vhlo.array_v1<[]>, sym_visibility = #vhlo.string_v1<"">}"""
    (finding,) = vt.check(program, "1.0.0")
    assert (finding.op, finding.level) == ("arith.constant", "note")


FUSION = """func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {{
  %0 = "mhlo.fusion"({0}) ({{
    {1}
  }}) : ({2}) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}}"""
BOTH = "tensor<2xf32>, tensor<2xf32>"
PRODUCT = """%1 = mhlo.multiply %x, %y : tensor<2xf32>
    "mhlo.return"(%1) : (tensor<2xf32>) -> ()"""


@pytest.mark.parametrize(("operands", "types"), [("%x, %y", BOTH), ("", "")], ids=["operands", "none"])
def test_a_fusion_uses_values_from_outside(operands: str, types: str) -> None:
    artifact = vt.serialize(FUSION.format(operands, PRODUCT, types))
    (found,) = vt.run(artifact, [np.array([1, 2], np.float32), np.array([3, 4], np.float32)])
    assert found.tolist() == [3, 8]


@pytest.mark.parametrize(
    "body",
    [
        f"^bb0(%a: tensor<2xf32>): {PRODUCT}",
        f"^bb0(%a: tensor<2xf32>, %b: tensor<3xf32>): {PRODUCT}",
        f'"mhlo.return"(%x, %y) : ({BOTH}) -> ()',
        '"mhlo.return"() : () -> ()',
        '%1 = mhlo.constant dense<1> : tensor<2xi32> "mhlo.return"(%1) : (tensor<2xi32>) -> ()',
    ],
    ids=["fewer arguments", "other arguments", "more results", "no results", "other results"],
)
def test_a_fusion_whose_body_does_not_fit_is_refused(body: str) -> None:
    with pytest.raises(vt.UnsupportedFeatureError) as refused:
        vt.serialize(FUSION.format("%x, %y", body, BOTH))
    assert "mhlo.fusion" in {finding.op for finding in refused.value.findings}
