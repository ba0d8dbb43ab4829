"""Range locations, which are written as plain ones for targets before 1.9.0 without being asked."""

from __future__ import annotations

import pytest
from support.expansions import version_before

import vhlo_tools as vt
from vhlo_tools.spec import known_feature

#: Locations of an op and of an argument, and what is written of them.
LOCATIONS = {
    'loc("m.py":4:3 to :9)': 'loc("m.py":4:3)',
    'loc("m.py":4:3 to 5:9)': 'loc("m.py":4:3)',
    'loc("n"("m.py":4:3 to 5:9))': 'loc("n"("m.py":4:3))',
    'loc(callsite("m.py":4:3 to :9 at "c.py":1:1 to 2:1))': 'loc(callsite("m.py":4:3 at "c.py":1:1))',
    'loc(fused["m.py":4:3 to :9, "n.py":1:2])': 'loc(fused["m.py":4:3, "n.py":1:2])',
    'loc("m.py":4:3)': 'loc("m.py":4:3)',
}


def _program(place: str) -> str:
    return f"""func.func @main(%a: tensor<4xf32> {place}) -> tensor<4xf32> {{
      %0 = stablehlo.abs %a : tensor<4xf32> {place}
      return %0 : tensor<4xf32> {place}
    }}"""


@pytest.mark.sample(8)
@pytest.mark.parametrize("place", LOCATIONS)
@pytest.mark.parametrize("target", [version_before("range_locations"), "0.9.0"])
@pytest.mark.parametrize("expand", [False, True])
def test_the_start_remains(place: str, target: str, expand: bool) -> None:
    artifact = vt.serialize(_program(place), target, expand=expand)
    assert artifact.requirements().findings(artifact.version) == []
    assert artifact.requirements().readable_since <= artifact.version
    # What is written is the program with plain locations.
    assert bytes(artifact) == bytes(vt.serialize(_program(LOCATIONS[place]), target))
    assert bytes(vt.retarget(vt.serialize(_program(place)), target, engine="mlir")) == bytes(artifact)


def test_ranges_do_not_stand_in_the_way() -> None:
    requirements = vt.serialize(_program('loc("m.py":4:3 to :9)')).requirements()
    assert "range_locations" in {each.id for each in requirements.features}
    assert requirements.expandable_to == requirements.downgradable_to == vt.Version("0.9.0")
    assert known_feature("range_locations").unasked
