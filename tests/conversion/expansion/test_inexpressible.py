"""Features that nothing older can express."""

from __future__ import annotations

import pytest
from support.corpus import FEATURES, around, features_of_library

import vhlo_tools as vt
from vhlo_tools.cli.check import feature_lines
from vhlo_tools.spec import Feature, known_features

_INEXPRESSIBLE = [feature for feature in features_of_library() if feature.inexpressible]


def test_they_have_no_expansions() -> None:
    named = [each.id for each in known_features() if each.inexpressible]
    assert named == ["custom_call_dictionary_backend_config", "custom_call_futures"]
    for feature in known_features():
        assert not (feature.inexpressible and feature.expansions), feature.id


@pytest.mark.parametrize("feature", _INEXPRESSIBLE, ids=lambda feature: feature.id)
def test_the_reason_is_said(feature: Feature) -> None:
    path, (_, before) = FEATURES / f"{feature.id}.mlir", around(feature)
    for options in ({"expand": True}, {"allow_relaxed": "all"}):
        with pytest.raises(vt.DowngradeError) as refused:
            vt.serialize(path, before, **options)
        assert f"it cannot be expanded: {feature.inexpressible}" in str(refused.value)
    # Nobody asked for expansions.
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(path, before)
    assert "it cannot be expanded" not in str(refused.value)
    assert f"It cannot be expanded: {feature.inexpressible}." in " ".join(map(str.strip, feature_lines(feature)))
    with pytest.raises(ValueError, match=f"{feature.id}' has no exact expansion"):
        vt.serialize(path, before, expand=[feature.id])


def test_programs_without_them_are_expanded() -> None:
    program = """func.func @main(%a: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.tan %a : tensor<f32>
      return %0 : tensor<f32> }"""
    assert vt.serialize(program, "1.0.0", expand=True).version == vt.Version("1.0.0")
