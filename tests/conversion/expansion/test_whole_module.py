"""Expansions of whole modules."""

from __future__ import annotations

import pytest

import vhlo_tools as vt
from vhlo_tools.conversion.expansion import narrow_integers
from vhlo_tools.conversion.expansion.expanding import WholeModule

PROGRAM = """func.func @main(%a: tensor<4xi8>) -> tensor<4xi8> {
  %0 = stablehlo.convert %a : (tensor<4xi8>) -> tensor<4xi2>
  %1 = stablehlo.convert %0 : (tensor<4xi2>) -> tensor<4xi8>
  return %1 : tensor<4xi8> }"""


def test_what_is_not_valid_is_refused_with_the_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(whole: WholeModule) -> None:
        (function,) = whole.module.operation.regions[0].blocks[0].operations
        del function.operation.attributes["function_type"]
        whole.notes.add_at("func.func", None, "spoiled")

    monkeypatch.setattr(narrow_integers, "EXACT", spoil)
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(PROGRAM, "1.1.0", expand=True)
    (finding,) = refused.value.findings
    assert finding.feature == "i2"
    assert finding.message.startswith("2-bit integers cannot be expanded: what would replace it is not valid: ")


def test_the_module_of_the_caller_remains() -> None:
    module = vt.deserialize(vt.serialize(PROGRAM))
    before = str(module)
    assert vt.serialize(module, "1.1.0", expand=True).version == vt.Version("1.1.0")
    assert str(module) == before
