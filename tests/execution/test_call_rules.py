"""Custom calls that run, those that are refused, and why: on both engines, and for the same reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.needs import lacking

import vhlo_tools as vt
from vhlo_tools.api import EngineChoice
from vhlo_tools.bindings import PARTS, register_lapack
from vhlo_tools.execution import RULES
from vhlo_tools.execution.reference.known_calls import KNOWN_CALLS, known_handler

ENGINES: tuple[EngineChoice, ...] = ("reference", "xla", "auto")
MATRIX, VECTOR = "tensor<3x3xf32>", "tensor<3xf32>"
EIGH = 'backend_config = "1,1,100,1e-6"'
COLUMNS = "dense<[0, 1]> : tensor<2xindex>"
LAYOUTS = f"operand_layouts = [{COLUMNS}], result_layouts = [{COLUMNS}, dense<> : tensor<0xindex>]"
ROWS = LAYOUTS.replace("[0, 1]", "[1, 0]")


def calling(target: str, attributes: str, operands: Sequence[str], results: Sequence[str]) -> str:
    names = [f"%a{number}" for number in range(len(operands))]
    parameters = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, operands, strict=True))
    types, count = ", ".join(results), len(results)
    bound = f"%r:{count} = " if count else ""
    target_name = f'call_target_name = "{target}"'
    given = ", ".join(f"%r#{number}" for number in range(count))
    return f"""func.func private @f(%x: tensor<f32>) -> tensor<f32> {{ return %x : tensor<f32> }}
    func.func @main({parameters}) -> ({types}) {{
      {bound}"stablehlo.custom_call"({", ".join(names)}) {{{", ".join(filter(None, (target_name, attributes)))}}}
        : ({", ".join(operands)}) -> ({types})
      return {given} {":" if count else ""} {types}
    }}"""


def cholesky(config: str, layouts: str = LAYOUTS) -> str:
    return calling("lapack_spotrf_ffi", f"{config}, {layouts}", [MATRIX], [MATRIX, "tensor<i32>"])


def zeros(*types: str) -> list[Any]:
    shapes = {MATRIX: (3, 3), VECTOR: (3,), "tensor<2x3xf32>": (2, 3), "tensor<4xf32>": (4,)}
    return [np.zeros(shapes[each], np.float32) for each in types]


def test_the_routines_are_those_that_jaxlib_registers() -> None:
    listed = {target for target in RULES if target.startswith(("lapack_", "tridiagonal"))}
    assert listed - {each for each in PARTS if lacking(each) is not None} == register_lapack()


def test_every_handler_of_the_toolkit_has_a_rule() -> None:
    assert RULES.keys() >= KNOWN_CALLS.keys()


WRONG = {
    "no operands": ("Qr", "", [], [VECTOR], "it has 0 operands, expected 1"),
    "too few results": ("Qr", "", [MATRIX], [MATRIX], "it has 1 results, expected 2"),
    "no matrix": ("Qr", "", [VECTOR], [MATRIX, VECTOR], r"operand 0 is tensor<3xf32>, expected f32\[..., m, n\]"),
    "another shape": ("Qr", "", [MATRIX], [MATRIX, "tensor<4xf32>"], r"result 1 is tensor<4xf32>, expected f32\[3\]"),
    "not square": ("Eigh", EIGH, ["tensor<2x3xf32>"], ["tensor<2x3xf32>", VECTOR], "operand 0 is tensor<2x3xf32>"),
    "results exchanged": ("Eigh", EIGH, [MATRIX], [VECTOR, MATRIX], r"result 0 is tensor<3xf32>, expected f32\[3, 3\]"),
    "no configuration": ("Eigh", "", [MATRIX], [MATRIX, VECTOR], "its backend_config is missing, expected"),
    "tolerance of NaN": ("Eigh", EIGH.replace("1e-6", "nan"), [MATRIX], [MATRIX, VECTOR], "backend_config is '1,1"),
    "no iterations": ("Eigh", EIGH.replace("100", "-1"), [MATRIX], [MATRIX, VECTOR], "backend_config is '1,1,-1"),
    "a configuration": (
        "Qr",
        'backend_config = "x"',
        [MATRIX],
        [MATRIX, VECTOR],
        "its backend_config is 'x', expected no",
    ),
    "computations": ("Qr", "called_computations = [@f]", [MATRIX], [MATRIX, VECTOR], "it has called_computations"),
    "too many reflectors": (
        *("ProductOfElementaryHouseholderReflectors", "", [MATRIX, "tensor<4xf32>"], [MATRIX]),
        "k is 4 and n is 3, expected k <= n",
    ),
    "an annotation of two": ("Sharding", "", [MATRIX, MATRIX], [MATRIX], "it has 2 operands, expected 1"),
    "an annotation of another type": ("MoveToHost", "", [MATRIX], [VECTOR], "result 0 is tensor<3xf32>, expected"),
    "an annotation without its attribute": (
        *("xla.sdy.FuncResultSharding", "", [MATRIX], [MATRIX]),
        "its mhlo.frontend_attributes have no xla.sdy.sharding",
    ),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", WRONG)
def test_both_engines_refuse_a_wrong_call_for_the_same_reason(name: str) -> None:
    target, attributes, operands, results, reason = WRONG[name]
    text = calling(target, attributes, operands, results)
    said = []
    for engine in ENGINES:
        with pytest.raises(vt.EngineError, match=reason) as raised:
            vt.run(text, zeros(*operands), engine=engine)
        assert f"text:3:{len('      %r:1 = ') + 1 if results else 7}: " in str(raised.value)
        said.append(str(raised.value).partition("stablehlo.custom_call: ")[2])
    assert len(set(said)) == 1
    assert f"{target} requires " in said[0]
    assert f"--handler {target}=" in said[0]


WRONG_ROUTINES = {
    "another letter": (
        "backend_config = {uplo = 0 : ui8}, api_version = 4 : i32",
        LAYOUTS,
        "uplo .* one of 76 .L., 85",
    ),
    "another type": ("backend_config = {uplo = 76 : i64}, api_version = 4 : i32", LAYOUTS, "76 : i64, expected ui8"),
    "no letter": ("backend_config = {}, api_version = 4 : i32", LAYOUTS, "has no entries, expected uplo"),
    "one more": ("mhlo.backend_config = {uplo = 76 : ui8, x = 1 : i32}", LAYOUTS, "has uplo, x, expected uplo"),
    "both": (
        *(
            "backend_config = {uplo = 76 : ui8}, mhlo.backend_config = {uplo = 85 : ui8}, api_version = 4 : i32",
            LAYOUTS,
        ),
        "both a backend_config and a mhlo.backend_config",
    ),
    "another version": ("api_version = 2 : i32", LAYOUTS, "its api_version is 2, expected 4"),
    "rows": (
        "mhlo.backend_config = {uplo = 76 : ui8}",
        ROWS,
        r"operand_layouts are \[\[1, 0\]\], expected \[\[0, 1\]\]",
    ),
    "no layouts": ("mhlo.backend_config = {uplo = 76 : ui8}", "x = 1 : i32", "its operand_layouts are missing"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG_ROUTINES)
def test_the_attributes_of_a_routine_are_checked(name: str, engine: EngineChoice) -> None:
    config, layouts, reason = WRONG_ROUTINES[name]
    with pytest.raises(vt.EngineError, match=reason):
        vt.run(cholesky(config, layouts), zeros(MATRIX), engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "config",
    [
        "api_version = 4 : i32, backend_config = {uplo = 76 : ui8}",
        "api_version = 4 : i32, mhlo.backend_config = {uplo = 76 : ui8}",
        "mhlo.backend_config = {uplo = 76 : ui8}",
    ],
)
def test_every_way_in_which_jax_writes_the_configuration(config: str, engine: EngineChoice) -> None:
    matrix = np.array([[4, 2, 0], [2, 5, 2], [0, 2, 5]], np.float32)
    given, info = vt.run(cholesky(config), [matrix], engine=engine)
    np.testing.assert_allclose(np.tril(given), np.linalg.cholesky(matrix), rtol=1e-6)
    assert info == 0


def test_an_alias_with_an_operand_that_is_still_read_is_refused() -> None:
    layouts = f"operand_layouts = [{COLUMNS}, {COLUMNS}], result_layouts = [{COLUMNS}]"
    alias = "output_tuple_indices = [], operand_index = INDEX, operand_tuple_indices = []"
    config = "mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}"
    attributes = f"{config}, {layouts}, output_operand_aliases = [#stablehlo.output_operand_alias<{alias}>]"
    text = calling("lapack_strsm_ffi", attributes, [MATRIX, MATRIX], [MATRIX])
    matrices = [np.tril(np.full((3, 3), 2, np.float32)), np.eye(3, dtype=np.float32)]
    (given,) = vt.run(text.replace("INDEX", "1"), matrices, engine="xla")
    np.testing.assert_allclose(matrices[0] @ given, matrices[1], atol=1e-6)
    with pytest.raises(vt.EngineError, match="output_operand_aliases contain .* expected operand 1 with result 0"):
        vt.run(text.replace("INDEX", "0"), matrices, engine="xla")


def test_calls_of_eigh_with_two_configurations_in_one_program() -> None:
    """XLA expands the second as the first, if both have operands of the same type."""
    call = f"stablehlo.custom_call @Eigh(%a) {{{EIGH}}} : ({MATRIX}) -> ({MATRIX}, {VECTOR})"
    text = f"""func.func @main(%a: {MATRIX}) -> ({VECTOR}, {VECTOR}, {VECTOR}) {{
      %0:2 = {call}
      %1:2 = {call.replace('"1,', '"0,')}
      %2:2 = {call}
      return %0#1, %1#1, %2#1 : {VECTOR}, {VECTOR}, {VECTOR}
    }}"""
    matrix = np.arange(9, dtype=np.float32).reshape(3, 3)
    given = vt.run(text, [matrix], engine="xla")
    lower, upper = np.linalg.eigvalsh(matrix, "L"), np.linalg.eigvalsh(matrix, "U")
    for values, wanted in zip(given, (lower, upper, lower), strict=True):
        np.testing.assert_allclose(values, wanted, atol=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("target", ["check.expect_eq", "check.expect_close"])
def test_an_assertion_that_is_not_said_to_have_an_effect_is_made_all_the_same(
    target: str, engine: EngineChoice
) -> None:
    text = calling(target, "has_side_effect = false", [VECTOR, VECTOR], [])
    vt.run(text, zeros(VECTOR, VECTOR), engine=engine)
    with pytest.raises(vt.EngineError, match="3 of 3 values are not"):
        vt.run(text, [np.zeros(3, np.float32), np.ones(3, np.float32)], engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_only_keeps_its_operand_does_nothing(engine: EngineChoice) -> None:
    text = calling("dce_sink", "api_version = 4 : i32, backend_config = {}, has_side_effect = true", [VECTOR], [])
    assert vt.run(text, zeros(VECTOR), engine=engine) == ()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sharding_of_a_result_as_jax_exported_it(engine: EngineChoice) -> None:
    sharding = 'mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{}]>]>"}'
    text = calling("xla.sdy.FuncResultSharding", f"has_side_effect = true, {sharding}", [VECTOR], [VECTOR])
    assert vt.run(text, [np.arange(3, dtype=np.float32)], engine=engine)[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_largest_elements(engine: EngineChoice) -> None:
    text = calling("TopK", "", ["tensor<2x3xf32>"], ["tensor<2x2xf32>", "tensor<2x2xi32>"])
    values, places = vt.run(text, [np.array([[1, 3, 2], [6, 4, 5]], np.float32)], engine=engine)
    assert (values.tolist(), places.tolist()) == ([[3, 2], [6, 5]], [[1, 2], [0, 2]])


@pytest.mark.parametrize("engine", ["xla", "auto"])
def test_ops_of_mhlo_as_jax_exported_them(engine: EngineChoice) -> None:
    attributes = "mhlo.attributes = {k = 2 : i64, largest = true}, mhlo.version = 1 : i64"
    text = calling("mhlo.topk", attributes, ["tensor<4xf32>"], ["tensor<2xf32>", "tensor<2xi32>"])
    values, places = vt.run(text, [np.array([1, 3, 2, 0], np.float32)], engine=engine)
    assert (values.tolist(), places.tolist()) == ([3, 2], [1, 2])
    for wrong, reason in (("k = 3", r"expected f32\[3\]"), ("k = 2 : i64, largest = false", "largest in .* is false")):
        changed = text.replace("k = 2 : i64, largest = true" if "largest" in wrong else "k = 2", wrong)
        with pytest.raises(vt.EngineError, match=reason):
            vt.run(changed, zeros("tensor<4xf32>"), engine=engine)


UNKNOWN = {
    "f": "custom call of f: neither XLA nor vhlo_tools implements it",
    "__onednn$matmul": "XLA reserves this target",
    "xla.sdy.GlobalToLocalShape": "XLA reserves this target",
    "lapack_spotrf": "jaxlib no longer has this function",
    "lapack_sfoo_ffi": "neither XLA nor vhlo_tools implements it",
    "cusolver_syevd_ffi": "it is for another platform",
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("target", UNKNOWN)
@pytest.mark.parametrize("place", ["main", "function", "composite", "unused function", "branch"])
def test_what_is_not_known_is_refused_wherever_it_stands(target: str, place: str) -> None:
    call = f'"stablehlo.custom_call"(%a) {{call_target_name = "{target}"}} : ({VECTOR}) -> {VECTOR}'
    inner = f"func.func private @inner(%a: {VECTOR}) -> {VECTOR} {{ %0 = {call} return %0 : {VECTOR} }}"
    bodies = {
        "main": f"%0 = {call}",
        "function": f"%0 = func.call @inner(%a) : ({VECTOR}) -> {VECTOR}",
        "composite": f'%0 = stablehlo.composite "x.y" %a {{decomposition = @inner}} : ({VECTOR}) -> {VECTOR}',
        "unused function": f"%0 = stablehlo.negate %a : {VECTOR}",
        "branch": f"""%t = stablehlo.constant dense<false> : tensor<i1>
          %0 = "stablehlo.if"(%t) ({{ %1 = {call} stablehlo.return %1 : {VECTOR} }},
          {{ stablehlo.return %a : {VECTOR} }}) : (tensor<i1>) -> {VECTOR}""",
    }
    functions = inner if place in ("function", "composite", "unused function") else ""
    text = f"{functions} func.func @main(%a: {VECTOR}) -> {VECTOR} {{ {bodies[place]} return %0 : {VECTOR} }}"
    with pytest.raises(vt.EngineError, match=UNKNOWN[target]):
        vt.load_executable(text, engine="xla").prepare()
    doubled = vt.run(text, [np.ones(3, np.float32)], engine="xla", handlers={target: lambda _, array: 2 * array})
    assert doubled[0].tolist() == {"unused function": [-1] * 3, "branch": [1] * 3}.get(place, [2] * 3)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_handler_computes_a_call_of_any_form(engine: EngineChoice) -> None:
    text = calling("Eigh", "", [VECTOR], [VECTOR])
    given = vt.run(text, [np.ones(3, np.float32)], engine=engine, handlers={"Eigh": lambda _, array: 2 * array})
    assert given[0].tolist() == [2] * 3


def test_a_handler_of_the_toolkit_checks_what_it_is_given() -> None:
    handler = known_handler("Qr")
    assert handler is not None
    call = vt.CustomCall("Qr", {}, ())
    with pytest.raises(
        vt.EngineError, match="custom call of Qr: Qr requires one matrix.* it has 0 results, expected 2"
    ):
        handler(call, np.zeros((2, 2), np.float32))


def approximate(config: str, k: int, direction: str = "GT") -> str:
    given = f"tensor<2x{k}xf32>, tensor<2x{k}xi32>"
    return f"""func.func private @compare(
        %a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>) -> tensor<i1> {{
      %0 = stablehlo.compare {direction}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      return %0 : tensor<i1>
    }}
    func.func @main(%a: tensor<2x3xf32>) -> ({given}) {{
      %i = stablehlo.iota dim = 1 : tensor<2x3xi32>
      %v = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %c = stablehlo.constant dense<-1> : tensor<i32>
      %r:2 = stablehlo.custom_call @ApproxTopK(%a, %i, %v, %c) {{
        backend_config = "", called_computations = [@compare], mhlo.backend_config = {{{config}}}
      }} : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> ({given})
      return %r#0, %r#1 : {given}
    }}"""


APPROXIMATE = (
    "aggregate_to_topk = true, is_fallback = true, recall_target = 0.95 : f32, reduction_dim = 1 : i64, "
    "reduction_input_size_override = -1 : i64, top_k = 2 : i64"
)


@pytest.mark.parametrize("engine", ["xla", "auto"])
def test_the_approximately_largest_elements(engine: EngineChoice) -> None:
    numbers = np.array([[1, 3, 2], [6, 4, 5]], np.float32)
    values, places = vt.run(approximate(APPROXIMATE, 2), [numbers], engine=engine)
    assert (values.tolist(), places.tolist()) == ([[3, 2], [6, 5]], [[1, 2], [0, 2]])
    all_of_them = approximate(APPROXIMATE.replace("topk = true", "topk = false"), 3)
    assert vt.run(all_of_them, [numbers], engine=engine)[0].tolist() == [[3, 2, 1], [6, 5, 4]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (approximate(APPROXIMATE, 2, "EQ"), "must be one function that compares two values of f32 by GT or LT"),
        (approximate(APPROXIMATE, 1), r"result 0 is tensor<2x1xf32>, expected f32\[2, 2\]"),
        (approximate(APPROXIMATE.replace("top_k = 2", "top_k = 4"), 4), "top_k is 4 .* the dimension has size 3"),
        (approximate(APPROXIMATE.replace("dim = 1", "dim = 2"), 2), "its reduction_dim is 2, expected"),
        (approximate(APPROXIMATE.replace("0.95", "1.5"), 2), "its recall_target is 1.5"),
        (approximate(APPROXIMATE.replace(": f32", ": f64"), 2), "recall_target .* has the type f64, expected f32"),
        (approximate("top_k = 2 : i64", 2), "its mhlo.backend_config has top_k, expected aggregate_to_topk"),
    ],
)
def test_what_is_wrong_with_the_approximately_largest_elements(text: str, reason: str) -> None:
    with pytest.raises(vt.EngineError, match=reason):
        vt.run(text, [np.zeros((2, 3), np.float32)], engine="xla")
