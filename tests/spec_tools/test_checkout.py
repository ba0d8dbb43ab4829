"""``vhlo spec import``: a checkout read, compared with a specification, and drafted into it.

The checkout is a small fork of VHLO of our own, in ``fork/``. Where ``VHLO_TOOLS_STABLEHLO`` names a clone of
openxla/stablehlo, that is read as well.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from random import Random

import pytest
from support.json_records import schema_problems
from support.specs_folder import OURS, edit

from vhlo_tools.cli.main import main
from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.spec import known_specification, load_specification
from vhlo_tools.spec_tools import (
    NewEntry,
    TableGen,
    compare,
    cut,
    draft,
    find_tablegen,
    lint,
    parse_attribute,
    parse_case,
    parse_op,
    plan_version,
    survey_checkout,
    write_edits,
)
from vhlo_tools.spec_tools.linting import baseline_of
from vhlo_tools.version import Version

FORK = Path(__file__).parent / "fork"
BYTECODE = "stablehlo/dialect/VhloBytecode.cpp"
OPS = "stablehlo/dialect/VhloOps.td"


def _installed() -> TableGen | None:
    try:
        return find_tablegen()
    except InvalidSpecificationError:
        return None


needs_tablegen = pytest.mark.skipif(_installed() is None, reason="llvm-tblgen with MLIR's files is not installed")

#: The specification of the fork when it was at 0.10.0, and files of it after the import.
BEFORE = Path(__file__).parent / "fork_specs" / "before"
AFTER = Path(__file__).parent / "fork_specs" / "after"

#: Said of the fork and this specification, by kind and name; a name before a colon has what differs behind it.
DIFFERENCES = [
    *("version 0.11.0: only there", "version 0.12.0: only there", "type fibre_v1: only there"),
    *("attribute knot_v1: only there", "case side_v1.UP: only there"),
    *("op pull_v1: max is absent here, and 0.11.0 there", "op pull_v2: only there"),
    *("op push_v1: max is absent here, and 0.10.0 there", "op push_v2: only there", "op shove_v1: only there"),
    *("step pull.1-2: only there", "step push.1-2: only there"),
    *("constraint push_v2 before 0.12.0: only there", "constraint shove_v1 before 0.12.0: only there"),
]


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    return shutil.copytree(BEFORE, tmp_path / "specs")


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    return shutil.copytree(FORK, tmp_path / "fork")


def texts(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.toml")}


# Reading and comparing


@needs_tablegen
def test_what_differs(specs: Path) -> None:
    assert lint(load_specification(specs)) == ()
    survey = survey_checkout(FORK)
    comparison = compare(load_specification(specs), survey)
    assert [str(each) for each in comparison.differences] == DIFFERENCES
    assert comparison.newer == ()
    assert survey.unread == ()
    assert (survey.version, survey.minimum) == (Version("0.12.0"), Version("0.9.0"))
    assert survey.encodings["knot_v1"] == (
        (7, ("kind: type", "strength: f64", "last_turn: flagged attribute", "ends: pair[]", "turns: svarint[]")),
    )
    assert survey.place("op", "push_v2") == f"{OPS}:{line_of('VHLO_PushOpV2')}"


def line_of(text: str) -> int:
    lines = (FORK / OPS).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if f"def {text} " in line)


@needs_tablegen
def test_what_is_newer_here_is_no_difference(specs: Path) -> None:
    survey = survey_checkout(FORK)
    write_edits(draft(load_specification(specs), survey, compare(load_specification(specs), survey)).edits)
    changes: list[NewEntry] = [
        parse_op("moves/lift(load) -> result"),
        parse_attribute("shove.far=false"),
        parse_case("side.DOWN"),
    ]
    write_edits(plan_version(load_specification(specs), Version("0.13.0"), changes, tests=specs / "tests").edits)
    comparison = compare(load_specification(specs), survey)
    assert comparison.differences == ()
    assert set(comparison.newer) == {
        ("version", "0.13.0"),
        ("op", "lift_v1"),
        ("op", "shove_v2"),
        ("step", "shove.1-2"),
        ("case", "side_v1.DOWN"),
    }


# Drafting


@needs_tablegen
def test_drafts_make_the_specification_what_the_checkout_says(specs: Path) -> None:
    survey = survey_checkout(FORK)
    plan = draft(load_specification(specs), survey, compare(load_specification(specs), survey))
    assert texts(specs) == texts(BEFORE)
    write_edits(plan.edits)
    drafted = load_specification(specs)
    assert compare(drafted, survey).differences == ()
    assert lint(drafted) == ()
    assert texts(AFTER).items() <= texts(specs).items()
    brought = {str(entry.version): (entry.bytecode, entry.brought) for entry in drafted.versions}
    assert brought["0.12.0"] == (6, "Let `pull` take several ropes, and introduce `knot` and `fibre`.")
    assert brought["0.11.0"][0] == 6
    up = drafted.enum("side_v1")
    assert up is not None
    assert [(case.name, case.value, str(case.min)) for case in up.cases][-1] == ("UP", 2, "0.12.0")
    assert {feature.id: (str(feature.introduced), feature.kind) for feature in drafted.features} == {
        "push_gently": ("0.11.0", "op"),
        "fibre": ("0.12.0", "type"),
        "push_since_0_12": ("0.12.0", "constraint"),
    }
    # Each with its line.
    left = [(each.path.relative_to(specs).as_posix(), each.what) for each in plan.remaining]
    day = "correct the date, and its source"
    assert sorted(left) == sorted(
        [
            ("versions.toml", day),
            ("versions.toml", day),
            ("versions.toml", "check that MLIR bytecode 6 is read and written (vhlo_tools/bytecode)"),
            ("vhlo/types.toml", "add bits to fibre_v1 if it is a number"),
            ("vhlo/ops/imported.toml", "move shove into the file of its family"),
            (
                "vhlo/defaults.toml",
                f"correct the value in both forms ({OPS}:{line_of('VHLO_PullOpV2')}): this one is a guess",
            ),
            *(
                ("vhlo/features.toml", f"name the feature of {version}, and describe how to do without it")
                for version in ("0.11.0", "0.12.0", "0.12.0")
            ),
        ]
    )
    for each in plan.remaining:
        assert each.path.read_text().splitlines()[each.line - 1].strip(), each


@needs_tablegen
def test_nothing_that_is_released_is_changed(specs: Path, fork: Path) -> None:
    edit(fork / OPS, "", '<"push_v1", "0.9.0", "0.10.0"> {\n  let arguments = (ins AnyThing:$load,', "PUSH")
    edit(fork / OPS, "", "PUSH", '<"push_v1", "0.9.0", "0.10.0"> {\n  let arguments = (ins AnyThing:$weight,')
    edit(fork / OPS, "", '"f32_v1", "0.9.0"', '"f16_v1", "0.9.0"')
    survey = survey_checkout(fork)
    comparison = compare(load_specification(specs), survey)
    plan = draft(load_specification(specs), survey, comparison)
    write_edits(plan.edits)
    decisions = [each.what for each in plan.remaining if each.what.startswith("decide: ")]
    assert [what.partition(" (")[0] for what in decisions] == [
        "decide: type f16_v1: only there",
        "decide: type f32_v1: only here",
        'decide: op push_v1: operands is ["load"] here, and ["weight"] there',
    ]
    before = baseline_of(load_specification(specs))
    assert "f16_v1" not in before["type"]
    assert before["op"]["push_v1"]["operands"] == ["load"]


@needs_tablegen
def test_dates_come_from_the_history(specs: Path, fork: Path) -> None:
    def git(*arguments: str, day: str = "2024-03-04") -> None:
        stamp = f"{day}T12:00:00+00:00"
        names = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "a") | dict.fromkeys(
            ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "a@b"
        )
        environment = {**os.environ, **names, "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
        subprocess.run(["git", "-C", str(fork), *arguments], check=True, capture_output=True, env=environment)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "a")
    git("tag", "v0.11.0")
    edit(fork / "stablehlo/dialect/Version.h", "", "Version(0, 12, 3)", "Version(0, 12, 0)")
    git("commit", "-q", "-a", "-m", "b", day="2024-05-06")
    # What the settings of a checkout name is not run.
    for key in ("diff.external", "core.pager", "core.fsmonitor", "gpg.program"):
        git("config", key, f"touch {fork}/run; false")
    git("config", "log.showSignature", "true")
    dates = survey_checkout(fork).dates
    assert dates[Version("0.11.0")] == (date(2024, 3, 4), "tag")
    assert dates[Version("0.12.0")] == (date(2024, 5, 6), "commit")
    assert not (fork / "run").exists()


# What cannot be read


def _replaced(file: str, old: str, new: str) -> Callable[[Path], None]:
    return lambda fork: edit(fork / file, "", old, new)


CPP = "stablehlo/transforms/VhloToVersion.cpp"
UNREAD = {
    "a writer of another form": (
        _replaced(BYTECODE, "writer.writeOwnedString(attr.getValue());", "for (auto c : attr) writer.writeByte(c);"),
        (BYTECODE, "a known form of writer in write(TextV1Attr, ...)", "the code and the fields of string_v1"),
    ),
    "no codes": (
        _replaced(BYTECODE, "enum TypeCode", "enum Codes"),
        (BYTECODE, "enum TypeCode { kNAME = #, ... }", "the codes of every Type"),
    ),
    "a life that is computed": (
        _replaced(OPS, '"shaped_v1", "0.9.0"', '"shaped_v1", "firstVersion()"'),
        (OPS, "getMinVersion() { return Version(#, #, #); }", "the first version of shaped_v1"),
    ),
    "no pattern for a step": (
        _replaced(CPP, "replaceOpWithNewOp<PullOpV2>", "create<PullOpV2>"),
        (CPP, "a pattern from PullOpV1 to PullOpV2 that makes a value for knot", "the default of knot in pull_v2"),
    ),
    "a condition of another form": (
        _replaced("stablehlo/dialect/VhloOps.cpp", "if (isa<vhlo::FibreV1Type>(type))", "if (isSoft(type))"),
        ("stablehlo/dialect/VhloOps.cpp", "a known form of condition", "what shove_v1 does not allow before 0.12.0"),
    ),
    "a constraint without a version": (
        _replaced("stablehlo/dialect/VhloOps.cpp", "targetVersion < Version(0, 12, 0) &&", "isOld(targetVersion) &&"),
        ("stablehlo/dialect/VhloOps.cpp", "targetVersion < Version(#, #, #)", "what PushOpV2 does not allow"),
    ),
    "no version log": (
        _replaced("stablehlo/dialect/VhloDialect.td", "Version log:", "History:"),
        ("stablehlo/dialect/VhloDialect.td", "Version log: with lines", "which versions there are"),
    ),
    "no bytecode versions": (
        _replaced("stablehlo/dialect/Version.cpp", "getBytecodeVersion", "bytecodeVersion"),
        ("stablehlo/dialect/Version.cpp", "getBytecodeVersion() with lines", "bytecode"),
    ),
    "no minimum": (
        _replaced("stablehlo/dialect/Version.h", "getMinimumVersion", "oldest"),
        ("stablehlo/dialect/Version.h", "getMinimumVersion()", "the oldest version"),
    ),
}


@needs_tablegen
@pytest.mark.parametrize("what", UNREAD)
def test_a_pattern_that_finds_nothing_says_so(what: str, specs: Path, fork: Path) -> None:
    damage, (place, expected, unknown) = UNREAD[what]
    damage(fork)
    survey = survey_checkout(fork)
    found = [each for each in survey.unread if each.expected.startswith(expected)]
    assert found, survey.unread
    assert found[0].place.startswith(place)
    assert found[0].unknown.startswith(unknown)
    # Nothing is taken for absent that could not be read, and what can be drafted is.
    comparison = compare(load_specification(specs), survey)
    assert not [each for each in comparison.differences if each.action == "extra"]
    plan = draft(load_specification(specs), survey, comparison)
    assert any("look up: " in each.what for each in plan.remaining)
    write_edits(plan.edits)
    assert lint(load_specification(specs)) == ()


def _removed(file: str) -> Callable[[Path], None]:
    return lambda fork: (fork / file).unlink()


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "no checkout": (_removed(OPS), "is no checkout of StableHLO: it has no"),
    "a file is missing": (_removed(BYTECODE), "VhloBytecode.cpp is missing"),
    "a broken record": (_replaced(OPS, "def VHLO_FibreV1 :", "def VHLO_FibreV1 ;"), "llvm-tblgen refuses the files of"),
    "a wrong name": (_replaced(OPS, '"fibre_v1"', '"fibre\\"]\\n_v1"'), "is no name with a version, as in abs_v1"),
    "no version in a name": (_replaced(OPS, '"push_v2"', '"push"'), "'push' is no name with a version"),
    "a name twice": (_replaced(OPS, '"shove_v1"', '"push_v2"'), "push_v2"),
    "no current version": (
        _replaced("stablehlo/dialect/Version.h", "getCurrentVersion() {", "now() {"),
        "has no getCurrentVersion()",
    ),
    "another dialect": (
        _replaced("stablehlo/dialect/VhloDialect.td", 'name = "vhlo"', 'name = "other"'),
        "defines no op of the dialect vhlo",
    ),
    "an endless include": (
        _replaced(OPS, 'include "mlir/IR/EnumAttr.td"', 'include "nowhere.td"'),
        "refuses the files",
    ),
}


@needs_tablegen
@pytest.mark.parametrize("what", REFUSED)
def test_a_checkout_that_is_none(what: str, fork: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage, expected = REFUSED[what]
    damage(fork)
    assert main(["spec", "import", str(fork)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("vhlo: ")
    assert expected in said.err
    assert "Traceback" not in said.err


@needs_tablegen
@pytest.mark.parametrize("file", [BYTECODE, CPP, "stablehlo/dialect/VhloOps.cpp", "stablehlo/dialect/Version.cpp"])
@pytest.mark.parametrize(
    "bomb",
    [
        *("/*", '"\\', "{", "(", "void ForkBytecode::write(BooleanV1Attr attr, DialectBytecodeWriter& w) const {"),
        "struct A : public OpRewritePattern<A> { replaceOpWithNewOp<B>(",
        *("LogicalResult a(Operation* op, Version v) {", "LogicalResult A::validateConstraint(Operation* op) {"),
        "if (*this < Version(1",
    ],
)
def test_no_pattern_takes_long(file: str, bomb: str, fork: Path) -> None:
    text = (fork / file).read_text()
    (fork / file).write_text(text + "\n" + bomb * ((300_000 - len(text)) // len(bomb)))
    # The time of this process, which is the same beside others.
    began = time.process_time()
    survey_checkout(fork)
    assert time.process_time() - began < 20


@needs_tablegen
@pytest.mark.parametrize(
    ("bomb", "expected"),
    [
        ("foreach i = !range(0, 1000000000) in { def X#i; }", "out of memory"),
        ("class R<int n> { int x = !if(!eq(n, 0), 0, R<!sub(n, 1)>.x); }\ndef r : R<100000>;", "it crashed"),
        ('include "stablehlo/dialect/VhloOps.td"', "refuses the files"),
    ],
    ids=["memory", "stack", "itself"],
)
def test_a_program_that_tablegen_does_not_survive(bomb: str, expected: str, fork: Path) -> None:
    # Outside of the guard, so that a file that includes itself does so without end.
    (fork / OPS).write_text(f"{(fork / OPS).read_text()}\n{bomb}\n")
    with pytest.raises(InvalidSpecificationError, match=expected):
        survey_checkout(fork)


@needs_tablegen
def test_damaged_checkouts_are_read_or_refused(specs: Path, fork: Path) -> None:
    random, present = Random(25), load_specification(specs)
    files = sorted(path for path in fork.rglob("*") if path.is_file())
    ended = dict.fromkeys(("drafted", "refused"), 0)
    for _ in range(80):
        file = random.choice(files)
        whole = file.read_text()
        first, last = sorted(random.randrange(len(whole)) for _ in range(2))
        inserted = random.choice(["", "{", "}", '"', "/*", ";", "\0", "99999999999999", whole[first : first + 40]])
        file.write_text(whole[:first] + inserted + whole[min(last, first + random.randrange(60)) :])
        try:
            survey = survey_checkout(fork)
            draft(present, survey, compare(present, survey))
            ended["drafted"] += 1
        except InvalidSpecificationError:
            ended["refused"] += 1
        file.write_text(whole)
    assert all(ended.values()), ended


def test_a_checkout_that_is_no_text_is_refused(fork: Path, tmp_path: Path) -> None:
    (fork / "stablehlo/dialect/Version.h").write_bytes(bytes(range(256)) * 64)
    with pytest.raises(InvalidSpecificationError, match="has no getCurrentVersion"):
        survey_checkout(fork)
    (fork / "stablehlo/dialect/Version.h").unlink()
    (fork / "stablehlo/dialect/Version.h").mkdir()
    with pytest.raises(InvalidSpecificationError, match=r"Version\.h is missing"):
        survey_checkout(fork)
    with pytest.raises(InvalidSpecificationError, match="is no checkout"):
        survey_checkout(tmp_path / "nowhere")


def test_a_program_that_is_missing_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["spec", "import", str(FORK)]) == 2
    assert "there is no llvm-tblgen: install LLVM's TableGen" in capsys.readouterr().err
    assert main(["spec", "import", str(FORK), "--tblgen", "nothing"]) == 2
    assert "nothing is no program: install LLVM's TableGen" in capsys.readouterr().err
    assert main(["spec", "import", str(FORK), "--mlir-include", str(tmp_path)]) == 2
    assert "has no mlir/IR/AttrTypeBase.td" in capsys.readouterr().err
    # A program without the files of MLIR beside it.
    (tmp_path / "llvm-tblgen").write_text("#!/bin/sh\n")
    (tmp_path / "llvm-tblgen").chmod(0o755)
    assert main(["spec", "import", str(FORK)]) == 2
    assert "of MLIR beside it: install" in capsys.readouterr().err
    # One that has them is found behind it.
    whole = tmp_path / "whole"
    (whole / "include/mlir/IR").mkdir(parents=True)
    (whole / "include/mlir/IR/AttrTypeBase.td").touch()
    shutil.copytree(tmp_path, whole / "bin", ignore=shutil.ignore_patterns("whole"))
    monkeypatch.setenv("PATH", os.pathsep.join((str(tmp_path), str(whole / "bin"))))
    assert find_tablegen() == TableGen(whole / "bin/llvm-tblgen", whole / "include")


@needs_tablegen
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 0", "wrote no records of"),
        ("echo '{' > $last", "wrote no JSON"),
        ("echo '[1]' > $last", "wrote no records: expected an object"),
        ("echo 'x: error: no' >&2; exit 1", "llvm-tblgen refuses the files of"),
        ("""echo '{"!instanceof": {"Op": ["a"]}, "a": {"opDialect": 1}}' > $last""", "llvm-tblgen wrote no record 1"),
        ("""echo '{"!instanceof": {"Op": ["a"]}, "a": {}}' > $last""", "has not the form that MLIR gives it"),
        ("""echo '{"!instanceof": {}}' > $last""", "defines no op of the dialect vhlo"),
    ],
)
def test_a_program_that_is_another(script: str, expected: str, tmp_path: Path) -> None:
    installed = find_tablegen()
    program = tmp_path / "tblgen"
    program.write_text(f"#!/bin/bash\nlast=${{@: -1}}\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(InvalidSpecificationError, match=expected):
        survey_checkout(FORK, TableGen(program, installed.include))


# The command


@needs_tablegen
def test_command(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spec", "import", str(FORK), "--specs", str(specs)]) == 1
    said = capsys.readouterr().out
    assert "and 0.10.0 here: 14 differences" in said
    assert "  + fibre_v1 (0.12.0 to current): only there [stablehlo/dialect/VhloOps.td:" in said
    assert main(["spec", "import", str(FORK), "--specs", str(specs), "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert schema_problems("spec import", report) == []
    assert len(report["differences"]) == 14
    assert (report["version"], report["specification"], report["unread"]) == ("0.12.0", "0.10.0", [])
    assert main(["spec", "import", str(FORK), "--specs", str(specs), "--write"]) == 1
    said = capsys.readouterr().out
    assert f"wrote {specs}/vhlo/ops/imported.toml" in said
    assert "remaining steps:" in said
    assert main(["spec", "import", str(FORK), "--specs", str(specs)]) == 0
    assert "and 0.12.0 here: no difference" in capsys.readouterr().out
    assert main(["spec", "lint", "--specs", str(specs)]) == 0
    capsys.readouterr()
    assert main(["spec", "import", str(FORK), "--specs", str(specs), "--write"]) == 0
    assert capsys.readouterr().out.endswith("no difference\n\nnothing is missing that can be drafted\n")


@needs_tablegen
def test_a_specification_with_violations_is_not_written(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(specs / "vhlo/ops/moves.toml", "", 'min = "0.9.0"', 'min = "0.8.0"')
    before = {path: path.read_bytes() for path in specs.rglob("*.toml")}
    assert main(["spec", "import", str(FORK), "--specs", str(specs), "--write"]) == 2
    assert "the specification has violations; fix these first" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in specs.rglob("*.toml")} == before


# The real one

STABLEHLO = os.environ.get("VHLO_TOOLS_STABLEHLO")


@needs_tablegen
@pytest.mark.skipif(STABLEHLO is None, reason="VHLO_TOOLS_STABLEHLO names no checkout of openxla/stablehlo")
def test_a_checkout_of_stablehlo_says_what_we_say() -> None:
    survey = survey_checkout(Path(str(STABLEHLO)))
    assert survey.unread == ()
    found = compare(known_specification(), survey).differences
    # Found by probing: no file of upstream's says them.
    assert {each.name for each in found} <= {"convolution_v1 before 1.20.0", "dynamic_conv_v2 before 1.20.0"}


@needs_tablegen
@pytest.mark.skipif(STABLEHLO is None, reason="VHLO_TOOLS_STABLEHLO names no checkout of openxla/stablehlo")
def test_the_last_versions_are_drafted_from_a_checkout(tmp_path: Path) -> None:
    survey = survey_checkout(Path(str(STABLEHLO)))
    specs = cut(OURS, Version("1.11.0"), tmp_path / "specs")
    plan = draft(load_specification(specs), survey, compare(load_specification(specs), survey))
    write_edits(plan.edits)
    assert compare(load_specification(specs), survey).differences == ()
