"""The ops exp2, log2 and fma as older ones, by libraries that know them, and by those that do not."""

from __future__ import annotations

from fractions import Fraction
from math import copysign, inf, isfinite
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from support.newer_ops import PLAIN, call, function, newer

import vhlo_tools as vt
from vhlo_tools.artifact import hide_newer_ops, show_newer_ops

Array = np.ndarray[Any, Any]

TYPES: Final[dict[str, Any]] = {
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
#: The tolerance of units in the last place: half for what is rounded once from a wider type, and little more.
_ULPS: Final = {"exp2": {"f32": 0.8, "f64": 0.8}, "log2": {"f32": 1.5, "f64": 1.5}}
_NUMBER: Final = 4000


def _numbers(element: str) -> Array:
    """Return all numbers of 8 or 16 bits; of others some of all sizes, and those at the limits of what is computed."""
    dtype = np.dtype(TYPES[element])
    if dtype.itemsize <= 2:
        return np.arange(256**dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)
    rng, limits = np.random.default_rng(0), np.finfo(dtype)
    drawn = rng.integers(0, 256**dtype.itemsize, _NUMBER, dtype=f"u{dtype.itemsize}").view(dtype)
    exponents = rng.uniform(limits.minexp - limits.nmant - 5, limits.maxexp + 5, _NUMBER).astype(dtype)
    near = (1 + rng.uniform(-1e-3, 1e-3, _NUMBER)).astype(dtype)
    special = [0.0, -0.0, inf, -inf, np.nan, 1.0, -1.0, limits.tiny, limits.smallest_subnormal, limits.max]
    return np.concatenate([drawn, exponents, np.abs(exponents), near, np.array(special, dtype)])


def _limits(element: str) -> Any:
    finfo: Any = ml_dtypes.finfo
    return finfo(TYPES[element])


def _errors(found: Array, expected: Array, element: str) -> Array:
    """Return units in the last place; zero where it is the number nearest to the expected one."""
    limits = _limits(element)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(expected), np.longdouble(float(limits.smallest_normal)))
        unit = np.longdouble(2) ** (np.floor(np.log2(size)) - limits.nmant)
        errors = np.abs(found.astype(np.longdouble) - expected) / unit
        nearest = expected.astype(found.dtype)
        same = (found == nearest) | (np.isnan(found.astype(np.float64)) & np.isnan(expected))
    return np.where(same, 0, np.where(np.isnan(errors), inf, errors))


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("op", ["exp2", "log2"])
def test_of_every_size(op: str, element: str) -> None:
    given = _numbers(element)
    artifact = vt.retarget(newer(function(op, f"tensor<{len(given)}x{element}>")), "1.22.0", expand=[op])
    (note,) = artifact.findings
    assert note.message.startswith(f"stablehlo.{op} was rewritten to stablehlo.")
    (found,) = vt.run(artifact, [given], engine="reference")
    with np.errstate(all="ignore"):
        expected = getattr(np, op)(given.astype(np.longdouble))
    errors = _errors(np.asarray(found), expected, element)
    worst = int(np.argmax(errors))
    assert errors[worst] <= _ULPS[op].get(element, 0.51), (given[worst], found[worst], expected[worst])


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_powers_of_two_are_exact(element: str) -> None:
    powers = np.arange(-30, 31)
    for op, given, expected in (("exp2", powers, 2.0**powers), ("log2", 2.0**powers, powers)):
        artifact = vt.retarget(newer(function(op, f"tensor<61x{element}>")), "0.9.0", expand=True)
        for engine in ("reference", "xla"):
            (found,) = vt.run(artifact, [given.astype(TYPES[element])], engine=engine)
            assert np.array_equal(found, expected.astype(TYPES[element])), (op, engine)


def _rounded(exact: Fraction, element: str) -> float:
    """Round to the nearest number of a type, of two to the even one."""
    limits = _limits(element)
    if not exact:
        return 0.0
    size, lowest = abs(exact), 1 - limits.nmant - limits.maxexp
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** max(exponent - limits.nmant, lowest + 1)
    number = round(size / unit) * unit
    return copysign(inf if number > Fraction(float(limits.max)) else float(number), exact)


def _drawn(element: str, number: int) -> list[Array]:
    """Return three operands: all kinds of numbers, sums that nearly vanish, and those whose parts differ in size."""
    dtype, rng = np.dtype(TYPES[element]), np.random.default_rng(1)
    drawn = [rng.integers(0, 256**dtype.itemsize, number, dtype=f"u{dtype.itemsize}").view(dtype) for _ in range(3)]
    third = number // 3
    for each in drawn[:2]:
        each[: 2 * third] = rng.uniform(0.5, 2, 2 * third).astype(dtype)
    product = drawn[0].astype(np.float64) * drawn[1].astype(np.float64)
    drawn[2][:third] = (-product[:third]).astype(dtype)
    drawn[2][third : 2 * third] = (rng.choice([-1, 1], third) * 2.0 ** rng.integers(-14, 12, third)).astype(dtype)
    return drawn


@pytest.mark.parametrize("element", ["f8E5M2", "f16", "bf16", "f32"])
def test_products_and_sums_are_rounded_once(element: str) -> None:
    with np.errstate(all="ignore"):
        given = _drawn(element, 3000)
    # Halves between two numbers of f32, and a little more or less, which f64 does not hold.
    halfway = [(4097.0, 4097.0, sign * 2.0**-60) for sign in (1, -1, 0)] if element == "f32" else []
    given = [
        np.concatenate([each, np.array([one[at] for one in halfway], each.dtype)]) for at, each in enumerate(given)
    ]
    artifact = vt.retarget(newer(function("fma", f"tensor<{len(given[0])}x{element}>")), "1.23.0", expand=["fma"])
    (found,) = vt.run(artifact, given, engine="reference")
    with np.errstate(all="ignore"):
        rows = [each.astype(np.float64).tolist() for each in (*given, np.asarray(found))]
    for a, b, c, one in zip(*rows, strict=True):
        if all(map(isfinite, (a, b, c))):
            assert one == _rounded(Fraction(a) * Fraction(b) + Fraction(c), element), (a, b, c)
        else:
            with np.errstate(all="ignore"):
                expected = np.float64(a) * np.float64(b) + np.float64(c)
            assert one == expected or (np.isnan(one) and np.isnan(expected)), (a, b, c)


def test_zeros_keep_their_signs() -> None:
    given = [np.array(each, np.float32) for each in ([-0.0, -0.0, 1.0], [1.0, 0.0, -1.0], [-0.0, 0.0, 1.0])]
    artifact = vt.retarget(newer(function("fma", "tensor<3xf32>")), "0.9.0", expand=True)
    (found,) = vt.run(artifact, given, engine="reference")
    assert [float(each).hex() for each in found] == ["-0x0.0p+0", "0x0.0p+0", "0x0.0p+0"]


def test_what_is_relaxed() -> None:
    asked = "atol = 1.0e-5, rtol = 1.0e-5, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>"
    for op, type_, accuracy, reason in (
        ("exp2", "tensor<2xcomplex<f32>>", PLAIN, "of complex numbers it is less accurate"),
        ("exp2", "tensor<2xf32>", asked, "it asks for .*TOLERANCE"),
        ("log2", "tensor<2xf32>", asked, "it asks for .*TOLERANCE"),
        ("fma", "tensor<2xf64>", PLAIN, "no integers are wide enough"),
    ):
        artifact = newer(function(op, type_, accuracy))
        with pytest.raises(vt.DowngradeError, match=f"(?s)the op {op}.*{reason}.*--allow-relaxed {op}"):
            vt.retarget(artifact, "1.22.0", expand=True)
        given = [np.array([0.5, 3.0]).astype(np.complex64 if "complex" in type_ else TYPES[type_[-4:-1]])]
        given *= 3 if op == "fma" else 1
        (found,) = vt.run(vt.retarget(artifact, "1.22.0", allow_relaxed=[op]), given, engine="reference")
        expected = given[0] * given[0] + given[0] if op == "fma" else getattr(np, op)(given[0])
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_complex_logarithms() -> None:
    given = np.array([0.5 + 2j, -3 - 1e-3j, 1e30 + 1e-30j, 1 + 1e-6j], np.complex64)
    artifact = vt.retarget(newer(function("log2", "tensor<4xcomplex<f32>>")), "0.9.0", expand=True)
    (found,) = vt.run(artifact, [given], engine="reference")
    expected = np.log(given.astype(np.clongdouble)) / np.log(np.longdouble(2))
    for one, other in ((found.real, expected.real), (found.imag, expected.imag)):
        np.testing.assert_allclose(one, other.astype(np.float32), rtol=4 * float(np.finfo(np.float32).eps))


def test_only_what_the_target_lacks() -> None:
    type_ = "tensor<?xf32>"
    artifact = newer(f"""func.func @main(%a: {type_} {{tf.aliasing_output = 0 : i32}}) -> {type_} {{
      %0 = {call("exp2", ["%a"], type_, more='model.layer = "first"')}
      %1 = {call("fma", ["%0", "%a", "%a"], type_)}
      %2 = stablehlo.custom_call @vhlo_tools.of_the_user(%1) : ({type_}) -> {type_}
      return %2 : {type_} }}""")
    assert {"exp2", "fma"} <= {each.id for each in artifact.requirements().features}
    kept = vt.retarget(artifact, "1.23.0", expand=True)
    text = kept.text()
    assert kept.version == kept.requirements().readable_since == vt.Version("1.23.0")
    assert '"vhlo.exp2_v1"(%0) <{result_accuracy = ' in text
    assert "fma" not in text
    assert "vhlo_tools.of_the_user" in text
    older = vt.retarget(kept, "0.9.0", expand=True)
    text = older.text()
    assert older.aliases() == artifact.aliases()
    assert text.count('model.layer = #vhlo.string_v1<"first">') == 1
    assert "exp2" not in text
    assert text.count("vhlo_tools.") == 1


def test_stand_ins_are_what_they_stand_for() -> None:
    type_ = "tensor<4xf32>"
    artifact = newer(
        f"""func.func @main(%a: {type_}, %b: tensor<i1>) -> {type_} {{
      %0 = "stablehlo.case"(%c) ({{ %1 = {call("log2", ["%a"], type_, more='mhlo.sharding = "{replicated}"')}
        stablehlo.return %1 : {type_} }}, {{ %1 = {call("fma", ["%a", "%a", "%a"], type_)}
        stablehlo.return %1 : {type_} }}) : (tensor<i32>) -> {type_}
      return %0 : {type_} }}""".replace("(%c)", "(%b)").replace("tensor<i1>", "tensor<i32>")
    )
    known = vt.Version("1.17.0")
    file = artifact.copy_of_file()
    hide_newer_ops(file, artifact.version, known)
    hidden = artifact.edited(file).retargeted(known)
    assert hidden.requirements().readable_since <= known
    file = hidden.copy_of_file()
    assert show_newer_ops(file, known) == {"fma", "log2"}
    shown = hidden.retargeted(artifact.version)
    file = shown.copy_of_file()
    assert show_newer_ops(file, artifact.version) == set()
    assert vt.diff(shown.edited(file), artifact) == []


@pytest.mark.parametrize(
    "called",
    [
        "exp2() : () -> tensor<4xf32>",
        "fma(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
        "of_nobody(%a) : (tensor<4xf32>) -> tensor<4xf32>",
        "add_v1(%a) : (tensor<4xf32>) -> tensor<4xf32>",
    ],
)
def test_calls_of_others_stay(called: str) -> None:
    program = f"""func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = stablehlo.custom_call @vhlo_tools.{called}
      %1 = {call("fma", ["%0", "%a", "%a"], "tensor<4xf32>")}
      return %1 : tensor<4xf32> }}"""
    name = called.partition("(")[0]
    for target in ("1.22.0", "0.9.0"):
        written = vt.retarget(newer(program), target, expand=True).text()
        assert written.count("vhlo_tools.") == written.count(f'"vhlo_tools.{name}"') == 1


@pytest.mark.parametrize("types", [("i32", "i32"), ("complex<f32>", "complex<f32>"), ("f32", "i32")])
def test_values_that_no_op_takes_are_refused(types: tuple[str, str]) -> None:
    one, other = (f"tensor<4x{each}>" for each in types)
    artifact = newer(f"""func.func @main(%a: {one}, %b: {other}) -> {one} {{
      %0 = stablehlo.custom_call @vhlo_tools.fma(%a, %b, %b) : ({one}, {other}, {other}) -> {one}
      return %0 : {one} }}""")
    with pytest.raises(vt.DowngradeError, match="it cannot be expanded: a value that is no tensor of floats"):
        vt.retarget(artifact, "1.22.0", expand=True)


@pytest.mark.parametrize("op", ["exp2", "log2", "fma"])
def test_an_artifact_that_is_newer_than_the_library_is_serialized(op: str) -> None:
    artifact = newer(function(op, "tensor<4xf32>"))
    for given in (artifact, bytes(artifact)):
        written = vt.serialize(given, "1.9.0", expand=True)
        assert bytes(written) == bytes(vt.retarget(artifact, "1.9.0", expand=True))
        assert written.made is not None
        assert written.made.library is not None
        same = vt.serialize(given, "1.24.0")
        assert bytes(same) == bytes(artifact)
        assert same.made is not None
        # Its bytes were edited without one.
        assert (same.made.command, same.made.library) == ("serialize", None)
    with pytest.raises(vt.DowngradeError, match=rf"stablehlo.{op} needs StableHLO 1.2"):
        vt.serialize(artifact, "1.9.0")


def test_text_of_ops_that_no_library_has_says_so() -> None:
    kind = "tensor<f32>"
    text = f"func.func @main(%a: {kind}) -> {kind} {{ %0 = stablehlo.exp2 %a : {kind} return %0 : {kind} }}"
    with pytest.raises(
        vt.InvalidProgramError, match="exp2 is of StableHLO 1.23.0, which no known release of jaxlib has"
    ):
        vt.serialize(text, "1.9.0", expand=True)
