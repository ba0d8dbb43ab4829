"""Programs on several engines: which of them differ, which engine stands alone, and what cannot run."""

from __future__ import annotations

import pytest

import vhlo_tools as vt
from vhlo_tools.execution import EngineName
from vhlo_tools.verification import EngineDivergence, engine_alone, find_engine_divergence

ENGINES: tuple[EngineName, EngineName] = ("reference", "xla")
F32 = "tensor<4xf32>"
#: The interpreter rounds it otherwise than XLA, which the default tolerance lets pass.
TANH = f"func.func @main(%a: {F32}) -> {F32} {{ %0 = stablehlo.tanh %a : {F32}\n return %0 : {F32} }}"
SIX_BITS = TANH.replace(F32, "tensor<2xf6E2M3FN>")
CALL = f"""func.func @main(%a: {F32}) -> {F32} {{
  %0 = stablehlo.custom_call @ApproxTopK(%a) : ({F32}) -> {F32}
  return %0 : {F32}
}}"""


@pytest.mark.parametrize(
    ("engines", "differing", "alone"),
    [
        pytest.param("abc", ["ab", "ac"], "a", id="the first"),
        pytest.param("abc", ["ac", "bc"], "c", id="the last"),
        pytest.param("abc", ["ab"], None, id="a chain"),
        pytest.param("abc", ["ab", "ac", "bc"], None, id="all differ"),
        pytest.param("ab", ["ab"], None, id="two engines"),
        pytest.param("abc", [], None, id="all agree"),
        pytest.param("abcd", ["ad", "bd", "cd"], "d", id="of four"),
        pytest.param("abcd", ["ac", "ad", "bc", "bd"], None, id="two and two"),
    ],
)
def test_the_engine_that_stands_alone(engines: str, differing: list[str], alone: str | None) -> None:
    assert engine_alone(list(engines), [(each[1], each[0]) for each in differing]) == alone


def test_equal_programs(saxpy: str) -> None:
    report = vt.verify(saxpy, saxpy, rounds=2, engines=ENGINES, names=("a", "b"))
    assert report.passed
    assert report.engines == ENGINES
    assert str(report).splitlines()[:4] == [
        "b computes the same as a, within 4 ulp, on reference and xla",
        "on reference: 2 rounds passed, at most 0 ulp apart",
        "on xla: 2 rounds passed, at most 0 ulp apart",
        "engines agree on both programs: reference and xla",
    ]


def test_programs_that_differ() -> None:
    report = vt.verify(TANH, TANH.replace("tanh", "negate"), [[1, 2, 3, 4]], engines=ENGINES, bisect=True)
    assert not report.passed
    assert report.on_engines is not None
    assert report.on_engines.differing == ENGINES
    assert report.divergence is not None
    assert "on xla: 1 of 1 round failed" in str(report)


def test_engines_that_disagree_on_programs_that_agree() -> None:
    report = vt.verify(TANH, TANH, rounds=4, engines=ENGINES, tolerance=vt.Tolerance(0), names=("a", "b"))
    assert report.passed
    assert report.on_engines is not None
    one, other = report.on_engines.disagreements
    assert (one.program, other.program, one.alone, one.engines) == ("a", "b", None, ENGINES)
    assert list(one.differing) == [("xla", "reference")]
    assert "engines disagree: a, output 0, drawn from seed " in str(report)
    assert "xla disagrees with reference; xla with reference: " in str(report)


def test_an_engine_that_cannot_run_a_program() -> None:
    report = vt.verify(SIX_BITS, SIX_BITS, rounds=1, engines=ENGINES)
    assert report.passed
    assert report.engines == ("reference",)
    assert report.on_engines is not None
    assert report.on_engines.runs[1].refusal is not None
    assert "on xla: not run: " in str(report)
    assert not report.on_engines.disagreements


def test_programs_that_no_engine_can_run() -> None:
    with pytest.raises(vt.EngineError, match=r"no engine can run the programs: reference: .*; xla: "):
        vt.verify(CALL, CALL, engines=ENGINES)


def test_programs_of_other_parameters(saxpy: str) -> None:
    with pytest.raises(vt.VerificationError, match="only programs with the same parameters"):
        vt.verify(saxpy, TANH, engines=ENGINES)


@pytest.mark.parametrize(
    ("engines", "message"),
    [
        (["xla", "auto"], "'auto' is not an engine: expected some of reference, xla, iree"),
        (["xla"], "expected two or more different ones"),
        (["xla", "xla"], "expected two or more different ones"),
    ],
)
def test_engines_are_two_or_more(saxpy: str, engines: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vt.verify(saxpy, saxpy, engines=engines)


# One program

NESTED = f"""func.func @main(%a: {F32}) -> ({F32}, {F32}) {{
  %0 = stablehlo.abs %a : {F32}
  %1 = call @inner(%0) : ({F32}) -> {F32}
  %2 = stablehlo.negate %1 : {F32}
  return %0, %2 : {F32}, {F32}
}}
func.func private @inner(%a: {F32}) -> {F32} {{
  %0 = stablehlo.negate %a : {F32}
  %1 = stablehlo.tanh %0 : {F32}
  return %1 : {F32}
}}"""


def test_engines_agree_on_one_program() -> None:
    report = vt.verify(NESTED, rounds=2, engines=ENGINES, names=("nested", None), tolerance=vt.Tolerance(64))
    assert report.passed
    assert report.before == report.after == "nested"
    assert str(report).splitlines()[:3] == [
        "reference and xla agree on nested, within 64 ulp",
        "on reference: 2 rounds",
        "on xla: 2 rounds",
    ]


def test_the_op_at_which_engines_part_is_found_in_a_callee() -> None:
    given = [[0.1, 0.2, 0.3, 0.7]]
    report = vt.verify(NESTED, None, given, engines=ENGINES, tolerance=vt.Tolerance(0), bisect=True)
    assert not report.passed
    assert isinstance(report.divergence, EngineDivergence)
    assert report.divergence.op == "stablehlo.tanh"
    assert set(report.divergence.engines) == set(ENGINES)
    assert "part at stablehlo.tanh" in str(report)
    assert vt.verify(NESTED, None, given, engines=ENGINES, bisect=True).divergence is None
    executable = vt.load_executable(NESTED, engine="reference")
    assert find_engine_divergence(executable, ENGINES, given, vt.Tolerance(64)) is None


def test_one_program_needs_two_engines() -> None:
    with pytest.raises(ValueError, match="give engines"):
        vt.verify(TANH)
    with pytest.raises(vt.EngineError, match="only reference can run the program: xla: "):
        vt.verify(SIX_BITS, engines=ENGINES)


def test_what_the_specification_leaves_open_is_no_disagreement() -> None:
    """The interpreter and XLA add the initial value once each, but round the function otherwise."""
    text = f"""func.func @main(%a: {F32}) -> (tensor<f32>, {F32}) {{
      %c = stablehlo.constant dense<0.125> : tensor<f32>
      %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [0] :
        ({F32}, tensor<f32>) -> tensor<f32>
      %1 = stablehlo.tanh %0 : tensor<f32>
      return %1, %a : tensor<f32>, {F32}
    }}"""
    given = [[0.1, 0.2, 0.3, 0.1]]
    report = vt.verify(text, None, given, engines=ENGINES, tolerance=vt.Tolerance(0))
    assert report.on_engines is not None
    (found,) = report.on_engines.disagreements
    assert found.explained
    assert report.passed
    assert "engines may disagree" in str(report)
    assert "the specification leaves this open: stablehlo.reduce" in str(report)
    neutral, moved = text.replace("0.125", "0.0"), [[0.225, 0.2, 0.3, 0.1]]
    assert not vt.verify(neutral, None, moved, engines=ENGINES, tolerance=vt.Tolerance(0)).passed


SUBNORMAL = f"""func.func @main(%a: {F32}) -> {F32} {{
  %c = stablehlo.constant dense<0.5> : {F32}
  %0 = stablehlo.multiply %a, %c : {F32}
  return %0 : {F32}
}}"""
RECIPROCAL = f"""func.func @main(%a: {F32}) -> {F32} {{
  %c = stablehlo.constant dense<1.0> : {F32}
  %0 = stablehlo.divide %c, %a : {F32}
  return %0 : {F32}
}}"""


@pytest.mark.parametrize("text", [SUBNORMAL, RECIPROCAL], ids=["results", "inputs"])
def test_subnormal_numbers_are_named(text: str) -> None:
    """XLA takes them as zero on a CPU."""
    report = vt.verify(text, None, [[5e-39, 1, 2, 3]], engines=ENGINES)
    assert report.on_engines is not None
    (found,) = report.on_engines.disagreements
    (comparison,) = found.differing.values()
    assert (comparison.outside, comparison.explained) == (1, "xla takes subnormal numbers as zero")
    assert report.passed
    assert "1 of 1 rounds say nothing" in str(report)
    assert not vt.verify(text, None, [[5e-38, 1, 2, 3]], engines=ENGINES).on_engines.disagreements  # type: ignore[union-attr]


def test_two_programs_that_differ_in_subnormal_numbers_on_xla_alone() -> None:
    same = f"func.func @main(%a: {F32}) -> {F32} {{ return %a : {F32} }}"
    double = SUBNORMAL.replace("return %0", f"%1 = stablehlo.add %0, %0 : {F32}\n  return %1")
    given = [[2.0**-140, 1, 2, 3]]
    assert str(vt.verify(same, double, given, engine="reference")).count("equal")
    report = vt.verify(same, double, given, engine="xla")
    assert report.passed
    (comparison,) = report.rounds[0].outputs
    assert comparison.explained
    assert report.rounds[0].subnormals
