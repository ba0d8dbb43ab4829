"""What the installed jaxlib lacks: each part is there, or an error names the release that has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.bindings import NARROW_ELEMENTS, PARTS, Provider, explain_unknown, get_provider, missing_part
from vhlo_tools.spec import first_release, known_feature, known_releases, known_versions, newest_version

pytestmark = pytest.mark.every_python

MATRIX = np.array([[4, 1], [1, 3]], np.float32)
PLAIN = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"
FUTURE = """func.func @main(%a: tensor<2xf32>) -> tensor<1xf32> {
  %f = "stablehlo.async_start"(%a) ({ ^bb0(%x: tensor<2xf32>):
      %1 = stablehlo.slice %x [0:1] : (tensor<2xf32>) -> tensor<1xf32> stablehlo.return %1 : tensor<1xf32>
    }) : (tensor<2xf32>) -> !stablehlo.future<tensor<1xf32>>
  %0 = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<1xf32>>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}"""
COMPLEX, SQUARE = "tensor<4xcomplex<f32>>", "tensor<2x2xf32>"
FFT = f"""func.func @main(%a: {COMPLEX}) -> {COMPLEX} {{
  %0 = stablehlo.fft %a, type = FFT, length = [4] : ({COMPLEX}) -> {COMPLEX} return %0 : {COMPLEX} }}"""
SOLVE = f"""func.func @main(%a: {SQUARE}) -> {SQUARE} {{
  %0 = "stablehlo.triangular_solve"(%a, %a) {{left_side = true, lower = true, unit_diagonal = false,
    transpose_a = #stablehlo<transpose NO_TRANSPOSE>}} : ({SQUARE}, {SQUARE}) -> {SQUARE} return %0 : {SQUARE} }}"""
CONJUGATE = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { %0 = chlo.conj %a : tensor<4xf32> -> tensor<4xf32> "
SCAN = """func.func @main(%a: tensor<3xi32>, %i: tensor<i32>) -> tensor<3xi32> {
  %0:2 = "chlo.scan"(%a, %i) <{dimension = 0 : i64, is_reverse = false, operandSegmentSizes = array<i32: 1, 1>,
    resultSegmentSizes = array<i32: 1, 1>}> ({ ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %s = stablehlo.add %x, %y : tensor<i32> stablehlo.return %s, %s : tensor<i32>, tensor<i32>
    }) : (tensor<3xi32>, tensor<i32>) -> (tensor<3xi32>, tensor<i32>)
  return %0#0 : tensor<3xi32> }"""
NARROW = """func.func @main(%a: tensor<3xi4>) -> tensor<3xi4> {
  %0 = stablehlo.custom_call @f(%a) : (tensor<3xi4>) -> tensor<3xi4> return %0 : tensor<3xi4> }"""


def narrow() -> None:
    given = np.array([1, 2, -3], ml_dtypes.int4)
    (found,) = vt.run(NARROW, [given], engine="xla", handlers={"f": lambda _, value: value})
    assert found.tolist() == given.tolist()


def transformed() -> None:
    (found,) = vt.run(FFT, [np.arange(4).astype(np.complex64)], engine="reference")
    np.testing.assert_allclose(found, [6, -2 + 2j, -2, -2 - 2j], atol=1e-6)


def solved() -> None:
    (found,) = vt.run(SOLVE, [MATRIX], engine="reference")
    np.testing.assert_allclose(np.tril(MATRIX) @ found, MATRIX, rtol=1e-6)


def conjugated() -> None:
    text = f"{CONJUGATE} return %0 : tensor<4xf32> }}"
    assert vt.run(vt.serialize(text), [[1.0, 2.0, 3.0, 4.0]])[0].tolist() == [1, 2, 3, 4]


def scanned() -> None:
    (found,) = vt.run(vt.serialize(SCAN), [np.array([1, 2, 3], np.int32), np.array(10, np.int32)])
    assert found.tolist() == [11, 13, 16]


def multiplied(target: str, element: str, dtype: Any) -> Callable[[], None]:
    """Return a trial of the product with the matrix of a QR decomposition without any reflection."""
    kind, factors = f"tensor<2x2x{element}>", f"tensor<2x{element}>"
    text = f"""func.func @main(%a: {kind}, %t: {factors}, %c: {kind}) -> {kind} {{
      %0 = stablehlo.custom_call @{target}(%a, %t, %c) {{api_version = 4 : i32,
        mhlo.backend_config = {{left = true, transpose = false}},
        operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>,
          dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}}
        : ({kind}, {factors}, {kind}) -> {kind}
      return %0 : {kind} }}"""

    def run() -> None:
        matrix = MATRIX.astype(dtype)
        (found,) = vt.run(text, [matrix, np.zeros(2, dtype), matrix], engine="reference")
        np.testing.assert_array_equal(found, matrix)

    return run


def perturbed() -> None:
    kind, rows = "tensor<3xf32>", "tensor<3x1xf32>"
    vector, matrix = "dense<0> : tensor<1xindex>", "dense<[0, 1]> : tensor<2xindex>"
    text = f"""func.func @main(%l: {kind}, %d: {kind}, %u: {kind}, %b: {rows}) -> {rows} {{
      %0 = stablehlo.custom_call @tridiagonal_solve_perturbed_ffi(%l, %d, %u, %b) {{api_version = 4 : i32,
        operand_layouts = [{vector}, {vector}, {vector}, {matrix}], result_layouts = [{matrix}]}}
        : ({kind}, {kind}, {kind}, {rows}) -> {rows}
      return %0 : {rows} }}"""
    zeros, diagonal = np.zeros(3, np.float32), np.array([1, 2, 4], np.float32)
    (found,) = vt.run(text, [zeros, diagonal, zeros, np.full((3, 1), 8, np.float32)], engine="reference")
    np.testing.assert_allclose(found[:, 0], [8, 4, 2])


#: A use of each part, which works where the part is.
TRIALS: dict[str, Callable[[], None]] = {
    NARROW_ELEMENTS: narrow,
    "chlo.conj": conjugated,
    "chlo.scan": scanned,
    "lapack_cunmqr_ffi": multiplied("lapack_cunmqr_ffi", "complex<f32>", np.complex64),
    "lapack_dormqr_ffi": multiplied("lapack_dormqr_ffi", "f64", np.float64),
    "lapack_sormqr_ffi": multiplied("lapack_sormqr_ffi", "f32", np.float32),
    "lapack_zunmqr_ffi": multiplied("lapack_zunmqr_ffi", "complex<f64>", np.complex128),
    "stablehlo.fft": transformed,
    "stablehlo.triangular_solve": solved,
    "tridiagonal_solve_perturbed_ffi": perturbed,
}


def test_every_part_is_tried() -> None:
    assert TRIALS.keys() == PARTS.keys()


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_there_or_the_error_names_the_release_that_has_it(part: str, provider: Provider) -> None:
    missing = missing_part(provider, part)
    if missing is None:
        TRIALS[part]()
        return
    assert missing == f"jaxlib {provider.release} does not have it: install jaxlib {PARTS[part]} or newer"
    with pytest.raises((vt.EngineError, vt.InvalidProgramError, vt.UnsupportedFeatureError)) as refused:
        TRIALS[part]()
    assert missing in str(refused.value)


def of_release(distribution: str, release: str | None) -> Provider:
    provider = Provider(prefix="jaxlib.mlir", distribution=distribution, registrars=())
    provider.__dict__["release"] = release
    return provider


@pytest.mark.parametrize(
    ("distribution", "release", "lacks"),
    [
        ("jaxlib", "0.9.1", False),
        ("jaxlib", "0.9.0.1", True),
        ("jaxlib", "0.9.1.dev20260101", False),
        ("jaxlib", "0.10.0", False),
        ("jaxlib", None, False),
        ("torch-mlir", "20261001", False),
        ("torch-mlir", "0.1", False),
    ],
)
def test_releases_are_compared_as_versions(distribution: str, release: str | None, lacks: bool) -> None:
    assert (missing_part(of_release(distribution, release), "chlo.scan") is not None) == lacks


def test_what_is_no_part_is_there() -> None:
    assert missing_part(of_release("jaxlib", "0.8.1"), "stablehlo.add") is None


def test_a_version_that_is_too_new_is_refused_with_the_first_release_that_writes_it(provider: Provider) -> None:
    library = provider.library
    newer = [each.version for each in known_versions() if each.version > library.current]
    assert newer or library.current.minor_release >= newest_version()
    for version in newer:
        first = first_release("jaxlib", version)
        says = f"the first release that can write it is {first}" if first is not None else "can also read `current`"
        with pytest.raises(vt.UnknownTargetError) as refused:
            vt.serialize(PLAIN, str(version))
        assert says in str(refused.value)


def test_a_program_of_a_newer_version_is_refused_with_the_release_to_install(provider: Provider) -> None:
    library = provider.library
    version = max(each.stablehlo.minor_release for each in known_releases() if each.package == "jaxlib")
    newest = first_release("jaxlib", version)
    assert newest is not None
    if library.current >= known_feature("async").introduced:
        assert vt.serialize(FUTURE).requirements().readable_since == known_feature("async").introduced
        return
    with pytest.raises(vt.InvalidProgramError) as refused:
        vt.serialize(FUTURE)
    assert f"{library.name} has StableHLO {library.current}: if the program is of a newer version" in str(refused.value)
    assert f"up to {newest.release}, the first with StableHLO {version} (for Python" in str(refused.value)


def test_what_is_unknown_in_other_dialects_says_nothing_of_releases(provider: Provider) -> None:
    assert explain_unknown(provider, "custom op 'my.op' is unknown") is None
    assert explain_unknown(provider, "expected '{' to begin a region") is None


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 20, 100])
def test_booleans_of_every_number_go_in_and_out(size: int) -> None:
    """Up to jaxlib 0.9.0.1 the bindings take eight in a byte, and read beyond the memory of many equal ones."""
    kind = f"tensor<{size}xi1>"
    text = f"func.func @main(%a: {kind}) -> {kind} {{ %0 = stablehlo.not %a : {kind} return %0 : {kind} }}"
    chance = np.random.default_rng(size)
    for values in (np.ones(size, np.bool_), np.zeros(size, np.bool_), chance.random(size) < 0.5):
        (found,) = vt.run(text, [values], engine="reference")
        assert found.dtype == np.bool_
        assert found.tolist() == (~values).tolist()


def test_booleans_of_any_shape_are_elements() -> None:
    provider = get_provider()
    context = provider.new_context()
    for shape in ((), (3, 0), (2, 3, 5)):
        values = np.random.default_rng(0).random(shape) < 0.5
        held = provider.dense_elements(context, np.asarray(values))
        np.testing.assert_array_equal(provider.array_of(held), values)
