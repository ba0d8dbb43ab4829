"""What the page for a program says, beside what other functions say of the same program."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES, FEATURES, example_programs
from support.corpus_files import corpus_files
from support.large_artifacts import write_artifact_of_constants, write_artifact_of_ops
from support.page_data import contents_of

import vhlo_tools as vt
from vhlo_tools.artifact import Artifact, inspect_bytes, outline
from vhlo_tools.bindings import get_provider
from vhlo_tools.spec import known_feature, known_releases, known_versions, minimum_version
from vhlo_tools.viewing import assembled, program_contents

VERSIONS = [str(each.version) for each in known_versions()]


def contents(data: bytes, name: str) -> dict[str, Any]:
    artifact = Artifact(data, name=name)
    found = artifact.requirements().findings(minimum_version())
    held = program_contents(artifact, found, today=date(2026, 11, 1))
    return contents_of(assembled("program", held).html)


def check(data: bytes, name: str) -> None:
    artifact = Artifact(data, name=name)
    held, requirements, inventory = contents(data, name), artifact.requirements(), artifact.inventory()
    graph = held["graph"]
    kinds = Counter(graph["strings"][graph["kinds"][kind][1]] for kind in graph["kind"])
    assert kinds == Counter(inventory.ops)
    for key in ("readable_since", "downgradable_to", "expandable_to"):
        version = getattr(requirements, key)
        assert VERSIONS[held[key]] == str(version)
    # A release reads it if nothing of what its version refuses is an error.
    for row in held["releases"]:
        (release,) = [
            each for each in known_releases() if (each.package, each.release) == (row["package"], row["release"])
        ]
        refused = any(each.level == "error" for each in requirements.reader_findings(release.stablehlo))
        assert row["reads"] == (not refused and release.minimum <= artifact.version.minor_release)
    for version, (refused_features, _) in zip(known_versions(), held["blocked"], strict=True):
        errors = {each.feature for each in requirements.findings(version.version) if each.level == "error"}
        assert set(refused_features) == errors
    assert {each.id for each in requirements.features} <= {each["id"] for each in held["features"]}
    # What is refused at the oldest version, an op has; and findings lead there.
    for finding in held["findings"]:
        for op in finding["ops"]:
            assert 0 <= op < len(graph["kind"])
            assert finding["feature"] in graph["feature_sets"][graph["features"][op]] or len(finding["ops"]) == 1
    assert held["constants_number"] == inventory.constants.count
    assert held["constants_bytes"] == inventory.constants.bytes


@pytest.mark.parametrize("path", example_programs(), ids=lambda path: path.name)
def test_pages_say_what_others_say_of_examples(path: Path) -> None:
    page = vt.report(path, as_of=date(2026, 11, 1))
    held = contents_of(page.html)
    assert held["name"] == str(path)
    artifact = vt.open_artifact(path) if path.suffix == ".jax_export" else vt.serialize(path, "current")
    check(bytes(artifact), path.name)


def test_pages_say_what_others_say_of_artifacts_of_old_releases() -> None:
    number = 0
    for name, data in corpus_files(ordinary=False):
        number += 1
        if number % 25 == 0:
            check(data, name)
    assert number > 500


def test_aliases_and_donors_are_shown() -> None:
    text = """func.func @main(%arg0: tensor<2xf32> {tf.aliasing_output = 1 : i32} loc("params['w']"),
        %arg1: tensor<2xf32> {jax.buffer_donor = true}, %arg2: tensor<3xi8>)
        -> (tensor<3xi8> {jax.result_info = "out"}, tensor<2xf32>) {
      %0 = stablehlo.add %arg0, %arg1 : tensor<2xf32>
      return %arg2, %0 : tensor<3xi8>, tensor<2xf32>
    }"""
    held = contents(bytes(vt.serialize(text, "current")), "x")
    assert held["aliases"] == [{"input": 0, "output": 1, "kind": "may-alias"}]
    assert [each["donated"] for each in held["inputs"]] == [False, True, False]
    assert [each["type"] for each in held["inputs"]] == ["tensor<2xf32>", "tensor<2xf32>", "tensor<3xi8>"]
    assert [each["name"] for each in held["outputs"]] == ["out", ""]
    assert held["inputs"][0]["name"] == "params['w']"
    assert held["function"] == "main"


def test_a_target_is_what_the_findings_are_about() -> None:
    text = """func.func @main(%0: tensor<f32>) -> tensor<f32> {
      %1 = stablehlo.tan %0 : tensor<f32>
      return %1 : tensor<f32>
    }"""
    held = contents_of(vt.report(text, target="1.3.0").html)
    (finding,) = [each for each in held["findings"] if each["level"] == "error"]
    assert (finding["feature"], VERSIONS[finding["introduced"]], VERSIONS[held["target"]]) == ("tan", "1.4.0", "1.3.0")
    (op,) = finding["ops"]
    graph = held["graph"]
    assert graph["strings"][graph["kinds"][graph["kind"][op]][0]] == "tan"
    (feature,) = [each for each in held["features"] if each["id"] == "tan"]
    assert feature["needed"]
    assert [(each["effect"], VERSIONS[each["to"]]) for each in feature["expansions"]] == [
        (each.effect, str(each.to)) for each in known_feature("tan").expansions
    ]
    assert contents_of(vt.report(text, target="1.4.0").html)["findings"] == []


def test_constants_are_the_largest_and_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.mlirbc"
    write_artifact_of_constants(path, 64 << 20, 130, "1.9.0")
    page = vt.report(path)
    held = contents_of(page.html)
    sizes = [each["bytes"] for each in held["constants"]]
    assert (len(sizes), held["constants_number"]) == (100, 130)
    assert sizes == sorted(sizes, reverse=True)
    assert held["constants_bytes"] == sum(sizes) // 100 * 130
    # Without the 64 MB.
    assert len(page.html) < 2_000_000


def test_very_many_ops_fit_a_page(tmp_path: Path) -> None:
    path = tmp_path / "ops.mlirbc"
    # More than groups of groups of 200 hold, the most members that a group has.
    write_artifact_of_ops(path, 41_000, "1.9.0")
    page = vt.report(path)
    assert len(page.html) < 4_100_000
    graph = contents_of(page.html)["graph"]
    assert len(graph["kind"]) == 41_003
    assert max(number for *_, number in graph["groups"]) <= 200


def test_a_newer_artifact_is_shown_with_a_sentence() -> None:
    data = bytes(vt.serialize(EXAMPLES / "saxpy.mlir", "current"))
    version = str(vt.open_artifact(data).version)
    newer = data.replace(f"StableHLO_v{version}".encode(), b"StableHLO_v1." + b"9" * (len(version) - 4) + b".0")
    held = contents_of(vt.report(newer).html)
    assert held["written"] == -1
    assert "data of vhlo_tools end at" in held["newer"]


def test_a_damaged_artifact_is_an_error_of_its_own() -> None:
    data = bytes(vt.serialize(EXAMPLES / "transformer_step.mlir", "current"))
    with pytest.raises(vt.MalformedArtifactError):
        vt.report(data[: len(data) // 2])


def test_what_no_artifact_can_represent_is_a_finding() -> None:
    text = """func.func @main(%0: tensor<2xf32>) -> tensor<2xf32> {
      %1 = math.absf %0 : tensor<2xf32>
      return %1 : tensor<2xf32>
    }"""
    held = contents_of(vt.report(text, legalize=False).html)
    (finding,) = held["findings"]
    assert (finding["level"], finding["feature"], finding["location"]) == ("error", "mixed_dialects", "the text:2:12")


def test_a_program_that_is_no_artifact_is_not_shown_as_one(tmp_path: Path) -> None:
    text = (FEATURES / "tan.mlir").read_text()
    path = tmp_path / "tan.mlir"
    path.write_text(text)
    held = contents_of(vt.report(path, as_of=date(2026, 11, 1)).html)
    # As `vhlo inspect` says of the file, and not of what it might become.
    assert [tuple(each) for each in held["lines"]][:2] == [*outline(inspect_bytes(text.encode(), str(path)))]
    assert held["written"] == -2
    released = {(each.package, each.release): each.stablehlo for each in known_releases()}
    since = known_feature("tan").introduced
    for row in held["releases"]:
        assert row["reads"] == (released[row["package"], row["release"]].minor_release >= since)
    provider = get_provider()
    module = provider.parse(provider.new_context(), text)
    assert contents_of(vt.report(module).html)["lines"][0][1] == "a program in Python, not written yet"
