"""The accuracy that elementary functions ask for, left out: test programs of both features."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.expansions import check_same, expanded, version_before

import vhlo_tools as vt
from vhlo_tools.spec import known_feature

OPS = [
    (op, feature) for feature in ("exponential_result_accuracy", "result_accuracy") for op in known_feature(feature).ops
]
_ASKED = {
    "highest": "mode = #stablehlo.result_accuracy_mode<HIGHEST>",
    "tolerance": "atol = 1.0e-5, rtol = 1.0e-5, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>",
    # However large it is: the plain op promises nothing.
    "large": "atol = 1.0e300, mode = #stablehlo.result_accuracy_mode<TOLERANCE>",
    "none": "mode = #stablehlo.result_accuracy_mode<TOLERANCE>",
}
_TYPES = {
    "tensor<f32>": np.float32,
    "tensor<3x2xbf16>": ml_dtypes.bfloat16,
    "tensor<2x0xf64>": np.float64,
    "tensor<4xcomplex<f32>>": np.complex64,
}


def _program(op: str, asked: str, type_: str = "tensor<4xf32>", more: str = "") -> str:
    return f"""func.func @main(%a: {type_} {{tf.aliasing_output = 0 : i32}}) -> {type_} {{
      %0 = "stablehlo.{op}"(%a) {{result_accuracy = #stablehlo.result_accuracy<{asked}>{more}}} : ({type_}) -> {type_}
      return %0 : {type_} }}"""


@pytest.mark.sample(8)
@pytest.mark.parametrize(("op", "feature"), OPS)
@pytest.mark.parametrize("asked", _ASKED)
def test_the_op_remains_without_its_accuracy(op: str, feature: str, asked: str) -> None:
    program = _program(op, _ASKED[asked], more=', mhlo.note = "kept"')
    with pytest.raises(vt.DowngradeError, match=f"--allow-relaxed {feature}, which gives up the requested accuracy"):
        vt.serialize(program, version_before(feature), expand=True)
    for target in (None, "1.4.0" if op == "tan" else "0.9.0"):
        artifact, (note,) = expanded(program, feature, target, relaxed=True)
        assert note.message.startswith(f"stablehlo.{op} was rewritten, without its result_accuracy, because")
        assert note.message.endswith("(relaxed: gives up the requested accuracy)")
        text = artifact.text()
        assert text.count('"kept"') == 1
        assert text.count("tf.aliasing_output") == 1
        assert "HIGHEST" not in text
        assert "TOLERANCE" not in text


@pytest.mark.sample(3)
@pytest.mark.parametrize("type_", _TYPES)
@pytest.mark.parametrize("op", ["exponential", "tanh"])
def test_the_engines_compute_the_same(op: str, type_: str) -> None:
    feature = next(feature for each, feature in OPS if each == op)
    program = _program(op, _ASKED["highest"], type_)
    artifact, _ = expanded(program, feature, "0.9.0", relaxed=True)
    rng = np.random.default_rng(0)
    shape = [int(size) for size in type_.removeprefix("tensor<").split("x")[:-1] if size.isdigit()]
    check_same(program, artifact, [[np.asarray(rng.standard_normal(shape), _TYPES[type_])] for _ in range(3)])


def test_sizes_that_are_known_at_run_time_only() -> None:
    program = _program("log", _ASKED["highest"], "tensor<?x2xf32>")
    artifact, _ = expanded(program, "result_accuracy", "0.9.0", relaxed=True)
    check_same(program, artifact, [[np.ones((3, 2), np.float32)]], engines=["reference"])


@pytest.mark.parametrize(("op", "feature"), OPS)
def test_the_default_stands_in_no_way(op: str, feature: str) -> None:
    program = _program(op, "mode = #stablehlo.result_accuracy_mode<DEFAULT>")
    target = version_before(feature)
    plain = vt.serialize(program, target)
    assert vt.serialize(program, target, allow_relaxed=[feature]) == plain
    assert plain.findings == ()


def test_tan_is_no_quotient_where_it_asks_for_an_accuracy() -> None:
    program = _program("tan", _ASKED["highest"])
    with pytest.raises(vt.DowngradeError, match="asks for .*HIGHEST.*, which is not known of a quotient"):
        vt.serialize(program, "1.3.0", expand=True)
    artifact = vt.serialize(program, "0.9.0", expand=True, allow_relaxed=["result_accuracy"])
    assert [note.feature for note in artifact.findings] == ["result_accuracy", "tan"]
