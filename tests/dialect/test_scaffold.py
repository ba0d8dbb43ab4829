"""New versions: scaffolded in a copy of our data, linted, and their tests run."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
from specs_folder import OURS, copy_of, edit

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.dialect import known_ops
from vhlo_tools.dialect.lint import lint
from vhlo_tools.dialect.scaffold import NewAttribute, edits_for
from vhlo_tools.dialect.specification import known_specification, load_specification

pytestmark = pytest.mark.one_python

NEWEST = known_specification().newest
NEXT, AFTER_NEXT = (vt.Version(f"{NEWEST.major}.{NEWEST.minor + more}.0") for more in (1, 2))
(LAST,) = (op.versions[-1] for op in known_ops() if op.name == "tanh")
TANH = ("--op", "tanh", "--attribute", "new_attr", "--default", "default_result_accuracy")


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    return copy_of(OURS, tmp_path)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def new_version(specs: Path, *arguments: str, version: str = str(NEXT)) -> int:
    return main(["spec", "new-version", "--version", version, *arguments, "--specs", str(specs)])


def pytest_of(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_new_version_end_to_end(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(specs)
    (specs.parent / "tests" / "programs" / "features").mkdir(parents=True)
    assert new_version(specs, *TANH) == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["changed", "changed", "changed", "wrote"]
    assert "put a program that has it under tests/programs/features, as tanh_new_attr.mlir" in err

    scaffolded = load_specification(specs)
    assert lint(scaffolded) == lint(scaffolded, str(OURS)) == ()
    op = scaffolded.op("tanh")
    assert op is not None
    assert [(v.min, v.max) for v in op.versions[-2:]] == [(LAST.min, NEWEST), (NEXT, None)]
    assert op.versions[-1].attributes == tuple(sorted((*LAST.attributes, "new_attr")))
    assert [version.version for version in scaffolded.versions][-1] == NEXT
    for file, schema in (
        ("versions.toml", "versions"),
        ("vhlo/features.toml", "features"),
        ("vhlo/ops/elementwise_unary.toml", "ops"),
    ):
        rules = json.loads((specs / "schemas" / f"{schema}.schema.json").read_text())
        jsonschema.validate(json.loads(json.dumps(tomllib.loads((specs / file).read_text()), default=str)), rules)

    # Every line that was there is there still, in its order.
    for name, data in before.items():
        lines = iter((specs / name).read_text().splitlines())
        assert all(line in lines for line in data.decode().splitlines()), name

    passed = pytest_of(specs / "tests")
    assert (passed.returncode, "2 passed" in passed.stdout) == (0, True), passed.stdout

    # The tests are of use: they fail when the step is another one.
    edit(
        specs / "vhlo" / "ops" / "elementwise_unary.toml",
        'feature = "tanh_new_attr"',
        "default_result_accuracy",
        "false",
    )
    failed = pytest_of(specs / "tests")
    assert (failed.returncode, "1 failed, 1 passed" in failed.stdout) == (1, True), failed.stdout


# One of each family, and those that are written in another way: a name with dashes, a step with a table of its own.
GOING_ON = [op for op in known_ops() if op.versions[-1].max is None]
SOME = {*{op.family: op.name for op in GOING_ON}.values(), "cross-replica-sum", "dot_general"}


@pytest.mark.parametrize("name", sorted(SOME))
def test_ops_of_every_family_can_get_an_attribute(name: str) -> None:
    edits = edits_for(known_specification(), NEXT, NewAttribute(name, "zz_new", "false"))
    assert len(edits) == 4
    # Comments between ops stay with the op that they are about.
    assert "# The one name with dashes.\n[[op]]" in (OURS / "vhlo/ops/collectives.toml").read_text()
    family = edits[1]
    if family.path.name == "collectives.toml":
        assert "# The one name with dashes.\n[[op]]" in family.after


def test_comments_inside_stay(tmp_path: Path) -> None:
    specs = copy_of(OURS.parent / "examples" / "specs" / "my_op", tmp_path)
    family = specs / "vhlo" / "ops" / "my_family.toml"
    family.write_text(family.read_text().rstrip() + "  # why")
    arguments = ("--op", "my_op", "--attribute", "other", "--default", "false")
    assert new_version(specs, *arguments, version="0.12.0") == 0
    text = family.read_text()
    assert '# No max: it is current.\n[[op.version]]\nnumber = 2\nmin = "0.11.0"\nmax = "0.11.0"\n' in text
    assert 'added = { attr = "false" }  # why\n\n[[op.step]]\nbetween = [2, 3]\n' in text
    assert pytest_of(specs / "tests").returncode == 0


def test_dry_run_writes_nothing(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(specs)
    assert new_version(specs, *TANH, "--dry-run") == 0
    assert contents(specs) == before
    out = capsys.readouterr().out
    for line in (
        f'+version = "{NEXT}"',
        f'+max = "{NEWEST}"',
        f"+between = [{LAST.number}, {LAST.number + 1}]",
        '+id = "tanh_new_attr"',
        "--- /dev/null",
    ):
        assert f"\n{line}\n" in out


def test_a_version_without_a_change_of_ops(specs: Path) -> None:
    assert new_version(specs, "--bytecode", "7") == 0
    entry = load_specification(specs).versions[-1]
    assert (entry.bytecode, entry.brought) == (7, "MLIR bytecode moves from version 6 to 7.")
    assert lint(load_specification(specs)) == ()
    assert new_version(specs, "--brought", "Nothing but a number.", version=str(AFTER_NEXT)) == 0
    assert lint(load_specification(specs)) == ()


@pytest.mark.parametrize(
    ("version", "arguments", "message"),
    [
        (str(NEWEST), TANH, f"{NEWEST} is there already; the newest is {NEWEST}"),
        ("1.21.5", TANH, "1.21.5 cannot come next: expected 1.23.0 or 2.0.0"),
        (f"{NEXT.major}.{NEXT.minor}.1", TANH, ".1 cannot come next"),
        ("1.23", TANH, "'1.23' is not a StableHLO version"),
        (str(NEXT), TANH[:4], "--op, --attribute and --default go together"),
        (str(NEXT), ("--op", "tanhh", *TANH[2:]), "there is no op tanhh; did you mean tanh"),
        (str(NEXT), (*TANH[:5], "no_such"), "there is no default no_such in vhlo/defaults.toml: add it there, or take"),
        (str(NEXT), ("--op", "trace", *TANH[2:]), "trace_v1 has ended with 0.19.0"),
        (str(NEXT), (*TANH[:3], "result_accuracy", *TANH[4:]), "has the attribute result_accuracy already"),
        (str(NEXT), (*TANH[:3], "My attr", *TANH[4:]), "'My attr' is no name for an attribute"),
        (str(NEXT), (*TANH[:5], "zero_convolution_padding"), "a downgrade cannot look for it"),
        (str(NEXT), ("--bytecode", "5"), "the newest version writes MLIR bytecode 5, not 6"),
    ],
)
def test_refusals(
    version: str, arguments: tuple[str, ...], message: str, specs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(specs)
    assert new_version(specs, *arguments, version=version) == 2
    assert message in capsys.readouterr().err
    assert contents(specs) == before


def test_refused_while_there_are_violations(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(specs / "vhlo" / "types.toml", 'name = "i2_v1"', "code = 31", "code = 1")
    before = contents(specs)
    assert new_version(specs, *TANH) == 1
    out, err = capsys.readouterr()
    assert "code-unique" in out
    assert "mend these first" in err
    assert contents(specs) == before
    with pytest.raises(vt.InvalidSpecificationError, match="mend these first"):
        edits_for(load_specification(specs), NEXT)


def test_any_sentence_may_be_brought(specs: Path) -> None:
    sentence = 'quote " backslash \\ é \U0001f600 \x7f \n'
    assert new_version(specs, "--brought", sentence) == 0
    assert load_specification(specs).versions[-1].brought == sentence


def test_bytecode_zero_is_not_taken_for_none(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new_version(specs, "--bytecode", "0") == 2
    assert "bytecode-newest: the newest version writes MLIR bytecode 0" in capsys.readouterr().err


def test_an_existing_test_stays(specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (specs / "tests").mkdir()
    (specs / "tests" / f"test_tanh_v{LAST.number + 1}.py").write_text("mine")
    assert new_version(specs, *TANH) == 2
    assert f"test_tanh_v{LAST.number + 1}.py exists" in capsys.readouterr().err
    assert new_version(specs, *TANH, "--tests", str(specs.parent / "elsewhere")) == 0
    assert pytest_of(specs.parent / "elsewhere").returncode == 0
