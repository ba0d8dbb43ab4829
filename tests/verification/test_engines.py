"""Two programs on several engines: which of them differ, which engine stands alone, and what cannot run."""

from __future__ import annotations

import pytest

import vhlo_tools as vt
from vhlo_tools.execution import EngineName
from vhlo_tools.verification import engine_alone

ENGINES: tuple[EngineName, ...] = ("reference", "xla")
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
        vt.verify(saxpy, saxpy, engines=engines)  # type: ignore[arg-type]
