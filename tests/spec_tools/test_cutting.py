"""A specification as it would have been at an older version."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from support.specs_folder import OURS

from vhlo_tools.errors import InvalidSpecificationError, UnknownTargetError
from vhlo_tools.spec import Specification, known_specification, load_specification
from vhlo_tools.spec_tools import cut, diff, has_release, lint
from vhlo_tools.spec_tools.linting import baseline_of, read_released
from vhlo_tools.version import Version

VERSIONS = [entry.version for entry in known_specification().versions]


def at(version: str, folder: Path) -> Specification:
    return load_specification(cut(OURS, Version(version), folder / version))


@pytest.mark.sample(2)
@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_every_version_is_a_specification_that_ends_there(version: Version, tmp_path: Path) -> None:
    specs = load_specification(cut(OURS, version, tmp_path / "specs"))
    assert lint(specs) == ()
    assert specs.newest == version
    assert all(entry.min <= version and (entry.kind == "version" or entry.max != version) for entry in specs.entries())
    # What is left has the history that it always had.
    ours = known_specification()
    assert diff(specs, VERSIONS[0], version) == diff(ours, VERSIONS[0], version)
    # And at every version the ops that that version always had.
    for op in ours.ops:
        found, expected = specs.op(op.name), op.at(version)
        there = found.at(version) if found else None
        assert (there and there.name) == (expected and expected.name)
    assert read_released(specs.folder) == baseline_of(specs)


def test_the_newest_version_is_the_whole(tmp_path: Path) -> None:
    specs = at(str(VERSIONS[-1]), tmp_path)
    assert has_release(specs)
    assert baseline_of(specs) == baseline_of(known_specification())
    for file in sorted(path.relative_to(OURS) for path in OURS.rglob("*.toml")):
        assert tomllib.loads((tmp_path / str(VERSIONS[-1]) / file).read_text()) == tomllib.loads(
            (OURS / file).read_text()
        ), file


def test_a_cut_can_be_cut_again(tmp_path: Path) -> None:
    twice = cut(cut(OURS, Version("1.11.3"), tmp_path / "once"), Version("0.18.0"), tmp_path / "twice")
    once = cut(OURS, Version("0.18.0"), tmp_path / "directly")
    files = sorted(path.relative_to(once) for path in once.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(twice) for path in twice.rglob("*") if path.is_file())
    assert all((once / file).read_bytes() == (twice / file).read_bytes() for file in files)


def test_what_has_ended_since_is_current_again(tmp_path: Path) -> None:
    specs = at("1.4.0", tmp_path)
    assert [(v.number, v.max) for op in specs.ops if op.name == "all_reduce" for v in op.versions] == [(1, None)]
    assert specs.op_versions["trace_v1"].forgotten
    before = at("0.19.0", tmp_path)
    assert (before.op_versions["trace_v1"].max, before.op_versions["trace_v1"].forgotten) == (None, False)
    assert before.default("empty_tensor") is None
    assert specs.default("empty_tensor") is not None


def test_cases_constraints_and_features_that_came_later_are_left_out(tmp_path: Path) -> None:
    specs = at("1.2.0", tmp_path)
    assert not any(constraint.since > specs.newest for _, _, constraint in specs.constraints())
    newer = at("1.21.0", tmp_path).enum("comparison_type_v1")
    assert newer is not None
    assert newer.case("WEAKORDER") is None
    assert newer.case("UNSIGNED") is not None
    assert specs.feature("mixed_precision_reduction") is not None
    assert specs.feature("collective_broadcast_dynamic_root") is None


def test_a_destination_that_exists_and_a_version_that_does_not(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    with pytest.raises(InvalidSpecificationError, match="specs already exists"):
        cut(OURS, VERSIONS[3], tmp_path / "specs")
    with pytest.raises(UnknownTargetError, match=r"9\.0\.0 is not a version of the specification"):
        cut(OURS, Version("9.0.0"), tmp_path / "other")
    with pytest.raises(InvalidSpecificationError):
        cut(tmp_path / "nowhere", VERSIONS[3], tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["specs"]
