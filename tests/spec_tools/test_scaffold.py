"""New versions: scaffolded in a copy of our data, linted, and their tests run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.specs_folder import OURS, checkout_of, copy_of, edit, run_in_checkout

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.spec import known_defaults, known_features, known_ops
from vhlo_tools.spec.specification import Specification, known_specification, load_specification
from vhlo_tools.spec_tools import Edit, NewAttribute, NewOp, parse_attribute, parse_op, plan_version, write_edits
from vhlo_tools.spec_tools.linting import lint

NEWEST = known_specification().newest
NEXT, AFTER_NEXT = (vt.Version(f"{NEWEST.major}.{NEWEST.minor + more}.0") for more in (1, 2))
PATCH, NEXT_MAJOR = vt.Version(f"{NEXT.major}.{NEXT.minor}.1"), vt.Version(f"{NEXT.major + 1}.0.0")
BYTECODE = known_specification().versions[-1].bytecode
RELEASED = max(map(vt.Version, json.loads((OURS / "released.json").read_text())["version"]))
(LAST,) = (op.versions[-1] for op in known_ops() if op.name == "tanh")
NEW_TANH = f"tanh_v{LAST.number + 1}"
TANH = ("--attribute", "tanh.new_attr=default_result_accuracy")
UNARY, FEATURES = "vhlo/ops/elementwise_unary.toml", "vhlo/features.toml"

#: One of everything.
EVERYTHING = (
    *("--op", "elementwise_unary/zz_op(operand, others*) -> (result) {b, a} [body, branches*]"),
    *("--op", "zz_family/zz_sketch"),
    *TANH,
    *("--attribute", "tanh.other_attr=-3", "--attribute", "cross-replica-sum.zz=zz_enum.SECOND"),
    *("--type", "f5E1M3", "--type", "zz_type(inner: type, sizes: svarint[], note: string, kind: enum precision_v1)"),
    *("--attribute-kind", "zz_kind(inner: attribute, maybe: attribute?, data: blob, number: f64)"),
    *("--enum-case", "comparison_type.ZZ_CASE", "--enum-case", "zz_enum.FIRST", "--enum-case", "zz_enum.SECOND"),
)
#: The files of tests that come of that.
TESTS = {
    *("zz_op_v1", "zz_sketch_v1", f"{NEW_TANH}_new_attr", f"{NEW_TANH}_other_attr", "cross_replica_sum_v2_zz"),
    *("f5e1m3_v1_type", "zz_type_v1_type", "zz_kind_v1_attribute", "zz_enum_v1_attribute"),
    *("comparison_type_v1_zz_case", "zz_enum_v1_first", "zz_enum_v1_second"),
}


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    return copy_of(OURS, tmp_path)


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with one of everything."""
    checkout = checkout_of(tmp_path_factory.mktemp("checkout"))
    command = ("-m", "vhlo_tools.cli.main", "spec", "new-version", str(NEXT), *EVERYTHING)
    made = run_in_checkout(checkout, *command)
    assert (made.returncode, made.stderr) == (0, "")
    return checkout


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def new_version(specs: Path, *arguments: str, version: str = str(NEXT)) -> int:
    return main(["spec", "new-version", version, *arguments, "--specs", str(specs)])


def pytest_of(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    # The tests need no plugin, each of which takes time to import.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def generated() -> list[str]:
    return [f"tests/spec/test_{name}.py" for name in sorted(TESTS)]


def pytest_in(checkout: Path, *files: str) -> subprocess.CompletedProcess[str]:
    return run_in_checkout(checkout, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)


# All of it


def test_everything_is_there_and_passes_the_lint(extended: Path) -> None:
    folder = extended / "dialect_specs"
    scaffolded = load_specification(folder)
    assert lint(scaffolded) == lint(scaffolded, str(OURS)) == ()
    assert scaffolded.newest == NEXT
    assert scaffolded.versions[-1].brought.startswith("The op `zz_op`; the op `zz_sketch`; `new_attr` on `tanh`; ")
    check_ops(scaffolded)
    codes = [encoding.code for each in scaffolded.types for encoding in each.encodings]
    assert codes == list(range(len(codes)))
    number, zz_type = scaffolded.types[-2:]
    assert (number.name, number.bits, number.min) == ("f5E1M3_v1", 5, NEXT)
    assert (zz_type.bits, len(zz_type.encodings[0].fields)) == (None, 4)
    enum = scaffolded.enum("zz_enum_v1")
    assert enum is not None
    assert [(case.name, case.value, case.min) for case in enum.cases] == [("FIRST", 0, NEXT), ("SECOND", 1, NEXT)]
    old = scaffolded.enum("comparison_type_v1")
    assert old is not None
    values = [case.value for case in old.cases]
    assert (old.cases[-1].name, old.cases[-1].min, values) == ("ZZ_CASE", NEXT, list(range(len(values))))

    # Every line that was there is there still, in its order.
    for name, data in contents(OURS).items():
        lines = iter((folder / name).read_text().splitlines())
        assert all(line in lines for line in data.decode().splitlines()), name
    # The head of a file stays at its head.
    assert (folder / "vhlo" / "defaults.toml").read_text().startswith("# The values that steps")


def check_ops(scaffolded: Specification) -> None:
    op = scaffolded.op("tanh")
    assert op is not None
    assert [(v.min, v.max) for v in op.versions[-2:]] == [(LAST.min, NEWEST), (NEXT, None)]
    assert op.versions[-1].attributes == tuple(sorted((*LAST.attributes, "new_attr", "other_attr")))
    assert op.steps[-1].added == {"new_attr": "default_result_accuracy", "other_attr": "i64_minus_3"}
    first = scaffolded.op_versions["zz_op_v1"]
    slots = (first.operands, first.results, first.regions)
    assert [" ".join(map(str, each)) for each in slots] == ["operand others*", "result", "body branches*"]
    assert first.attributes == ("a", "b")
    sketch = scaffolded.op("zz_sketch")
    assert sketch is not None
    assert (sketch.family, str(sketch.versions[0].operands[0])) == ("zz_family", "operand")


def test_features_and_defaults_are_created(extended: Path) -> None:
    scaffolded = load_specification(extended / "dialect_specs")
    known = {feature.id for feature in known_features()}
    brought = {f.id: (f.kind, f.introduced, *f.ops, *f.names) for f in scaffolded.features if f.id not in known}
    assert brought == {
        "zz_op": ("op", NEXT, "zz_op"),
        "zz_sketch": ("op", NEXT, "zz_sketch"),
        # A step has one feature, whatever it adds.
        "tanh_new_attr": ("attribute", NEXT, "tanh"),
        "cross_replica_sum_zz": ("attribute", NEXT, "cross-replica-sum"),
        "f5E1M3": ("type", NEXT, "f5E1M3_v1"),
        "zz_type": ("type", NEXT, "zz_type_v1"),
        "zz_kind": ("attribute", NEXT, "zz_kind_v1"),
        "comparison_type_zz_case": ("attribute", NEXT, "comparison_type_v1"),
        # A new enum came with its cases.
        "zz_enum": ("attribute", NEXT, "zz_enum_v1"),
    }
    # That of the first of several parts, until it is described.
    assert {f.id: f.remedy for f in scaffolded.features}["tanh_new_attr"] == "leave new_attr out"
    known = {default.id for default in known_defaults()}
    assert {default.id: default.text for default in scaffolded.defaults if default.id not in known} == {
        "i64_minus_3": "#vhlo.integer_v1<-3 : i64>",
        "zz_enum_second": "#vhlo<zz_enum_v1 SECOND>",
    }


def test_generated_tests_pass(extended: Path) -> None:
    written = {path.stem for path in (extended / "tests" / "spec").iterdir()}
    assert written - {path.stem for path in (OURS.parent / "tests" / "spec").iterdir()} == {
        f"test_{name}" for name in TESTS
    }
    passed = pytest_in(extended, *generated())
    # Of attributes there are two more: what the default is, and what is not.
    assert (passed.returncode, passed.stdout.splitlines()[-1].split(" in ")[0]) == (0, "39 passed"), passed.stdout


def test_generated_tests_are_of_the_style_of_the_others(extended: Path) -> None:
    for command in (["check"], ["format", "--check"]):
        ruff = run_in_checkout(extended, "-m", "ruff", *command, "--no-cache", *generated())
        assert ruff.returncode == 0, ruff.stdout


#: For each generated test what is damaged, and how.
DAMAGE = {
    "zz_op_v1": (UNARY, 'name = "zz_op"', str(NEXT), str(NEWEST)),
    "zz_sketch_v1": (FEATURES, "", 'id = "zz_sketch"', 'id = "zz_other"'),
    f"{NEW_TANH}_new_attr": (UNARY, 'feature = "tanh_new_attr"', "default_result_accuracy", "false"),
    f"{NEW_TANH}_other_attr": (UNARY, 'feature = "tanh_new_attr"', '"i64_minus_3"', '"empty_array"'),
    "cross_replica_sum_v2_zz": ("vhlo/ops/collectives.toml", "", 'feature = "cross_replica_sum_zz"', 'feature = "tan"'),
    "f5e1m3_v1_type": ("vhlo/types.toml", '"f5E1M3_v1"', str(NEXT), str(NEWEST)),
    "zz_type_v1_type": (FEATURES, 'id = "zz_type"', '"zz_type_v1"', '"f4E2M1FN_v1"'),
    "zz_kind_v1_attribute": ("vhlo/attributes.toml", '"zz_kind_v1"', str(NEXT), str(NEWEST)),
    "zz_enum_v1_attribute": (FEATURES, 'id = "zz_enum"', str(NEXT), str(NEWEST)),
    "comparison_type_v1_zz_case": ("vhlo/enums.toml", '"ZZ_CASE"', str(NEXT), str(NEWEST)),
    "zz_enum_v1_first": ("vhlo/enums.toml", "", '"FIRST"', '"FOREMOST"'),
    "zz_enum_v1_second": ("vhlo/enums.toml", "", '"SECOND"', '"SECONDARY"'),
}


def test_generated_tests_fail_on_wrong_data(extended: Path, tmp_path: Path) -> None:
    checkout = shutil.copytree(extended, tmp_path / "checkout", symlinks=True)
    for file, after, old, new in DAMAGE.values():
        edit(checkout / "dialect_specs" / file, after, old, new)
    run = pytest_in(checkout, "-rfE", *generated())
    failed = {
        line.split("test_", 2)[1].partition(".py")[0]
        for line in run.stdout.splitlines()
        if line[:6] in ("FAILED", "ERROR ")
    }
    assert failed == DAMAGE.keys() == TESTS, run.stdout


def test_the_same_version_brings_more(extended: Path, tmp_path: Path) -> None:
    """As long as it is not released."""
    checkout = shutil.copytree(extended, tmp_path / "checkout", symlinks=True)
    command = ("-m", "vhlo_tools.cli.main", "spec", "new-version", str(NEXT))
    more = run_in_checkout(
        checkout,
        *command,
        *("--attribute", "tanh.third=[]", "--attribute", "cbrt.zz=false", "--enum-case", "zz_enum.THIRD"),
    )
    assert (more.returncode, more.stderr) == (0, "")
    shared = run_in_checkout(
        checkout, *command, "--feature", "f5E1M3", "--type", "f5E2M2", "--op", "zz_family/zz_another"
    )
    assert (shared.returncode, shared.stderr) == (0, "")
    specs = load_specification(checkout / "dialect_specs")
    assert [version.version for version in specs.versions[-2:]] == [NEWEST, NEXT]
    assert specs.versions[-1].brought.endswith(
        "`zz` on `cbrt`; the case `THIRD` of `zz_enum`; the op `zz_another`; the type `f5E2M2`."
    )
    tanh = specs.op("tanh")
    assert tanh is not None
    assert tanh.steps[-1].added["third"] == "empty_array"
    assert [version.name for version in tanh.versions][-1] == NEW_TANH
    enum, feature = specs.enum("zz_enum_v1"), specs.feature("f5E1M3")
    assert enum is not None
    assert feature is not None
    assert [case.value for case in enum.cases] == [0, 1, 2]
    assert (feature.ops, feature.names) == (("zz_another",), ("f5E1M3_v1", "f5E2M2_v1"))
    passed = pytest_in(checkout, *generated(), *(f"tests/spec/{path.name}" for path in new_tests(checkout)))
    assert passed.returncode == 0, passed.stdout

    assert run_in_checkout(checkout, *command[:-2], "lint", "--write-baseline").returncode == 0
    late = run_in_checkout(checkout, *command, "--type", "f5E3M1")
    assert (late.returncode, late.stderr) == (2, f"vhlo: {NEXT} already exists and is released; the newest is {NEXT}\n")


def new_tests(checkout: Path) -> list[Path]:
    known = {path.name for path in (OURS.parent / "tests" / "spec").iterdir()}
    return [
        path
        for path in (checkout / "tests" / "spec").glob("test_*.py")
        if path.name not in known and path.stem.removeprefix("test_") not in TESTS
    ]


# What is left


def test_what_is_left_says_where(
    specs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(specs.parent)
    (specs.parent / "tests" / "programs" / "features").mkdir(parents=True)
    assert new_version(Path("specs"), *EVERYTHING, "--attribute", "abs.zz=my_default") == 0
    out = capsys.readouterr().out
    files, _, left = out.partition("remaining steps:\n")
    assert "changed specs/versions.toml\n" in files
    assert "wrote specs/vhlo/ops/zz_family.toml\n" in files
    found = {}
    for line in left.splitlines():
        place, what = line.strip().split(": ", 1)
        path, _, number = place.rpartition(":")
        found[what] = Path(path).read_text().splitlines()[int(number) - 1]
    for what, line in {
        "correct the date of the version, and its source in dated_by": "date = ",
        "describe the changes of the version in a sentence": "brought = ",
        "describe what the ops of this family have in common": "# Ops of the family zz_family.",
        "correct operands and results of zz_sketch, and add attributes and regions": 'operands = ["operand"]',
        "check that operands, results, attributes and regions of zz_op are as in VHLO": 'operands = ["operand", "oth',
        f"check that {NEW_TANH} differs from {LAST.name} only in new_attr and other_attr": "operands = ",
        "check that values of f5E1M3_v1 have the width in its name": "bits = 5",
        "check that this is the code of zz_kind_v1 in the bytecode": "code = ",
        "check that this is the number of ZZ_CASE in the bytecode": '  { name = "ZZ_CASE", value = ',
        "correct the value in both forms: this one is a guess": "text = ",
        "summarize all of them in a few words": 'title = "new_attr of tanh and other_attr of tanh"',
        "describe how to avoid the op zz_op": 'remedy = "write zz_op in older ops"',
        "once a release has it, add a program with it: tests/programs/features/zz_op.mlir": 'id = "zz_op"',
        "put a value here that is meaningful for tanh": "    # Put a value here",
        "put an op here that uses it": "    # Put an op here",
        "put meaningful operands, results and attributes here": "    # Put meaningful operands, results",
        "once it is released: vhlo spec lint --write-baseline": f'    "{RELEASED}": {{',
    }.items():
        assert found[what].startswith(line), what
    assert found["once a release has it, add that release"] == (OURS / "releases.toml").read_text().splitlines()[-1]


def test_json_says_the_same(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new_version(specs, *TANH, "--dry-run", "--output-format", "json") == 0
    planned = json.loads(capsys.readouterr().out)
    assert new_version(specs, *TANH, "--output-format", "json") == 0
    written = json.loads(capsys.readouterr().out)
    assert (planned.pop("written"), written.pop("written")) == (False, True)
    assert planned == written
    assert (written["version"], written["files"][0]["path"]) == (str(NEXT), str(specs / "versions.toml"))
    assert {each["path"] for each in written["files"] if each["new"]} == {
        str(specs / "tests" / f"test_{NEW_TANH}_new_attr.py")
    }
    assert f'+version = "{NEXT}"' in written["files"][0]["diff"]
    assert {"path", "line", "what"} == set(written["remaining"][0])


def test_dry_run_writes_nothing(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(specs)
    assert new_version(specs, *TANH, "--dry-run") == 0
    assert contents(specs) == before
    out, err = capsys.readouterr()
    for line in (
        f'+version = "{NEXT}"',
        f'+max = "{NEWEST}"',
        f"+between = [{LAST.number}, {LAST.number + 1}]",
        '+id = "tanh_new_attr"',
        "--- /dev/null",
    ):
        assert f"\n{line}\n" in out
    # What is on stdout is a patch.
    assert "remaining steps" not in out
    assert err.startswith("remaining steps:\n")
    subprocess.run(["patch", "-p0", "-d", "/"], input=out, text=True, check=True, capture_output=True)
    assert lint(load_specification(specs)) == ()
    assert contents(specs) != before


def test_all_files_are_written_or_none(specs: Path) -> None:
    before = contents(specs)
    plan = plan_version(load_specification(specs), NEXT, [NewOp("zz", "tuples"), parse_attribute("tanh.zz=false")])
    (specs / "file").write_text("no folder")
    with pytest.raises(OSError, match="file"):
        write_edits([*plan.edits, Edit(specs / "file" / "test.py", None, "")])
    (specs / "file").unlink()
    assert contents(specs) == before


# Forks


def test_a_fork_has_tests_without_bytes(specs: Path) -> None:
    """Its own folder is not what the package reads bytes by."""
    assert new_version(specs, *EVERYTHING) == 0
    assert lint(load_specification(specs)) == lint(load_specification(specs), str(OURS)) == ()
    assert {path.stem for path in (specs / "tests").iterdir()} == {f"test_{name}" for name in TESTS}
    assert not any("sample_artifact" in path.read_text() for path in (specs / "tests").iterdir())
    passed = pytest_of(specs / "tests")
    assert (passed.returncode, "15 passed" in passed.stdout) == (0, True), passed.stdout
    edit(specs / UNARY, 'feature = "tanh_new_attr"', "default_result_accuracy", "false")
    failed = pytest_of(specs / "tests")
    assert (failed.returncode, "1 failed, 14 passed" in failed.stdout) == (1, True), failed.stdout


def test_comments_inside_stay(tmp_path: Path) -> None:
    specs = copy_of(OURS.parent / "examples" / "specs" / "my_op", tmp_path)
    family = specs / "vhlo" / "ops" / "my_family.toml"
    family.write_text(family.read_text().rstrip() + "  # why")
    assert new_version(specs, "--attribute", "my_op.other=false", version="0.12.0") == 0
    text = family.read_text()
    assert '# No max: it is current.\n[[op.version]]\nnumber = 2\nmin = "0.11.0"\nmax = "0.11.0"\n' in text
    assert 'added = { attr = "false" }  # why\n\n[[op.step]]\nbetween = [2, 3]\n' in text
    assert pytest_of(specs / "tests").returncode == 0


def test_a_fork_of_few_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    specs = copy_of(OURS.parent / "examples" / "specs" / "my_op", tmp_path)
    assert new_version(specs, "--type", "mine", version="0.12.0") == 0
    # Its one op was another before.
    assert "write a test: no op of the specification can contain it" in capsys.readouterr().out
    loaded = load_specification(specs)
    assert [each.name for each in loaded.types] == ["mine_v1"]
    assert lint(loaded) == ()
    (specs / "released.json").unlink()
    assert new_version(specs, "--type", "other", version="0.12.0") == 2
    assert "perhaps released, because there is no released.json" in capsys.readouterr().err


# One of each family, and those that are written in another way: a name with dashes, a step with a table of its own.
GOING_ON = [op for op in known_ops() if op.versions[-1].max is None]
SOME = {*{op.family: op.name for op in GOING_ON}.values(), "cross-replica-sum", "dot_general"}


@pytest.mark.parametrize("name", sorted(SOME))
def test_ops_of_every_family_can_get_an_attribute(name: str) -> None:
    edits = plan_version(known_specification(), NEXT, [NewAttribute(name, "zz_new", "false")]).edits
    assert len(edits) == 4
    # Comments between ops stay with the op that they are about.
    assert "# The one name with dashes.\n[[op]]" in (OURS / "vhlo/ops/collectives.toml").read_text()
    family = edits[1]
    if family.path.name == "collectives.toml":
        assert "# The one name with dashes.\n[[op]]" in family.after


def test_a_version_without_a_change_of_ops(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new_version(specs, "--bytecode", str(BYTECODE + 1)) == 0
    assert f": check that artifacts in MLIR bytecode {BYTECODE + 1} are read and written" in capsys.readouterr().out
    entry = load_specification(specs).versions[-1]
    moved = f"MLIR bytecode moves from version {BYTECODE} to {BYTECODE + 1}."
    assert (entry.bytecode, entry.brought) == (BYTECODE + 1, moved)
    assert lint(load_specification(specs)) == ()
    assert new_version(specs, "--brought", "Nothing but a number.", version=str(AFTER_NEXT)) == 0
    assert lint(load_specification(specs)) == ()
    # It is not released, and may bring something yet.
    assert new_version(specs, "--bytecode", str(BYTECODE + 2), "--type", "zz", version=str(AFTER_NEXT)) == 0
    entry = load_specification(specs).versions[-1]
    moved = f"MLIR bytecode moves from version {BYTECODE + 1} to {BYTECODE + 2}"
    assert entry.brought == f"Nothing but a number; {moved}; the type `zz`."


# Refusals


@pytest.mark.parametrize(
    ("version", "arguments", "message"),
    [
        (RELEASED, TANH, f"{RELEASED} already exists and is released; the newest is {NEWEST}"),
        (PATCH, TANH, f"{PATCH} cannot be the next version: expected {NEXT} or {NEXT_MAJOR}"),
        (AFTER_NEXT, TANH, f"{AFTER_NEXT} cannot be the next version: expected {NEXT} or {NEXT_MAJOR}"),
        (f"{NEXT.major}.{NEXT.minor}", TANH, f"'{NEXT.major}.{NEXT.minor}' is not a StableHLO version"),
        (NEXT, ("--attribute", "tanhh.x=false"), "there is no op tanhh; did you mean tanh"),
        (NEXT, ("--attribute", "tanh.x=flase"), "there is no default flase; did you mean false?"),
        (NEXT, ("--attribute", "tanh.x=1.5"), "'1.5' is not a default: expected an id in vhlo/defaults.toml, or true"),
        (NEXT, ("--attribute", "tanh.x=precision.NOTHING"), "kind-unknown: precision_v1 has no case NOTHING"),
        (NEXT, ("--attribute", "trace.x=false"), "trace_v1 ended with 0.19.0"),
        (NEXT, ("--attribute", "tanh.result_accuracy=false"), "already has the attribute result_accuracy"),
        (NEXT, ("--attribute", "tanh.x=false", "--attribute", "tanh.x=true"), "already has the attribute x"),
        (
            NEXT,
            ("--attribute", "tanh.My attr=false"),
            "'tanh.My attr=false' is not an attribute of an op: expected OP.NAME=",
        ),
        (NEXT, ("--attribute", "tanh"), "'tanh' is not an attribute of an op: expected OP.NAME=DEFAULT"),
        (NEXT, ("--attribute", "tanh.x=zero_convolution_padding"), "a downgrade cannot match it"),
        (NEXT, (*TANH, "--feature", "tan"), "the feature tan already exists, of 1.4.0: give another id with --feature"),
        (NEXT, ("--op", "tanh"), "'tanh' is not an op: expected FAMILY/NAME"),
        (NEXT, ("--op", "elementwise_unary/tanh"), "the op tanh already exists; --attribute tanh.NAME=DEFAULT adds"),
        (NEXT, ("--op", "tuples/zz(a, a) -> b"), "name-unique: it names a 2 times"),
        (NEXT, ("--op", "tuples/zz(a -> b"), "'tuples/zz(a -> b' is not an op: expected FAMILY/NAME"),
        (NEXT, ("--type", "f32"), "the type f32_v1 already exists: add another version of it by hand"),
        (NEXT, ("--type", "f32_v2"), "the type f32_v1 already exists: add another version of it by hand"),
        (NEXT, ("--type", "f-32"), "'f-32' is not a valid type: expected NAME, or NAME(FIELD: KIND, ...)"),
        (NEXT, ("--type", "zz(a: b)"), "'a: b' is not a field: expected NAME: KIND, where KIND is varint"),
        (
            NEXT,
            ("--attribute-kind", "zz(a: enum nothing)"),
            "enum-unknown: the enum nothing of its field a does not exist",
        ),
        (NEXT, ("--enum-case", "precision.HIGHEST"), "precision_v1 already has a case HIGHEST"),
        (NEXT, ("--enum-case", "precision"), "'precision' is not a case: expected ENUM.CASE, as in precision.HIGHEST"),
        (NEXT, ("--bytecode", "5"), f"the newest version writes MLIR bytecode 5, not {BYTECODE}"),
        (NEXT, ("--bytecode", "0"), "bytecode-newest: the newest version writes MLIR bytecode 0"),
    ],
)
def test_refusals(
    version: object, arguments: tuple[str, ...], message: str, specs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(specs)
    assert new_version(specs, *arguments, version=str(version)) == 2
    assert message in capsys.readouterr().err
    assert contents(specs) == before


def test_a_new_op_has_attributes_without_defaults(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = f"zz is new in {NEXT}, so x needs no default: add it with"
    assert new_version(specs, "--op", "tuples/zz", "--attribute", "zz.x=false") == 2
    assert expected in capsys.readouterr().err
    assert new_version(specs, "--op", "tuples/zz") == 0
    assert new_version(specs, "--attribute", "zz.x=false") == 2
    assert expected in capsys.readouterr().err


def test_cases_of_a_new_enum_are_its_feature(specs: Path) -> None:
    assert new_version(specs, "--enum-case", "zz.ONE", "--feature", "first") == 0
    assert new_version(specs, "--enum-case", "zz.TWO", "--feature", "second") == 0
    loaded = load_specification(specs)
    assert [(each.id, each.names) for each in loaded.features if each.introduced == NEXT] == [("first", ("zz_v1",))]
    assert pytest_of(specs / "tests").returncode == 0


def test_another_feature_for_a_step_is_refused(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new_version(specs, *TANH) == 0
    assert new_version(specs, "--attribute", "tanh.other=false", "--feature", "another") == 2
    assert f"{NEW_TANH} has the feature tanh_new_attr, and cannot have another" in capsys.readouterr().err
    assert new_version(specs, "--enum-case", "precision.ZZ_LOW", "--feature", "low") == 0
    assert new_version(specs, "--enum-case", "precision.ZZ_LOWER", "--feature", "lower") == 2
    assert "feature-once: precision_v1 is also named by low" in capsys.readouterr().err
    assert new_version(specs, "--enum-case", "precision.ZZ_LOWER") == 0
    feature = load_specification(specs).feature("low")
    assert feature is not None
    assert feature.names == ("precision_v1",)


def test_refused_while_there_are_violations(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(specs / "vhlo" / "types.toml", 'name = "i2_v1"', "code = 31", "code = 1")
    before = contents(specs)
    assert new_version(specs, *TANH) == 1
    out, err = capsys.readouterr()
    assert "code-unique" in out
    assert "was not changed: fix the violations first" in err
    assert contents(specs) == before
    with pytest.raises(vt.InvalidSpecificationError, match="the specification has violations; fix these first"):
        plan_version(load_specification(specs), NEXT)


def test_any_sentence_may_be_brought(specs: Path) -> None:
    sentence = 'quote " backslash \\ é \U0001f600 \x7f \n'
    assert new_version(specs, "--brought", sentence) == 0
    assert load_specification(specs).versions[-1].brought == sentence


def test_an_existing_test_stays(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (specs / "tests").mkdir()
    (specs / "tests" / f"test_{NEW_TANH}_new_attr.py").write_text("mine")
    assert new_version(specs, *TANH) == 2
    assert f"test_{NEW_TANH}_new_attr.py already exists" in capsys.readouterr().err
    elsewhere = specs.parent / "elsewhere"
    assert new_version(specs, *TANH, "--tests", str(elsewhere)) == 0
    assert '.parent / "../specs")' in (elsewhere / f"test_{NEW_TANH}_new_attr.py").read_text()


@pytest.mark.parametrize(
    ("given", "operands", "results", "attributes", "regions"),
    [
        ("f/n", "operand", "result", "", ""),
        ("f/n {b, a}", "operand", "result", "a b", ""),
        ("f/n() -> ()", "", "", "", ""),
        ("f/n(a,b*)->c*", "a b*", "c*", "", ""),
        ("f/n (a) -> (c, d) {x} [r, s*] ", "a", "c d", "x", "r s*"),
        ("f/n-n [r]", "operand", "result", "", "r"),
    ],
)
def test_ops_as_they_are_given(given: str, operands: str, results: str, attributes: str, regions: str) -> None:
    op = parse_op(given)
    assert (op.family, op.name) == ("f", "n-n" if "-n" in given else "n")
    slots = [" ".join(map(str, each)) for each in (op.operands, op.results, op.attributes, op.regions)]
    assert slots == [operands, results, attributes, regions]
    assert op.is_sketch == ("(" not in given)
