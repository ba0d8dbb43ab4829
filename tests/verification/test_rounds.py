"""Programs that compute the same, and programs that do not."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.aliasing import Array, Declared, Opaque, Signature
from vhlo_tools.cli.main import main
from vhlo_tools.verification import Divergence
from vhlo_tools.verification.rounds import compare_outputs, verify_executables

F = "tensor<4xf32>"


def program(op: str, attribute: str = "") -> str:
    return f"func.func @main(%a: {F}{attribute}) -> {F} {{ %0 = {op} : {F} return %0 : {F} }}"


@pytest.mark.sample(2)
@pytest.mark.parametrize("engine", ["reference", "xla"])
@pytest.mark.parametrize("name", ["saxpy.mlir", "keras_mlp.mlirbc", "symbolic_export.jax_export"])
def test_what_was_moved_computes_the_same(name: str, engine: Any) -> None:
    report = vt.verify(EXAMPLES / name, vt.serialize(EXAMPLES / name, "1.1.0"), engine=engine, rounds=2)
    assert report.passed
    assert report.max_ulp == 0
    report.require()
    assert len(report.rounds) == 2


def test_a_difference_is_reported() -> None:
    report = vt.verify(program("stablehlo.sine %a"), program("stablehlo.cosine %a"), names=("one", "other"))
    assert not report.passed
    assert str(report).startswith(
        "other does not compute the same as one, within 4 ulp, on reference\ninputs: drawn from"
    )
    # There is only one engine.
    assert f"inputs: {report.rounds[0].inputs}\n" in str(report)
    with pytest.raises(vt.VerificationError, match="output 0: .* 4 of 4 differ, 4 beyond the tolerance"):
        report.require()


def test_tolerances() -> None:
    exact = program("stablehlo.tan %a")
    near = f"""func.func @main(%a: {F}) -> {F} {{
      %0 = stablehlo.sine %a : {F}
      %1 = stablehlo.cosine %a : {F}
      %2 = stablehlo.divide %0, %1 : {F}
      return %2 : {F}
    }}"""
    reports = [vt.verify(exact, near, rounds=5, tolerance=vt.Tolerance(ulp)) for ulp in (0, 4)]
    assert [each.passed for each in reports] == [False, True]
    assert 0 < reports[0].max_ulp <= 4


def test_inputs_that_are_given() -> None:
    one, other = program("stablehlo.abs %a"), program("stablehlo.optimization_barrier %a")
    assert vt.verify(one, other, [[1.0, 2.0, 3.0, 4.0]]).passed
    assert not vt.verify(one, other, [[1.0, -2.0, 3.0, 4.0]]).passed


@pytest.mark.sample(1)
@pytest.mark.parametrize("engine", ["reference", "xla"])
def test_aliases_are_exercised(engine: Any) -> None:
    plain = program("stablehlo.add %a, %a")
    aliased = program("stablehlo.add %a, %a", " {tf.aliasing_output = 0 : i32}")
    report = vt.verify(plain, aliased, engine=engine)
    assert report.passed
    assert len(report.rounds[0].donated) == 1
    assert not vt.verify(plain, plain).rounds[0].donated
    assert not report.warnings
    lost = vt.verify(aliased, plain, engine=engine)
    assert lost.passed
    assert [each.feature for each in lost.warnings] == ["alias_lost"]
    assert "warning: output {} was " in str(lost)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            "func.func @main(%a: tensor<4xf64>) { return }",
            r"one has the parameters f32\[4\], but other has f64\[4\]: only",
        ),
        ("func.func @main(%a: tensor<5xf32>) { return }", r"other has f32\[5\]"),
        ("func.func @main() { return }", "other has nothing"),
    ],
)
def test_programs_that_cannot_be_compared(other: str, message: str) -> None:
    with pytest.raises(vt.VerificationError, match=message):
        vt.verify(program("stablehlo.abs %a"), other, names=("one", "other"))


@pytest.mark.parametrize("inside", ["tensor<5xf32>", "tensor<4xf32>, tensor<4xf32>"])
def test_parameters_are_compared_within_tuples(inside: str) -> None:
    one, other = (f"func.func @main(%a: tuple<{each}>) {{ return }}" for each in ("tensor<4xf32>", inside))
    with pytest.raises(vt.VerificationError, match=r"has the parameters \(f32\[4\]\), but"):
        vt.verify(one, other)


def test_results_that_only_one_gives() -> None:
    none = f"func.func @main(%a: {F}) {{ return }}"
    report = vt.verify(program("stablehlo.abs %a"), none)
    assert not report.passed
    assert "output 0: only the first program returns it" in str(report)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one.mlir", tmp_path / "other.mlir"
    one.write_text(program("stablehlo.tanh %a"))
    other.write_text(program("stablehlo.sine %a"))
    assert main(["verify", str(one), str(one), "--rounds", "3"]) == 0
    assert "output 0: float32[4], equal\nrounds: 3, all passed" in capsys.readouterr().out
    assert main(["verify", str(one), str(other), "--output-format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["passed"], found["rounds"][0]["outputs"][0]["outside"]) == (False, 4)
    assert main(["verify", str(one), str(other), "-i", "[0, 0, 0, 0]"]) == 0
    assert main(["verify", str(one), str(other), "--atol", "2"]) == 0
    assert main(["verify", str(one), "examples/nothing.mlir"]) == 2
    saxpy = str(EXAMPLES / "saxpy.mlir")
    assert main(["verify", str(one), saxpy]) == 1
    assert "only programs with the same parameters can be compared" in capsys.readouterr().err


def test_inputs_are_left_as_they_are() -> None:
    array = np.array([1, -2, 3, 4], np.float32)
    text = program("stablehlo.abs %a", " {tf.aliasing_output = 0 : i32}")
    assert vt.verify(text, text, [array]).passed
    assert array.tolist() == [1, -2, 3, 4]


def test_handlers_compute_the_custom_calls_of_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = f"func.func @main(%a: {F}) -> {F} {{ %0 = stablehlo.custom_call @f(%a) : ({F}) -> {F} return %0 : {F} }}"
    plain = program("stablehlo.add %a, %a")
    assert vt.verify(call, plain, handlers={"f": lambda _, a: a + a}).passed
    report = vt.verify(call, plain, handlers={"f": lambda _, a: a * 3}, bisect=True)
    assert isinstance(report.divergence, Divergence)
    assert report.divergence.before.op == "stablehlo.custom_call"
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("handlers_of_verify.py").write_text("def twice(call, a):\n    return a + a\n")
    Path("call.mlir").write_text(call)
    Path("plain.mlir").write_text(plain)
    handler = ["--handler", "f=handlers_of_verify:twice"]
    assert main(["verify", "call.mlir", "plain.mlir", *handler]) == 0
    assert main(["golden", "record", "suite", "call.mlir", *handler]) == 0
    assert main(["golden", "check", "suite", *handler]) == 0
    assert main(["golden", "check", "suite"]) == 1


def test_tokens_have_no_value_and_are_no_arrays() -> None:
    array, exact = np.zeros(2, np.float32), vt.Tolerance(0)
    (compared,) = compare_outputs((None, array), (None, array), exact)
    assert (compared.place, compared.passed) == ("1", True)
    for found, expected, which in ((None, array, "second"), (array, None, "first")):
        (compared,) = compare_outputs((found,), (expected,), exact)
        assert compared.mismatch == f"only the {which} program returns a token"


def test_outputs_are_compared_place_by_place() -> None:
    zero, one = np.zeros(2, np.float32), np.ones(2, np.float32)
    compared = compare_outputs((zero, (one, zero)), (zero, (one, one, one)), vt.Tolerance(0))
    assert [(each.place, each.passed, each.mismatch) for each in compared] == [
        ("0", True, None),
        ("1.0", True, None),
        ("1.1", False, None),
        ("1.2", False, "only the first program returns it"),
    ]
    (_, added) = compare_outputs((zero, one), (zero,), vt.Tolerance(0))
    assert added.mismatch == "only the second program returns it"


@pytest.mark.parametrize("given_away", [False, True])
def test_inputs_may_be_changed_only_if_they_are_given_away(given_away: bool) -> None:
    """An engine that writes over an input of its caller is found out."""

    class Careless:
        name, engine = "careless", "none"
        signature = Signature((Array("f32", (2,)), Opaque()), Array("f32", (2,)))
        declared = Declared(signature)
        aliases = (vt.Alias((), 0),) if given_away else ()
        known_faults = ()

        def converted(self, inputs: Any) -> Any:
            return tuple(inputs)

        def run(self, inputs: Any) -> Any:
            result = inputs[0] + 1
            if not given_away:
                inputs[0][1] = 7
            return (result,)

        def execute(self, inputs: Any, donate: Any) -> Any:
            assert donate == {(0, ())}
            result = inputs[0]
            result += 1
            return SimpleNamespace(outputs=(result,))

    executable: Any = Careless()
    array = np.zeros(2, np.float32)
    report = verify_executables(executable, executable, [("given", [array, None])], vt.Tolerance(0))
    (shown,) = report.rounds
    assert shown.problems == (() if given_away else ("input 0 was changed, although it was not donated",))
    assert report.passed is given_away
    assert len(shown.donated) == given_away
    assert array.tolist() == [0, 0]
