"""Known faults: each is a finding, is recognised in a program that has it, and is named by runs and verification."""

from __future__ import annotations

from collections import defaultdict

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from support.corpus import ROOT
from support.reproductions import known_findings, known_results

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider
from vhlo_tools.bindings.xla_client import JUDGE_OPTIONS
from vhlo_tools.execution import KNOWN_FAULTS, KnownFault
from vhlo_tools.execution.known_faults import faults_in
from vhlo_tools.execution.op_traits import OP_TRAITS

BY_ID = {each.id: each for each in KNOWN_FAULTS}
#: Files that avoid what engines get wrong in ops, and do not only refuse or lower what they lack.
AVOIDING = {
    "vhlo_tools/bindings/xla_client.py",
    "vhlo_tools/execution/xla/workarounds.py",
    "vhlo_tools/execution/lowering/types.py",
}
F = "tensor<4xf32>"


def elementwise(op: str, *kinds: str, result: str = "") -> str:
    names = ["%a", "%b"][: len(kinds)]
    arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(names, kinds, strict=True))
    types = f"({', '.join(kinds)}) -> {result or kinds[0]}"
    body = f'%r = "stablehlo.{op.partition(" ")[0]}"({", ".join(names)}) {op.partition(" ")[2]} : {types}'
    return f"func.func @main({arguments}) -> {result or kinds[0]} {{\n{body}\nreturn %r : {result or kinds[0]}\n}}"


def twice(op: str, other: str, kind: str, constant: str = "") -> str:
    second = "%c" if constant else "%b"
    lines = f"%0 = stablehlo.{op} %a, {second} : {kind}\n%1 = stablehlo.{other} %0, {second} : {kind}"
    lines = f"%c = stablehlo.constant dense<{constant}> : {kind}\n{lines}" if constant else lines
    return f"func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{\n{lines}\nreturn %1 : {kind}\n}}"


def compare(how: str) -> str:
    direction, type_ = "#stablehlo<comparison_direction LT>", f"#stablehlo<comparison_type {how}>"
    op = f"compare <{{comparison_direction = {direction}, compare_type = {type_}}}>"
    return elementwise(op, F, F, result="tensor<4xi1>")


def reported(name: str) -> str:
    return (ROOT / "tests" / "programs" / "reports" / f"{name}.mlir").read_text()


def update(index: str) -> str:
    body = f"%r = stablehlo.dynamic_update_slice %a, %u, %i : ({F}, tensor<1xf32>, tensor<{index}>) -> {F}"
    return f"func.func @main(%a: {F}, %u: tensor<1xf32>, %i: tensor<{index}>) -> {F} {{\n{body}\nreturn %r : {F}\n}}"


def reduce(op: str, kind: str) -> str:
    body = f"%r = stablehlo.reduce(%a init: %b) applies stablehlo.{op} across dimensions = [0] : "
    body += f"(tensor<4x{kind}>, tensor<{kind}>) -> tensor<{kind}>"
    arguments = f"%a: tensor<4x{kind}>, %b: tensor<{kind}>"
    return f"func.func @main({arguments}) -> tensor<{kind}> {{\n{body}\nreturn %r : tensor<{kind}>\n}}"


def two_sums(one: str, other: str) -> str:
    args, types = f"%a: tensor<4x{one}>, %b: tensor<4x{other}>", f"tensor<{one}>, tensor<{other}>"
    region = f"""^bb0(%x: tensor<{one}>, %i: tensor<{other}>, %y: tensor<{one}>, %j: tensor<{other}>):
%s = stablehlo.add %x, %y : tensor<{one}> %t = stablehlo.add %i, %j : tensor<{other}>
stablehlo.return %s, %t : {types}"""
    return f"""func.func @main({args}) -> ({types}) {{
%z = stablehlo.constant dense<0> : tensor<{one}> %w = stablehlo.constant dense<0> : tensor<{other}>
%r:2 = "stablehlo.reduce"(%a, %b, %z, %w) <{{dimensions = array<i64: 0>}}> ({{ {region} }}) :
  (tensor<4x{one}>, tensor<4x{other}>, {types}) -> ({types})
return %r#0, %r#1 : {types} }}"""


def slice_at(index: str) -> str:
    body = f"%i = stablehlo.constant dense<1> : tensor<{index}>\n"
    body += f"%r = stablehlo.dynamic_slice %a, %i, sizes = [2] : ({F}, tensor<{index}>) -> tensor<2xf32>"
    return f"func.func @main(%a: {F}) -> tensor<2xf32> {{\n{body}\nreturn %r : tensor<2xf32>\n}}"


def window(low: int) -> str:
    body = f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
%r = "stablehlo.reduce_window"(%a, %z)
  <{{window_dimensions = array<i64: 1>, padding = dense<[[{low}, 0]]> : tensor<1x2xi64>}}> ({{
^bb0(%x: tensor<f32>, %y: tensor<f32>): %m = stablehlo.add %x, %y : tensor<f32> stablehlo.return %m : tensor<f32>
}}) : ({F}, tensor<f32>) -> tensor<{4 + low}xf32>"""
    return f"func.func @main(%a: {F}) -> tensor<{4 + low}xf32> {{\n{body}\nreturn %r : tensor<{4 + low}xf32>\n}}"


def product(kind: str) -> str:
    matrix = f"tensor<2x2x{kind}>"
    body = f"%r = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1] : ({matrix}, {matrix}) -> {matrix}"
    return f"func.func @main(%a: {matrix}) -> {matrix} {{\n{body}\nreturn %r : {matrix}\n}}"


#: A program that has the fault, and one of the same ops that has not.
CASES = {
    "interpreter-total-order": (compare("TOTALORDER"), compare("FLOAT")),
    "interpreter-unsigned-indices": (update("ui8"), update("i8")),
    "interpreter-narrow-float-overflow": (
        elementwise("divide", *["tensor<4xf4E2M1FN>"] * 2),
        elementwise("divide", F, F),
    ),
    "xla-narrow-start-indices": (update("i8"), update("i32")),
    "xla-update-by-a-slice-of-itself": (update("i32"), elementwise("abs", F)),
    "xla-algebra-of-floats": (twice("divide", "divide", F), twice("divide", "divide", "tensor<4xi32>")),
    "xla-constant-reassociation": (twice("add", "subtract", F, "0.1"), twice("add", "subtract", F)),
    "xla-double-rounding-to-bf16": (
        elementwise("convert", "tensor<4xf64>", result="tensor<4xf16>"),
        elementwise("convert", F, result="tensor<4xf16>"),
    ),
    "xla-sums-of-booleans": (elementwise("add", *["tensor<4xi1>"] * 2), elementwise("add", *["tensor<4xi8>"] * 2)),
    "xla-constants-of-narrow-elements": (
        elementwise("negate", "tensor<4xf8E8M0FNU>"),
        elementwise("negate", "tensor<4xf8E5M2>"),
    ),
    "xla-zeros-of-negative-constants": (
        elementwise("count_leading_zeros", "tensor<4xi32>"),
        elementwise("count_leading_zeros", "tensor<4xui32>"),
    ),
    "xla-scatter-of-one-value": (reported("scatter_of_one_value_twice"), reported("scatter_without_an_index")),
    "xla-scatter-without-an-index": (reported("scatter_without_an_index"), reported("scatter_of_one_value_twice")),
    "xla-sort-taken-for-a-top-k": (
        reported("first_of_a_sort_with_an_iota_of_another_dimension"),
        elementwise("abs", F),
    ),
    "xla-kernels-of-dilated-windows": (reported("windows_over_a_dilated_base"), elementwise("abs", F)),
    "xla-kernels-of-minima": (reduce("minimum", "f32"), reduce("minimum", "i32")),
    "xla-products-of-two-bits": (product("i2"), product("i4")),
    "xla-reduction-of-two-bits-beside-others": (two_sums("ui2", "i32"), two_sums("ui2", "i2")),
    "xla-unsigned-constant-indices": (slice_at("ui8"), slice_at("i8")),
    "xla-windows-of-one-with-negative-padding": (window(-1), window(1)),
    "xla-kernels-of-products": (reported("rows_squared"), elementwise("multiply", F, F)),
    "xla-kernels-of-rank-7": (reported("sum_of_products_of_rank_7"), reported("rows_squared")),
    "xla-concatenate-of-two-bits": (
        elementwise("concatenate <{dimension = 0 : i64}>", *["tensor<4xi2>"] * 2, result="tensor<8xi2>"),
        elementwise("concatenate <{dimension = 0 : i64}>", *["tensor<4xi4>"] * 2, result="tensor<8xi4>"),
    ),
}


def found_in(text: str, fault: KnownFault) -> bool:
    provider = get_provider(None)
    module = provider.parse(provider.new_context(), text)
    return fault in faults_in(provider, module, fault.engine)


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_recognised_where_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Those that the installed release has mended too.
    monkeypatch.setattr(Version, "__ge__", lambda *_: False)
    has, lacks = CASES[name]
    assert found_in(has, BY_ID[name])
    assert not found_in(lacks, BY_ID[name])


def test_mended_faults_are_in_play_on_older_releases_only() -> None:
    name, release = get_provider(None).library.name.split()
    assert name == "jaxlib"
    fault = BY_ID["xla-constant-reassociation"]
    assert found_in(CASES[fault.id][0], fault) is (Version(release) < Version(fault.mended))


def test_faults_are_findings_with_the_releases_that_were_tried() -> None:
    outcomes: defaultdict[str, dict[Version, str]] = defaultdict(dict)
    for each in known_results():
        if each.release.startswith("jaxlib"):
            (specifier,) = Requirement(each.release).specifier
            outcomes[each.finding][Version(specifier.version)] = each.outcome
    findings = known_findings()
    for fault in KNOWN_FAULTS:
        tried = outcomes[fault.id]
        assert (tried[max(tried)] == "mended") is bool(fault.mended), fault.id
        assert not fault.mended or tried[Version(fault.mended)] == "mended", fault.id
        assert findings[fault.id].library == ("XLA" if fault.engine == "xla" else "StableHLO")
        assert {f"stablehlo.{op}" for op in fault.ops} <= OP_TRAITS.keys()


def test_what_is_avoided_is_a_known_fault() -> None:
    avoided = {name for name, each in known_findings().items() if each.workaround in AVOIDING}
    assert avoided <= BY_ID.keys()
    for name, option in JUDGE_OPTIONS.items():
        assert option.reason
        assert {BY_ID[each].remedy for each in option.faults} == {"option"}, name
    named = {each for option in JUDGE_OPTIONS.values() for each in option.faults}
    assert named == {each.id for each in KNOWN_FAULTS if each.remedy == "option"}


def test_what_a_check_of_xla_refuses_is_refused_by_name() -> None:
    given = [[1, 2, 3, 0], [1, 2, 3, 4]]
    mixed, alike = CASES["xla-reduction-of-two-bits-beside-others"]
    with pytest.raises(vt.EngineError, match="does not reduce elements of two bits beside others; use the engine ref"):
        vt.run(mixed, given, engine="xla")
    assert list(map(int, vt.run(mixed, given, engine="reference"))) == [2, 10]
    assert list(map(int, vt.run(alike, [given[0], [1, 0, -1, -1]], engine="xla"))) == [2, -1]


def test_runs_and_verification_name_them() -> None:
    text = CASES["xla-algebra-of-floats"][0]
    (shown,) = vt.load_executable(text, engine="xla").execute([[1, 2, 3, 4], [4, 3, 2, 1]]).report.notes
    assert shown.startswith("xla-algebra-of-floats: a known fault of xla, avoided by other ops")
    report = vt.verify(text, text, engine="xla", rounds=1)
    assert report.known_faults == (BY_ID["xla-algebra-of-floats"],)
    assert shown in str(report)
