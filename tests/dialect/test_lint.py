"""The lint: nothing to say of our data, and of each seeded violation exactly its own rule, on a copy of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest
from specs_folder import OURS, copy_of, edit, remove_table

import vhlo_tools as vt
from vhlo_tools.dialect.baseline import baseline_text
from vhlo_tools.dialect.lint import has_release, lint, write_release
from vhlo_tools.dialect.rules import RULES, Violation
from vhlo_tools.dialect.specification import known_specification, load_specification

UNARY, COLLECTIVES = "vhlo/ops/elementwise_unary.toml", "vhlo/ops/collectives.toml"
TYPES, FEATURES, ENUMS = "vhlo/types.toml", "vhlo/features.toml", "vhlo/enums.toml"
ATTRIBUTES, DEFAULTS, VERSIONS = "vhlo/attributes.toml", "vhlo/defaults.toml", "versions.toml"
NEWEST = known_specification().newest
NEXT = vt.Version(f"{NEWEST.major}.{NEWEST.minor + 1}.0")
TANH, ALL_GATHER, ALL_REDUCE = 'name = "tanh"', 'name = "all_gather"', 'name = "all_reduce"'
AT_THE_END = '[[version]]\nversion = "{}"\ndate = 2026-10-16\ndated_by = "commit"\nbytecode = {}\nbrought = "x"\n'


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    return copy_of(OURS, tmp_path)


def found(specs: Path, against: str | None = None) -> tuple[Violation, ...]:
    return lint(load_specification(specs), against)


def rules_and_text(violations: tuple[Violation, ...]) -> tuple[set[str], str]:
    return {violation.rule for violation in violations}, "\n".join(map(str, violations))


def test_our_data_violate_nothing() -> None:
    assert lint(known_specification()) == ()
    assert has_release(known_specification())


# Rule, file, and what is replaced where; the message.
SEEDS = [
    ("range-gap", UNARY, TANH, 'max = "1.9.0"', 'max = "1.8.0"', "no version of the op is in 1.9.0"),
    (
        "range-overlap",
        UNARY,
        TANH,
        'max = "1.9.0"',
        'max = "1.10.0"',
        "tanh_v2 begins at 1.10.0, but tanh_v1 ends at 1.10",
    ),
    (
        "range-overlap",
        UNARY,
        TANH,
        'max = "1.9.0"\n',
        "",
        "tanh_v1: range-overlap: it has no max although tanh_v2 begins",
    ),
    ("range-inverted", TYPES, 'name = "i2_v1"', "bits = 2", 'bits = 2\nmax = "1.1.0"', "min 1.2.0 is above max 1.1.0"),
    (
        "version-unknown",
        TYPES,
        'name = "i2_v1"',
        '"1.2.0"',
        '"1.2.1"',
        "i2_v1: version-unknown: 1.2.1 is no known version",
    ),
    ("op-numbers", UNARY, 'name = "abs"', "number = 1", "number = 2", "its versions are numbered 2"),
    (
        "step-attributes",
        UNARY,
        TANH,
        '["result_accuracy"]',
        '["accuracy"]',
        "accuracy is added, which the step does not say",
    ),
    ("step-values", COLLECTIVES, ALL_GATHER, '"operands", ', "", "single must be ['operands', 'results']"),
    ("default-unknown", UNARY, TANH, '"default_result_accuracy"', '"nothing"', "there is no default nothing"),
    (
        "feature-unknown",
        UNARY,
        TANH,
        '"result_accuracy"\nadded',
        '"nothing"\nadded',
        "tanh.1-2: feature-unknown: there is no",
    ),
    (
        "feature-guard",
        UNARY,
        TANH,
        'feature = "result_accuracy"\n',
        "",
        "it can refuse a downgrade and names no feature",
    ),
    ("feature-introduced", FEATURES, '"composite_regions"', '"1.14.0"', '"1.13.0"', "it is of 1.14.0, but the feature"),
    ("feature-names", FEATURES, '"tan"', 'ops = ["tan"]', 'ops = ["tam"]', "tan: feature-names: there is no tam"),
    (
        "constraint-unknown",
        COLLECTIVES,
        ALL_REDUCE,
        "versions = [1]",
        "versions = [3]",
        "there is no version 3 of all_reduce",
    ),
    (
        "attribute-order",
        COLLECTIVES,
        'name = "all_to_all"',
        '"channel_id", "concat_dimension"',
        '"concat_dimension", "channel_id"',
        "its attributes are concat_dimension, channel_id",
    ),
    ("code-unique", TYPES, 'name = "f8E3M4_v1"', "code = 36", "code = 35", "code 35 is that of f8E4M3_v1 already"),
    (
        "code-unique",
        ATTRIBUTES,
        'name = "mesh_v1"',
        "code = 25",
        "code = 1",
        "code 1 is that of array_v1 already",
    ),
    (
        "code-unique",
        "builtin/types.toml",
        "",
        "code = 2",
        "code = 1",
        "function: code-unique: code 1 is that of index already",
    ),
    ("case-unique", ENUMS, '"WEAKORDER"', "value = 5", "value = 4", "UNSIGNED and WEAKORDER have the same value, 4"),
    (
        "enum-unknown",
        ATTRIBUTES,
        "",
        "enum transpose_v1",
        "enum turn_v1",
        "the enum turn_v1 of its field value",
    ),
    (
        "kind-unknown",
        DEFAULTS,
        "",
        '"array_v1"',
        '"array_v9"',
        "empty_array: kind-unknown: there is no attribute",
    ),
    (
        "kind-unknown",
        DEFAULTS,
        "mode = ",
        '"DEFAULT"',
        '"LOWEST"',
        "result_accuracy_mode_v1 has no case LOWEST",
    ),
    ("name-unique", FEATURES, "", 'id = "async"', 'id = "i2"', "i2 is there 2 times"),
    ("name-form", UNARY, "", 'name = "abs"', 'name = "abs_v2"', "'abs_v2' is no name for this"),
    (
        "bytecode-descends",
        VERSIONS,
        '"0.14.0"',
        "bytecode = 4",
        "bytecode = 2",
        "MLIR bytecode goes from 3 to 2",
    ),
    ("bytecode-newest", VERSIONS, f'"{NEWEST}"', "bytecode = 6", "bytecode = 5", "writes MLIR bytecode 5, not 6"),
]


@pytest.mark.parametrize(("rule", "file", "after", "old", "new", "message"), SEEDS, ids=[seed[0] for seed in SEEDS])
def test_seeded_violation(rule: str, file: str, after: str, old: str, new: str, message: str, specs: Path) -> None:
    # The add-only rule has seeds of its own.
    (specs / "released.json").unlink()
    edit(specs / file, after, old, new)
    violations = found(specs)
    rules, text = rules_and_text(violations)
    assert (rules, {violation.remedy for violation in violations}) == (
        {rule},
        {known.remedy for known in RULES if known.id == rule},
    )
    assert message in text


def test_step_missing(specs: Path) -> None:
    (specs / "released.json").unlink()
    remove_table(specs / UNARY, TANH, "[[op.step]]")
    rules, text = rules_and_text(found(specs))
    assert rules == {"step-missing"}
    assert text.startswith(
        f"{UNARY}: tanh: step-missing: there is no step between versions 1 and 2\n    add [[op.step]]"
    )
    edit(specs / UNARY, "", 'name = "abs"', 'name = "abs"\n[[op.step]]\nbetween = [1, 2]')
    assert (
        "abs: step-missing: there is a step between 1 and 2, which are no neighbours" in rules_and_text(found(specs))[1]
    )


def test_op_in_two_files(specs: Path) -> None:
    (specs / "vhlo" / "ops" / "copies.toml").write_text((specs / "vhlo" / "ops" / "tuples.toml").read_text())
    rules, text = rules_and_text(found(specs))
    assert rules == {"op-once"}
    assert "the op is there 2 times: in vhlo/ops/copies.toml and vhlo/ops/tuples.toml" in text


@pytest.mark.parametrize(
    ("version", "bytecode", "rule", "message"),
    [
        (
            f"{NEWEST.major}.{NEWEST.minor}.1",
            7,
            "bytecode-minor",
            "a patch version changes the MLIR bytecode version from 6 to 7",
        ),
        ("1.30.0", 6, "version-gap", f"1.30.0 cannot come after {NEWEST}"),
        ("1.21.0", 6, "version-order", f"1.21.0 stands behind {NEWEST}"),
    ],
)
def test_versions(version: str, bytecode: int, rule: str, message: str, specs: Path) -> None:
    with (specs / VERSIONS).open("a") as file:
        file.write(AT_THE_END.format(version, bytecode))
    rules, text = rules_and_text(found(specs))
    assert rules == {rule}
    assert message in text


# The add-only rule: what is released stays.
CHANGES = [
    (
        COLLECTIVES,
        ALL_GATHER,
        'operands = ["operand"]',
        'operands = ["input"]',
        'operands of the op all_gather_v1 is released as ["operand"], and is now ["input"]',
    ),
    (
        UNARY,
        'name = "abs"',
        'min = "0.9.0"',
        'min = "0.10.0"',
        'min of the op abs_v1 is released as "0.9.0", and is now "0.10.0"',
    ),
    (
        UNARY,
        'name = "abs"',
        'min = "0.9.0"',
        'min = "0.9.0"\nmax = "1.22.0"',
        'max of the op abs_v1 is released as absent, and is now "1.22.0"',
    ),
    (TYPES, 'name = "i2_v1"', "bits = 2", "bits = 3", "bits of the type i2_v1 is released as 2, and is now 3"),
    (TYPES, 'name = "future_v1"', "code = 42", "code = 43", "encodings of the type future_v1 is released as"),
    (
        ENUMS,
        '"PHILOX"',
        "value = 2",
        "value = 3",
        "value of the case rng_algorithm_v1.PHILOX is released as 2, and is now 3",
    ),
    (
        FEATURES,
        'id = "range_locations"',
        '"1.9.0"',
        '"1.8.0"',
        'introduced of the feature range_locations is released as "1.9.0"',
    ),
    (
        VERSIONS,
        '"0.14.0"',
        "bytecode = 4",
        "bytecode = 5",
        "bytecode of the version 0.14.0 is released as 4, and is now 5",
    ),
    (
        DEFAULTS,
        'id = "false"',
        "value = false",
        "value = true",
        "value of the default false is released as",
    ),
]


@pytest.mark.parametrize(("file", "after", "old", "new", "message"), CHANGES)
def test_released_changed(file: str, after: str, old: str, new: str, message: str, specs: Path) -> None:
    edit(specs / file, after, old, new)
    rules, text = rules_and_text(found(specs))
    assert rules == {"released-changed"}
    assert message in text
    assert "take the change back, and add a new version instead" in text


@pytest.mark.parametrize(
    ("file", "header", "message"),
    [
        (UNARY, '[[op]]\nname = "abs"\n\n[[op.version]]', "the op abs_v1 is released and has disappeared"),
        (TYPES, '[[type]]\nname = "witness_v1"', "the type witness_v1 is released and has disappeared"),
        (
            FEATURES,
            '[[feature]]\nid = "range_locations"',
            "the feature range_locations is released and has disappeared",
        ),
        (
            VERSIONS,
            '[[version]]\nversion = "0.13.0"',
            "versions.toml: 0.13.0: released-removed: the version 0.13.0",
        ),
    ],
)
def test_released_removed(file: str, header: str, message: str, specs: Path) -> None:
    edit(specs / file, "", header, header.replace("\n\n", "\n"))
    remove_table(specs / file, "", header.replace("\n\n", "\n"))
    rules, text = rules_and_text(found(specs))
    # A version that is gone leaves a gap as well.
    assert rules - {"version-gap"} == {"released-removed"}
    assert message in text


def test_released_case_removed(specs: Path) -> None:
    edit(specs / ENUMS, "", '  { name = "ADJOINT", value = 3 },\n', "")
    assert rules_and_text(found(specs))[0] == {"released-removed"}


def test_added_to_what_is_released(specs: Path) -> None:
    write_release(load_specification(specs))
    mine = specs / "vhlo" / "ops" / "mine.toml"
    shape = "operands = []\nresults = []\nattributes = []\n"
    entry = f'[[op]]\nname = "mine"\n[[op.version]]\nnumber = 1\nmin = "{NEWEST}"\n{shape}'
    mine.write_text(entry)
    rules, text = rules_and_text(found(specs))
    assert rules == {"released-added"}
    assert f"the op mine_v1 is new, and says that it is in {NEWEST}, which is released" in text
    with (specs / VERSIONS).open("a") as file:
        file.write(AT_THE_END.format(NEXT, 6))
    mine.write_text(entry.replace(str(NEWEST), str(NEXT)))
    assert found(specs) == ()


# What is compared with


def test_against_a_revision_and_a_folder(specs: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(specs.parent), *identity, *arguments], check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "released")
    (specs / "released.json").unlink()
    edit(specs / UNARY, 'name = "abs"', '"operand"', '"input"')
    assert found(specs) == ()
    for against in ("HEAD", str(OURS)):
        rules, text = rules_and_text(found(specs, against))
        assert rules == {"released-changed"}
        assert "operands of the op abs_v1" in text
    for against in ("nonsense", "-h"):
        with pytest.raises(vt.InvalidSpecificationError, match="expected a folder, or a git revision"):
            found(specs, against)


def test_write_release(specs: Path) -> None:
    edit(specs / TYPES, 'name = "i2_v1"', "bits = 2", "bits = 3")
    assert found(specs)
    assert write_release(load_specification(specs)) == specs / "released.json"
    assert found(specs) == ()
    (specs / "released.json").write_text("[]")
    with pytest.raises(vt.InvalidSpecificationError, match="is no baseline"):
        found(specs)


def test_the_committed_release_is_written_by_the_tool(specs: Path) -> None:
    schema = json.loads((OURS / "schemas" / "released.schema.json").read_text())
    jsonschema.validate(json.loads((OURS / "released.json").read_text()), schema)
    text = (specs / "released.json").read_text()
    assert baseline_text(json.loads(text)) == text


# What cannot be read is no violation but refused


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (UNARY, 'name = "abs"', "name = abs", r"elementwise_unary.toml: Invalid value"),
        (UNARY, "number = 1\n", "", r"\[\[op\]\] abs: the key 'number' is missing"),
        (UNARY, "number = 1\n", "number = true\n", r"abs: number is True, which is of another kind"),
        (UNARY, 'results = ["result"]', "results = [1]", r"abs: results is \[1\], which is of another kind"),
        (UNARY, "added = { ", "added = { x = 1, ", r"\[\[op\]\] cbrt: added is .* of another kind"),
        (COLLECTIVES, '"same_element_types"', '"nothing"', r"all_reduce: requires is 'nothing': expected one of same_"),
        (DEFAULTS, 'equals = "zero"', 'equals = "nothing"', r"default_result_accuracy: equals or computed is none of"),
        (UNARY, "number = 1\n", "number = 1\nmaximum = 2\n", r"\[\[op\]\] abs: maximum is no key of it"),
        (VERSIONS, '"0.9.0"', '"0.09.0"', r"versions.toml: \[\[version\]\] 0.09.0: '0.09.0' is not a StableHLO"),
        (FEATURES, "remedy", "remedies", r"\[\[feature\]\] f8E4M3FNUZ_f8E5M2FNUZ: remedies is no key of it"),
    ],
)
def test_unreadable(file: str, old: str, new: str, message: str, specs: Path) -> None:
    edit(specs / file, "[[", old, new)
    with pytest.raises(vt.InvalidSpecificationError, match=message):
        load_specification(specs)


def test_files_may_be_missing(tmp_path: Path) -> None:
    with pytest.raises(vt.InvalidSpecificationError, match="holds no specification"):
        load_specification(tmp_path)
    (tmp_path / "vhlo").mkdir()
    (tmp_path / "vhlo" / "types.toml").write_text((OURS / TYPES).read_text())
    specs = load_specification(tmp_path)
    assert (len(specs.types), specs.ops, specs.newest) == (42, (), known_specification().newest)
    assert lint(specs) == ()
