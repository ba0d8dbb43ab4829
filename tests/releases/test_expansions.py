"""Expanded programs are read and run by releases that lack what was expanded."""

from __future__ import annotations

from collections import defaultdict

import pytest
from support.corpus import features_of_library
from support.expansion_confirmations import OLD_RELEASES, Case, cases, confirm, newest_without

import vhlo_tools as vt
from vhlo_tools.spec import known_confirmations, known_feature

pytestmark = pytest.mark.long

_CASES = {
    f"{each.feature.id}-{each.effect}": each
    for each in cases(features_of_library())
    if each.release == OLD_RELEASES[-1]
}


def test_every_expansion_was_confirmed() -> None:
    """If this fails, run ``scripts/confirm_expansions.py`` for the feature, then ``scripts/write_expansions.py``."""
    recorded = {(each.feature, each.effect, each.release, each.written) for each in known_confirmations()}
    assert recorded == {(each.feature.id, each.effect, each.release, each.written) for each in cases()}
    assert len(recorded) == len(known_confirmations())


def test_releases_are_older_than_what_they_read_without() -> None:
    tan = newest_without(known_feature("tan"))
    assert tan is not None
    assert tan.release == "0.4.30"
    versions: dict[str, set[vt.Version]] = defaultdict(set)
    for each in known_confirmations():
        version = vt.resolve_target(f"jaxlib=={each.release}").version
        versions[each.feature].add(version)
        if each.release not in OLD_RELEASES:
            assert version < known_feature(each.feature).introduced
    for feature, found in versions.items():
        # All releases know the oldest element types.
        assert min(found) < known_feature(feature).introduced or newest_without(known_feature(feature)) is None


@pytest.mark.releases
@pytest.mark.parametrize("name", _CASES)
def test_an_old_release_runs_it(name: str) -> None:
    assert confirm(_CASES[name]) in known_confirmations()


@pytest.mark.releases
def test_other_results_are_seen() -> None:
    """The program of another feature computes something else, and that is no confirmation."""
    case = next(each for each in _CASES.values() if each.feature.id == "composite")

    class Other(Case):
        def artifact(self) -> vt.Artifact:
            return vt.serialize(self.program.replace("stablehlo.add", "stablehlo.multiply"), "0.9.0", expand=True)

    with pytest.raises(AssertionError, match="result 0 of device 0"):
        confirm(Other(case.feature, case.effect, case.release, case.written))
