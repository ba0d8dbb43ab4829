"""The data against itself, and against the installed library."""

from __future__ import annotations

import re

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion
from support.corpus import FEATURES, ROOT, features_of_library, writable_versions
from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.aliasing import ALIAS_FEATURES
from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import Provider
from vhlo_tools.conversion import REWRITTEN
from vhlo_tools.findings import NEWER_THAN_DATA, OPAQUE_PROPERTIES
from vhlo_tools.spec import (
    Feature,
    bytecode_version_of,
    explanation_of,
    known_explanations,
    known_features,
    known_promises,
    known_releases,
    known_versions,
    minimum_version,
    newest_version,
)
from vhlo_tools.spec.releases import _to_confirmation, known_confirmations
from vhlo_tools.version import Version

pytestmark = pytest.mark.every_python


def test_versions_are_complete_and_ascend() -> None:
    versions = [entry.version for entry in known_versions()]
    expected = [f"0.{minor}.0" for minor in range(9, 21)] + [
        f"1.{minor}.0" for minor in range(newest_version().minor + 1)
    ]
    assert versions == [Version(text) for text in expected]
    dates = [entry.date for entry in known_versions()]
    assert dates == sorted(dates)
    assert (minimum_version(), newest_version()) == (versions[0], versions[-1])
    # A sentence, which stands on one line of a changelog.
    for entry in known_versions():
        assert re.fullmatch(r"[^\n]{10,}\.", entry.brought), entry


def test_promises_begin_at_known_versions_and_only_grow() -> None:
    known = {entry.version for entry in known_versions()}
    for window in ("backward", "forward", "jax-export"):
        held = [each for each in known_promises() if each.window == window]
        assert held, window
        begins = [each.since for each in held if each.since is not None]
        assert begins == sorted(begins)
        assert set(begins) <= known
        # Only the first may hold for every version: it would hide those before it.
        assert all(each.since is not None for each in held[1:])
        assert [each.months for each in held] == sorted(each.months for each in held)
    # A document, and of StableHLO at which commit and day.
    for each in known_promises():
        assert re.fullmatch(
            r"openxla/stablehlo, \S+\.md at [0-9a-f]{40} of \d{4}-\d\d-\d\d|jax-ml/jax, .+", each.source
        )


def test_releases_hold_known_versions() -> None:
    known = {entry.version for entry in known_versions()}
    for release in known_releases():
        assert release.stablehlo.minor_release in known, release
        assert release.minimum == minimum_version()
        for answer in (release.week_4, release.week_12):
            assert answer is None or answer <= release.stablehlo
        assert canonicalize_name(release.package) == release.package
        assert str(PackageVersion(release.release))
        assert str(SpecifierSet(release.python))
    names = [str(release) for release in known_releases()]
    assert len(names) == len(set(names))


def test_the_installed_release_is_in_the_table(provider: Provider) -> None:
    library = provider.library
    release = next(r for r in known_releases() if f"{r.package} {r.release}" == library.name)
    assert release.stablehlo == library.current
    assert release.minimum == library.minimum
    assert release.week_4 == library.requirements["WEEK_4"]
    assert release.week_12 == library.requirements["WEEK_12"]


@pytest.mark.parametrize("version", writable_versions(), ids=str)
def test_bytecode_version_is_what_the_library_writes(version: Version, raw: RawLibrary) -> None:
    written = raw.serialize(raw.parse("module {}"), str(version))
    assert written is not None
    assert Artifact(written).bytecode_version == bytecode_version_of(version)


def test_bytecode_version_beyond_the_data() -> None:
    assert bytecode_version_of(Version("7.0.0")) == bytecode_version_of(newest_version())
    with pytest.raises(vt.UnknownTargetError, match="older than 0.9.0"):
        bytecode_version_of(Version("0.8.9"))


def test_features_are_unique_and_ascend() -> None:
    features = known_features()
    assert len({feature.id for feature in features}) == len(features)
    assert [feature.introduced for feature in features] == sorted(feature.introduced for feature in features)
    # What the library lets through is tested with serialization; everything that it refuses has a program here, as soon
    # as there is a release of a library that can read one.
    shown = {path.stem for path in FEATURES.iterdir()}
    refused = {feature.id: feature.introduced for feature in features if feature.kind not in ("dialect", "encoding")}
    readable = max(release.stablehlo for release in known_releases() if release.package == "jaxlib")
    assert {feature for feature, introduced in refused.items() if introduced <= readable} <= shown <= refused.keys()


@pytest.mark.parametrize("feature", features_of_library(), ids=lambda feature: feature.id)
def test_feature_is_introduced_where_the_data_says(feature: Feature) -> None:
    program = FEATURES / f"{feature.id}.mlir"
    versions = writable_versions()
    before = versions[versions.index(feature.introduced) - 1]
    assert vt.serialize(program, feature.introduced).version == feature.introduced
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(program, before)
    assert {finding.feature for finding in refused.value.findings} == {feature.id}
    finding = refused.value.findings[0]
    assert (finding.introduced, finding.target, finding.kind) == (feature.introduced, before, feature.kind)
    assert feature.remedy in str(finding.remedy)


def test_every_finding_is_explained() -> None:
    """By a feature of a version, or by what findings in general are about."""
    package = ROOT / "vhlo_tools"
    literal = re.compile(r'(?:feature=f?|Finding\(\s*)"(\w+?)(?:\{[^"]*)?"')
    ids = {name for path in package.rglob("*.py") for name in literal.findall(path.read_text())}
    ids |= {*ALIAS_FEATURES, REWRITTEN, OPAQUE_PROPERTIES, NEWER_THAN_DATA}
    known = {feature.id for feature in known_features()}
    assert len(ids) > 20
    assert [each for each in sorted(ids) if each not in known and explanation_of(each) is None] == []
    for explained in known_explanations():
        assert explained.id.rstrip("*") in ids
        assert len(explained.text) > 20
        # A warning of `verify` is an error of `check`, which is asked for it.
        compared = explained.id in ("alias_changed", "alias_lost")
        level = "error" if compared else ALIAS_FEATURES.get(explained.id, explained.level)
        assert level == explained.level


def test_confirmations_are_of_expansions_that_there_are() -> None:
    confirmed = known_confirmations()
    assert confirmed
    entry = {"feature": "tan", "effect": "exact", "release": confirmed[0].release, "written": "1.3.0"}
    assert _to_confirmation(entry).feature == "tan"
    with pytest.raises(ValueError, match="tan has no relaxed expansion"):
        _to_confirmation({**entry, "effect": "relaxed"})
    with pytest.raises(ValueError, match="expected a release of jaxlib"):
        _to_confirmation({**entry, "release": "0.0.1"})
