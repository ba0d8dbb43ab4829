"""``vhlo spec probe``: the specification beside the installed library, and drafts of what it lacks."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from support.specs_folder import OURS, copy_of, edit, remove_table

from vhlo_tools import spec_tools
from vhlo_tools.bindings import Provider
from vhlo_tools.cli.main import main
from vhlo_tools.spec import known_specification, load_specification
from vhlo_tools.spec_tools import Survey, compare, cut, draft, lint, probing as surveying, survey_library, write_edits
from vhlo_tools.spec_tools.probing import names_in
from vhlo_tools.version import Version

BEFORE = Version("1.8.0")


@dataclass
class Probed:
    """What `vhlo spec probe` came to, and the survey that it made, which takes seconds."""

    code: int
    said: str
    survey: Survey


@pytest.fixture(scope="module")
def probed() -> Probed:
    made = []

    def recorded(*arguments: Any) -> Survey:
        made.append(survey_library(*arguments))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as said:
        patch.setattr(spec_tools, "survey_library", recorded)
        code = main(["spec", "probe"])
    return Probed(code, said.getvalue(), made[0])


@pytest.fixture(scope="module")
def survey(probed: Probed) -> Survey:
    return probed.survey


@pytest.mark.every_python
def test_the_library_has_what_the_specification_says(survey: Survey, provider: Provider) -> None:
    comparison = compare(known_specification(), survey)
    assert comparison.differences == ()
    assert survey.unread == ()
    assert (survey.source, survey.version) == (provider.library.name, provider.library.current.minor_release)
    # Whatever is not compared is newer.
    specs, newer = known_specification(), {name for _, name in comparison.newer}
    known = {version.name for op in specs.ops for version in op.versions if not version.forgotten}
    assert known - newer == survey.entries["op"].keys()
    assert {each.name for each in specs.types} - newer == survey.entries["type"].keys()
    assert {each.name for each in specs.attributes} - newer == survey.entries["attribute"].keys()


def test_what_the_library_says_of_some(survey: Survey) -> None:
    assert survey.entries["op"]["all_reduce_v1"] == {
        "attributes": ["channel_id", "replica_groups", "use_global_device_ids"],
        "number of operands": "1",
        "number of results": "1",
        "number of regions": "1",
        "min": "0.9.0",
        "max": "1.4.0",
    }
    assert survey.entries["op"]["all_reduce_v2"]["number of operands"] == "0 or more"
    assert survey.entries["type"]["f32_v1"] == {"min": "0.9.0", "max": None, "code": 4, "encodings": ["4"]}
    assert survey.entries["case"]["precision_v1.HIGHEST"] == {"value": 2, "min": "0.9.0"}
    assert survey.entries["version"]["0.12.0"] == {"bytecode": 3}
    assert survey.implied["gather_v2"].keys() == {"operand_batching_dims", "start_indices_batching_dims"}


@pytest.mark.parametrize(
    ("file", "entry", "old", "new", "expected"),
    [
        ("ops/shapes.toml", '"transpose"', '"permutation"', '"order"', 'op transpose_v1: attributes is ["order"] here'),
        ("ops/constants.toml", '"iota"', '"0.9.0"', '"0.10.0"', "op iota_v1: min is 0.10.0 here, and 0.9.0 there"),
        ("types.toml", '"i2_v1"', "31", "131", "type i2_v1: code is 131 here, and 31 there"),
        ("enums.toml", '"precision_v1"', '"HIGHEST"', '"MOST"', "case precision_v1.HIGHEST: only there"),
        ("types.toml", "", '"f8E8M0FNU_v1"', '"f8E9_v1"', "type f8E8M0FNU_v1: only there"),
        ("ops/communication.toml", '"send"', '"empty_tensor"', '"empty_array"', "step send.1-2: sets is "),
        ("ops/elementwise_unary.toml", "", '"tan"', '"tang"', "op tang_v1: only here"),
    ],
)
def test_damage_is_found(
    file: str, entry: str, old: str, new: str, expected: str, survey: Survey, tmp_path: Path
) -> None:
    specs = copy_of(OURS, tmp_path)
    edit(specs / "vhlo" / file, entry, old, new)
    found = [str(each) for each in compare(load_specification(specs), survey).differences]
    assert any(each.startswith(expected) for each in found), found


def test_drafts_make_the_specification_what_the_library_says(survey: Survey, tmp_path: Path) -> None:
    specs = cut(OURS, BEFORE, tmp_path / "specs")
    older = load_specification(specs)
    found = compare(older, survey)
    plan = draft(older, survey, found)
    assert compare(load_specification(specs), survey) == found
    write_edits(plan.edits)
    drafted = load_specification(specs)
    assert compare(drafted, survey).differences == ()
    assert lint(drafted) == ()
    assert drafted.newest == survey.version
    # Steps and their defaults are those of ours: the library shows what it sets.
    ours = known_specification()
    step = {f"{op.name}.{step.newer}": step for op, step, _, newer in ours.steps() if newer.min > BEFORE}
    for op, each, _, newer in drafted.steps():
        if newer.min > BEFORE:
            expected = step[f"{op.name}.{each.newer}"]
            assert each.added.keys() == expected.added.keys()
            assert len(each.single) == len(expected.single)
            for name, default in each.added.items():
                ours_default, theirs = ours.default(expected.added[name]), drafted.default(default)
                assert ours_default is not None
                assert theirs is not None
                assert theirs.text == ours_default.text
    assert plan.remaining
    assert all(each.path.read_text().splitlines()[each.line - 1].strip() for each in plan.remaining)


def test_what_a_released_version_lacks_is_left_to_a_person(survey: Survey, tmp_path: Path) -> None:
    specs = copy_of(OURS, tmp_path)
    (specs / "released.json").unlink()
    remove_table(specs / "vhlo/types.toml", "", '[[type]]\nname = "witness_v1"')
    before = load_specification(specs)
    comparison = compare(before, survey)
    assert [str(each) for each in comparison.differences] == ["type witness_v1: only there"]
    plan = draft(before, survey, comparison)
    assert plan.edits == ()
    (left,) = plan.remaining
    assert left.what == f"decide: type witness_v1: only there ({survey.source})"


def test_what_crashes_the_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "_QUESTIONS", "support.crashing_questions")
    # Two of all that it would be asked answer, and two crash.
    known = known_specification()
    few = replace(
        known,
        ops=tuple(each for each in known.ops if each.name in ("abs", "add")),
        types=tuple(each for each in known.types if each.name in ("f32_v1", "f64_v1")),
        attributes=(),
    )
    survey = survey_library(few)
    missed = {each.unknown for each in survey.unread}
    assert missed == {"abs", "f32_v1"}
    assert all("answer" in each.expected for each in survey.unread)
    assert survey.entries["op"]["abs_v1"] == {}
    assert survey.entries["op"]["add_v1"]["min"] == "0.9.0"


def test_command(
    probed: Probed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert probed.code == 0
    assert ": no difference" in probed.said
    # The library says of damaged specifications what it says of ours, as far as they have the names of ours.
    monkeypatch.setattr(spec_tools, "survey_library", lambda specs, provider: probed.survey)
    specs = copy_of(OURS, tmp_path)
    edit(specs / "vhlo/types.toml", '"i2_v1"', "31", "131")
    assert main(["spec", "probe", "--specs", str(specs), "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    differences = [(each["kind"], each["name"], each["key"]) for each in report["differences"]]
    assert differences == [("type", "i2_v1", "code"), ("type", "i2_v1", "encodings")]
    monkeypatch.undo()
    assert main(["spec", "probe", "--provider", "nothing"]) == 2
    assert "is not a known provider" in capsys.readouterr().err


def test_names_come_from_every_shared_library(tmp_path: Path) -> None:
    (tmp_path / "a.so").write_bytes(b"\0vhlo.abs_v1\0xvhlo.no_v1\0vhlo.no\0 vhlo.cross-replica-sum_v12\0")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/b.so.1").write_bytes(b"vhlo.f8E4M3_v2")
    (tmp_path / "empty.so").write_bytes(b"")
    (tmp_path / "c.py").write_bytes(b"vhlo.other_v1")
    assert names_in(tmp_path) == {"abs_v1", "cross-replica-sum_v12", "f8E4M3_v2"}
