"""The tilings of the results of custom calls, dropped where that is allowed."""

from __future__ import annotations

import numpy as np
import pytest
from support.expansions import check_same, expanded
from support.vhlo_library import CURRENT

import vhlo_tools as vt
from vhlo_tools.spec import known_feature

_FEATURE = "custom_call_result_tilings"
# A library that is older than the feature takes it for an attribute of another tool.
_NEWEST, _OLDER = str(min(CURRENT, vt.Version("1.17.0"))), "1.12.0"
_TILED = "[[dense<[8, 128]> : tensor<2xindex>]]"


def _program(tilings: str, attributes: str = "", results: str = "tensor<8x128xf32>") -> str:
    returned, holder = (", %0", "%0 = ") if results else ("", "")
    return f"""func.func @main(%a: tensor<8x128xf32> {{tf.aliasing_output = 0 : i32}})
        -> (tensor<8x128xf32>{", " if results else ""}{results}) {{
      {holder}"stablehlo.custom_call"(%a) {{call_target_name = "Sharding"{attributes}{tilings}}}
        : (tensor<8x128xf32>) -> ({results}) loc("model.py":3:1)
      return %a{returned} : tensor<8x128xf32>{", " if results else ""}{results} }}"""


@pytest.mark.parametrize("target", [_NEWEST if known_feature(_FEATURE).introduced <= CURRENT else _OLDER, "0.9.0"])
def test_the_rest_of_the_call_remains(target: str) -> None:
    others = """, backend_config = "x", my.tag = "kept", result_layouts = [dense<[0, 1]> : tensor<2xindex>],
      operand_layouts = [dense<[1, 0]> : tensor<2xindex>]"""
    program = _program(f", result_tilings = {_TILED}", others)
    artifact, (note,) = expanded(program, _FEATURE, target, relaxed=True)
    assert note.message == (
        "stablehlo.custom_call was rewritten, without its result_tilings, because "
        "StableHLO 1.18.0 introduced result_tilings of custom_call (relaxed: gives up the tilings of results that a "
        "custom call asks for)"
    )
    assert str(note.location) == "model.py:3:1"
    assert artifact.text() == vt.serialize(_program("", others), target).text()


def test_values_remain() -> None:
    program = _program(f", result_tilings = {_TILED}")
    artifact, _ = expanded(program, _FEATURE, "0.9.0", relaxed=True)
    check_same(program, artifact, [[np.arange(1024, dtype=np.float32).reshape(8, 128)]])


@pytest.mark.parametrize("results", ["", "tensor<8x128xf32>"])
def test_effects_remain_where_no_result_is_used(results: str) -> None:
    tilings = ", result_tilings = [[]]" if not results else f", result_tilings = {_TILED}"
    effects = ', has_side_effect = true, my.tag = "kept"'
    artifact, _ = expanded(_program(tilings, effects, results), _FEATURE, "0.9.0", relaxed=True)
    assert artifact.text() == vt.serialize(_program("", effects, results), "0.9.0").text()


def test_it_is_no_exact_expansion() -> None:
    program = _program(f", result_tilings = {_TILED}")
    if known_feature(_FEATURE).introduced > CURRENT:
        # To an older library it is any attribute, which it keeps.
        assert "result_tilings" in vt.serialize(program, _NEWEST, expand=True).text()
        return
    with pytest.raises(vt.DowngradeError, match=f"--allow-relaxed {_FEATURE}, which gives up the tilings"):
        vt.serialize(program, _NEWEST, expand=True)


def test_calls_without_tilings_remain() -> None:
    for program in (_program(""), _program(", result_tilings = []")):
        plain = vt.serialize(program, _NEWEST)
        relaxed = vt.serialize(program, _NEWEST, allow_relaxed=[_FEATURE])
        assert bytes(relaxed) == bytes(plain)
        assert relaxed.findings == plain.findings
