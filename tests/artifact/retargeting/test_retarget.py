"""An artifact moved on its bytes is, to the library, the one that it would have made itself."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import pytest
from check_retarget import AGREED, compare, targets
from support.corpus import EXAMPLES, FEATURES, ROOT, around, example_programs, features_of_library, some_versions
from support.corpus_files import CorpusFile, corpus_files, corpus_index, read_corpus_file
from support.walking import walk

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider
from vhlo_tools.spec import Feature, known_versions, newest_version

pytestmark = pytest.mark.every_python


def reads(entry: CorpusFile) -> bool:
    """Tell whether the installed library reads a file of the archive."""
    return entry.read_by_newest and vt.Version(entry.target).minor_release <= vt.resolve_target("current").version


def outcomes(data: bytes, versions: Iterable[vt.Version]) -> set[str]:
    """Return how the two engines agree at some versions: at all of them in one of these words."""
    found = {str(version): compare(data, str(version)) for version in versions}
    assert {target: outcome for target, outcome in found.items() if outcome not in AGREED} == {}
    return set(found.values())


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", example_programs(), ids=lambda path: path.name)
def test_examples_at_every_version(path: Path) -> None:
    outcomes(bytes(vt.serialize(path, allow_other_dialects=True)), some_versions(path.name))


@pytest.mark.sample(2)
@pytest.mark.parametrize("feature", features_of_library(), ids=lambda feature: feature.id)
def test_features_at_every_version(feature: Feature) -> None:
    data = bytes(vt.serialize(FEATURES / f"{feature.id}.mlir", min(LIBRARY, newest_version())))
    assert outcomes(data, some_versions(feature.id, *around(feature))) == {"same", "refused"}


#: What the library reads of what jaxlib 0.10.2 does.
LIBRARY = get_provider().library.current
READ_HERE = min(LIBRARY, vt.Version("1.17.0"), newest_version())
SAMPLE = sorted(entry.file for entry in corpus_index() if not entry.ordinary and reads(entry))[::60]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", SAMPLE)
def test_artifacts_of_the_archive_at_every_version(name: str) -> None:
    data = read_corpus_file(name)
    try:
        vt.deserialize(data)
    except vt.MalformedArtifactError as error:
        # Those that the archive has for dialects that nobody knows.
        assert "unregistered dialect" in str(error)
        return
    outcomes(data, some_versions(name))


@pytest.mark.long
def test_down_and_up_again_is_the_same_program() -> None:
    """Through every layout of the format; without the library, which is not asked."""
    for path in example_programs():
        newest = vt.serialize(path, min(LIBRARY, newest_version()), allow_other_dialects=True)
        for entry in known_versions():
            try:
                older = vt.retarget(newest, entry.version, engine="bytes")
            except vt.DowngradeError:
                continue
            assert (older.version, older.bytecode_version) == (entry.version, entry.bytecode)
            assert vt.open_artifact(bytes(older)).version == entry.version
            back = vt.retarget(bytes(older), newest.version, engine="bytes")
            locations = entry.version >= vt.Version("1.9.0")
            assert vt.diff(newest, back, locations=locations) == [], (path.name, entry.version)


@pytest.mark.long
@pytest.mark.whole_data("moves what jaxlib 0.12.0.1 wrote, of versions and ops that the data must have")
def test_artifacts_of_the_future_come_down_to_the_installed_library() -> None:
    """What jaxlib 0.12.0.1 wrote at 1.22.0, for jaxlib 0.10.2, or an older one that is installed, to read."""
    current = READ_HERE
    moved = refused = 0
    for name, data in corpus_files(ordinary=False):
        artifact = vt.open_artifact(data)
        if artifact.version < vt.Version("1.20.0") or not artifact.dialects.keys() <= {"builtin", "vhlo", "sdy"}:
            continue
        try:
            older = vt.retarget(data, current, engine="bytes")
        except vt.DowngradeError as error:
            assert all(finding.introduced > current for finding in error.findings if finding.introduced), name
            refused += 1
            continue
        requirements = older.requirements()
        assert requirements.readable_since <= current or older.findings, name
        # At an integer attribute of two bits every reader ends its process.
        if "i2_attribute" not in {finding.feature for finding in requirements.reader_findings(current)}:
            vt.deserialize(older)
            moved += 1
    assert moved > 20
    assert refused > 0


def test_up_to_a_version_that_no_installed_library_writes() -> None:
    saxpy = vt.serialize(EXAMPLES / "saxpy.mlir", "0.9.0")
    newest = vt.retarget(saxpy, newest_version())
    assert newest.version == newest_version()
    assert vt.diff(newest, vt.retarget(saxpy, "1.0.0"), ignore=["version"]) == []
    with pytest.raises(vt.UnknownTargetError, match=r"StableHLO 0.9.0 to .* are known"):
        vt.retarget(saxpy, "99.0.0")


def test_all_findings_come_with_a_refusal() -> None:
    artifact = vt.serialize(EXAMPLES / "transformer_step.mlir")
    with pytest.raises(vt.DowngradeError, match=r"it can be written for StableHLO 1.1.0 or later") as refused:
        vt.retarget(artifact, "0.9.0")
    assert {finding.op for finding in refused.value.findings} == {"stablehlo.gather", "stablehlo.scatter"}
    assert all(finding.location for finding in refused.value.findings)


def test_range_locations_become_plain_with_a_note() -> None:
    artifact = vt.serialize(EXAMPLES / "transformer_step.mlir", "1.9.0")
    older = vt.retarget(artifact, "1.8.0", engine="bytes")
    (note,) = older.findings
    assert (note.feature, note.level) == ("range_locations", "note")
    assert note.count > 50
    assert older.requirements().readable_since <= vt.Version("1.8.0")
    assert "make_transformer_step.py" in vt.open_artifact(bytes(older)).text(debug_info=True)
    assert vt.retarget(artifact, "1.9.0").findings == ()


def test_nothing_that_is_younger_than_the_target_stays_in_the_tables() -> None:
    for feature in features_of_library():
        artifact = vt.serialize(FEATURES / f"{feature.id}.mlir")
        for target in targets():
            try:
                moved = vt.retarget(artifact, target, engine="bytes")
            except vt.DowngradeError:
                continue
            assert moved.requirements().readable_since <= vt.Version(target) or moved.findings, (feature.id, target)
            assert moved.requirements().contradiction is None or moved.findings


def test_other_dialects_stay_and_their_attributes_move() -> None:
    mixed = vt.serialize(EXAMPLES / "sharded_matmul.mlir", allow_other_dialects=True)
    older = vt.retarget(mixed, "1.10.0", engine="bytes")
    assert "sdy" in older.dialects
    assert {finding.feature for finding in older.findings if not finding.unknown} == {"mixed_dialects"}
    assert vt.diff(mixed, vt.retarget(older, mixed.version)) == []


@pytest.mark.parametrize("name", ["jaxlib-0.6.2/mixed_chlo@0.10.0.mlirbc", "jaxlib-0.7.2/mixed_chlo@0.14.0.mlirbc"])
def test_attributes_of_other_dialects_are_read_by_releases_that_differ_in_what_they_keep_where(name: str) -> None:
    """Ops of CHLO have other properties in jaxlib 0.12 than in 0.10."""
    assert {compare(read_corpus_file(name), target) for target in ("0.15.0", "1.0.0", str(READ_HERE))} == {"same"}


@pytest.mark.long
def test_orders_of_uses_are_kept_where_the_format_has_them() -> None:
    """Since bytecode 3. MLIR's text does not show them, so they are compared as they stand."""

    def orders(artifact: vt.Artifact) -> list[object]:
        return [item.use_lists for item in walk(artifact.file.ir) if item.use_lists]

    kept = 0
    for name, data in corpus_files(ordinary=False):
        artifact = vt.open_artifact(data, name=name)
        if artifact.bytecode_version < 6 or not (before := orders(artifact)):
            continue
        for target, has in (("0.12.0", True), ("0.14.0", True), (str(newest_version()), True), ("0.9.0", False)):
            try:
                moved = bytes(vt.retarget(artifact, target, engine="bytes"))
            except vt.DowngradeError:
                continue
            assert orders(vt.open_artifact(moved)) == (before if has else []), (name, target)
            kept += has
    assert kept > 100


def test_attributes_of_a_form_that_is_not_known_are_left_to_the_library() -> None:
    program = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = arith.addf %a, %a fastmath<fast> : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    artifact = vt.serialize(program, allow_other_dialects=True)
    with pytest.raises(vt.UnsupportedFeatureError, match=r"the properties of arith.addf have an unknown encoding"):
        vt.retarget(artifact, "0.14.0", engine="bytes")
    assert "fastmath<fast>" in str(vt.deserialize(vt.retarget(artifact, "0.14.0")))
    assert "fastmath<fast>" in str(vt.deserialize(vt.retarget(artifact, "0.15.0", engine="bytes")))


def test_there_are_three_engines() -> None:
    with pytest.raises(ValueError, match="unknown engine 'fast': expected one of auto, bytes, mlir"):
        vt.retarget(vt.serialize(EXAMPLES / "saxpy.mlir"), "1.0.0", engine="fast")  # type: ignore[arg-type]


@pytest.mark.long
def test_damaged_artifacts_are_refused_or_moved(tmp_path: Path) -> None:
    """Nothing else comes out of one than an error of ours, which says where, and nothing takes long."""
    chance = random.Random(5)
    outcomes = set()
    for program, version, target in (
        ("examples/saxpy.mlir", "current", "0.9.0"),
        ("tests/programs/features/dot_algorithm.mlir", "1.6.0", str(newest_version())),
        ("tests/programs/features/gather_scatter_batching_dims.mlir", "1.1.0", "1.9.0"),
        ("examples/convnet.bc", "0.9.0", "1.0.0"),
    ):
        data = bytes(vt.serialize(ROOT / program, version))
        for _ in range(1500):
            damaged = bytearray(data)
            damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            try:
                bytes(vt.retarget(bytes(damaged), target, engine="bytes"))
                outcomes.add("moved")
            except vt.MalformedArtifactError as error:
                assert error.section
                outcomes.add("malformed")
            except (vt.DowngradeError, vt.UnsupportedFeatureError):
                outcomes.add("refused")
    assert outcomes == {"moved", "malformed", "refused"}
