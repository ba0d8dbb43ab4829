"""The lint: nothing to say of our data, and of each seeded violation exactly its own rule, on a copy of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support.specs_folder import OURS, copy_of, edit, remove_table

import vhlo_tools as vt
from vhlo_tools.spec.specification import known_specification, load_specification
from vhlo_tools.spec_tools.linting import baseline_text, has_release, lint, write_release
from vhlo_tools.spec_tools.rules import RULES, Violation

UNARY, COLLECTIVES = "vhlo/ops/elementwise_unary.toml", "vhlo/ops/collectives.toml"
TYPES, FEATURES, ENUMS = "vhlo/types.toml", "vhlo/features.toml", "vhlo/enums.toml"
ATTRIBUTES, DEFAULTS, VERSIONS = "vhlo/attributes.toml", "vhlo/defaults.toml", "versions.toml"
NEWEST = known_specification().newest
NEXT, AFTER_NEXT = (vt.Version(f"{NEWEST.major}.{NEWEST.minor + more}.0") for more in (1, 2))
OLDER = known_specification().versions[-2].version
BYTECODE = known_specification().versions[-1].bytecode
TANH, ALL_GATHER, ALL_REDUCE = 'name = "tanh"', 'name = "all_gather"', 'name = "all_reduce"'
# An op that nothing can happen to any more, and one to which nothing has happened yet.
FORGOTTEN, TRACE = "vhlo/ops/forgotten.toml", 'name = "trace"'
SINGLE = next(op for op in known_specification().ops if len(op.versions) == 1 and op.versions[0].max is None)
AT_THE_END = '[[version]]\nversion = "{}"\ndate = 2026-10-16\ndated_by = "commit"\nbytecode = {}\nbrought = "x"\n'
NAMES_MINE = '\n[[feature]]\nid = "mine"\ntitle = "x"\nkind = "op"\nintroduced = "{}"\nremedy = "x"\nops = ["mine"]\n'


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


# The rule, the file, what it stands after, and what is replaced by what; the message.
SEEDS = [
    (("range-gap", UNARY, TANH, 'max = "1.9.0"', 'max = "1.8.0"'), "no version of the op is in 1.9.0"),
    (
        ("range-overlap", UNARY, TANH, 'max = "1.9.0"', 'max = "1.10.0"'),
        "tanh_v2 begins at 1.10.0, but tanh_v1 ends at 1.10",
    ),
    (
        ("range-overlap", UNARY, TANH, 'max = "1.9.0"\n', ""),
        "tanh_v1: range-overlap: it has no max although tanh_v2 begins",
    ),
    (
        ("range-inverted", TYPES, 'name = "i2_v1"', "bits = 2", 'bits = 2\nmax = "1.1.0"'),
        "min 1.2.0 is above max 1.1.0",
    ),
    (
        ("version-unknown", TYPES, 'name = "witness_v1"', '"0.9.0"', '"0.9.0"\nmax = "1.2.1"'),
        "witness_v1: version-unknown: 1.2.1 is not a known version",
    ),
    (("op-numbers", FORGOTTEN, TRACE, "number = 1", "number = 2"), "its versions are numbered 2"),
    (
        ("step-attributes", UNARY, TANH, '["result_accuracy"]', '["accuracy"]'),
        "accuracy is added, but the step does not list it",
    ),
    (("step-values", COLLECTIVES, ALL_GATHER, '"operands", ', ""), "single must be ['operands', 'results']"),
    (("default-unknown", UNARY, TANH, '"default_result_accuracy"', '"nothing"'), "there is no default nothing"),
    (
        ("feature-unknown", UNARY, TANH, '"result_accuracy"\nadded', '"nothing"\nadded'),
        "tanh.1-2: feature-unknown: there is no",
    ),
    (
        ("feature-guard", UNARY, TANH, 'feature = "result_accuracy"\n', ""),
        "it can reject a downgrade, but names no feature",
    ),
    (
        ("feature-introduced", FEATURES, '"composite_regions"', '"1.14.0"', '"1.13.0"'),
        "its version is 1.14.0, that of feature composite_regions is 1.13.0",
    ),
    (("feature-names", FEATURES, '"tan"', 'ops = ["tan"]', 'ops = ["tan", "tam"]'), "tan: feature-names: there is no"),
    (
        ("constraint-unknown", COLLECTIVES, ALL_REDUCE, "versions = [1]", "versions = [3]"),
        "there is no version 3 of all_reduce",
    ),
    (
        (
            *("attribute-order", COLLECTIVES, 'name = "all_to_all"', '"channel_id", "concat_dimension"'),
            '"concat_dimension", "channel_id"',
        ),
        "its attributes are concat_dimension, channel_id",
    ),
    (("code-unique", TYPES, 'name = "f8E3M4_v1"', "code = 36", "code = 35"), "code 35 is already used by f8E4M3_v1"),
    (("code-unique", ATTRIBUTES, 'name = "mesh_v1"', "code = 25", "code = 1"), "code 1 is already used by array_v1"),
    (
        ("code-unique", "builtin/types.toml", "", "code = 2", "code = 1"),
        "function: code-unique: code 1 is already used by index",
    ),
    (("case-unique", ENUMS, '"WEAKORDER"', "value = 5", "value = 4"), "UNSIGNED and WEAKORDER have the same value, 4"),
    (("enum-unknown", ATTRIBUTES, "", "enum transpose_v1", "enum turn_v1"), "the enum turn_v1 of its field value"),
    (("kind-unknown", DEFAULTS, "", '"array_v1"', '"array_v9"'), "empty_array: kind-unknown: there is no attribute"),
    (("kind-unknown", DEFAULTS, "mode = ", '"DEFAULT"', '"LOWEST"'), "result_accuracy_mode_v1 has no case LOWEST"),
    (("name-unique", FEATURES, "", 'id = "async"', 'id = "i2"'), "i2 occurs 2 times"),
    (("name-unique", FORGOTTEN, TRACE, '"operand"', '"operand", "operand"'), "it names operand 2 times"),
    (("name-form", FORGOTTEN, "", TRACE, 'name = "trace_v2"'), "invalid name 'trace_v2'"),
    (
        ("name-form", FORGOTTEN, TRACE, '["operand"]', '["Operand"]'),
        "invalid name 'Operand': names of attributes, operands, results and regions are lower",
    ),
    (("name-form", ENUMS, "", '"PHILOX"', '"Philox"'), "invalid name 'Philox': a case is UPPER_CASE"),
    (("feature-missing", FEATURES, "", '"i2_v1", ', ""), "i2_v1: feature-missing: it was introduced"),
    (
        ("feature-missing", ENUMS, "", '"ADJOINT", value = 3', '"ADJOINT", value = 3, min = "1.2.0"'),
        "transpose_v1.ADJOINT: feature-missing: it was introduced in 1.2.0, but no feature of 1.2.0 names transpose_v1",
    ),
    (
        ("feature-ops", FEATURES, '"composite_regions"', '"composite"', '"composite", "case"'),
        "composite_regions: feature-ops: it names case, but introduces nothing of it",
    ),
    (
        ("feature-ops", FEATURES, '"variadic_collectives"', '"all_reduce", ', ""),
        "variadic_collectives: feature-ops: it does not name all_reduce, which uses it",
    ),
    (
        ("feature-ops", FEATURES, '"mixed_f8_convolution"', ', "dynamic_conv"', ""),
        "mixed_f8_convolution: feature-ops: it does not name dynamic_conv",
    ),
    (
        ("feature-kind", FEATURES, '"mixed_f8_convolution"', '"constraint"', '"op"'),
        "its kind is op, but it is the feature of a constraint",
    ),
    (("feature-kind", FEATURES, '"tan"', '"op"', '"constraint"'), "its kind is constraint, but no op has such a"),
    (("feature-empty", FEATURES, 'id = "i2"', '"i2_v1"', '"i2_v1", "i4_v1"'), "i2: feature-empty: i4_v1 was not"),
    (
        (
            *("feature-empty", FEATURES, "", 'id = "i2"'),
            'id = "x"\ntitle = "x"\nkind = "op"\nintroduced = "1.2.0"\nremedy = "x"\n\n[[feature]]\nid = "i2"',
        ),
        "x: feature-empty: it names no op, type, attribute or enum",
    ),
    (("bytecode-descends", VERSIONS, '"0.14.0"', "bytecode = 4", "bytecode = 2"), "MLIR bytecode goes from 3 to 2"),
    (
        ("bytecode-newest", VERSIONS, f'"{NEWEST}"', f"bytecode = {BYTECODE}", "bytecode = 5"),
        f"MLIR bytecode 5, not {BYTECODE}",
    ),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("seed", "message"), SEEDS, ids=[rule for (rule, *_), _ in SEEDS])
def test_seeded_violation(seed: tuple[str, ...], message: str, specs: Path) -> None:
    rule, file, after, old, new = seed
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
    edit(specs / FORGOTTEN, "", TRACE, f"{TRACE}\n[[op.step]]\nbetween = [1, 2]")
    assert (
        "trace: step-missing: there is a step between 1 and 2, which are not consecutive"
        in rules_and_text(found(specs))[1]
    )


def test_op_without_a_feature(specs: Path) -> None:
    """Of a new op, and of a new version of one that can say more than the old."""
    (specs / "released.json").unlink()
    remove_table(specs / FEATURES, "", '[[feature]]\nid = "tan"')
    assert [(each.rule, each.file, each.entry, each.message) for each in found(specs)] == [
        ("feature-missing", UNARY, "tan_v1", "it was introduced in 1.4.0, but no feature of 1.4.0 names tan")
    ]
    # What is called by its name has no feature at all.
    (specs / FEATURES).unlink()
    assert {each.rule for each in found(specs)} == {"feature-unknown"}


def test_op_in_two_files(specs: Path) -> None:
    (specs / "vhlo" / "ops" / "copies.toml").write_text((specs / "vhlo" / "ops" / "tuples.toml").read_text())
    rules, text = rules_and_text(found(specs))
    assert rules == {"op-once"}
    assert "the op occurs 2 times: in vhlo/ops/copies.toml and vhlo/ops/tuples.toml" in text


@pytest.mark.parametrize(
    ("version", "bytecode", "rule", "message"),
    [
        (
            f"{NEWEST.major}.{NEWEST.minor}.1",
            BYTECODE + 1,
            "bytecode-minor",
            f"a patch version changes the MLIR bytecode version from {BYTECODE} to {BYTECODE + 1}",
        ),
        (AFTER_NEXT, BYTECODE, "version-gap", f"{AFTER_NEXT} cannot follow {NEWEST}"),
        (OLDER, BYTECODE, "version-order", f"{OLDER} is listed after {NEWEST}"),
    ],
)
def test_versions(version: object, bytecode: int, rule: str, message: str, specs: Path) -> None:
    with (specs / VERSIONS).open("a") as file:
        file.write(AT_THE_END.format(version, bytecode))
    rules, text = rules_and_text(found(specs))
    assert rules == {rule}
    assert message in text


# The add-only rule: what is released stays.
CHANGES = [
    (
        (COLLECTIVES, ALL_GATHER, 'operands = ["operand"]', 'operands = ["input"]'),
        'operands of the op all_gather_v1 is released as ["operand"], but is now ["input"]',
    ),
    (
        (FORGOTTEN, TRACE, 'min = "0.9.0"', 'min = "0.10.0"'),
        'min of the op trace_v1 is released as "0.9.0", but is now "0.10.0"',
    ),
    (
        (
            f"vhlo/ops/{SINGLE.family}.toml",
            f'name = "{SINGLE.name}"',
            f'min = "{SINGLE.versions[0].min}"',
            f'min = "{SINGLE.versions[0].min}"\nmax = "{OLDER}"',
        ),
        f'max of the op {SINGLE.name}_v1 is released as absent, but is now "{OLDER}"',
    ),
    ((TYPES, 'name = "i2_v1"', "bits = 2", "bits = 3"), "bits of the type i2_v1 is released as 2, but is now 3"),
    ((TYPES, 'name = "future_v1"', "code = 42", "code = 99"), "encodings of the type future_v1 is released as"),
    (
        (ENUMS, '"PHILOX"', "value = 2", "value = 3"),
        "value of the case rng_algorithm_v1.PHILOX is released as 2, but is now 3",
    ),
    (
        (FEATURES, 'id = "range_locations"', '"1.9.0"', '"1.8.0"'),
        'introduced of the feature range_locations is released as "1.9.0"',
    ),
    (
        (VERSIONS, '"0.14.0"', "bytecode = 4", "bytecode = 5"),
        "bytecode of the version 0.14.0 is released as 4, but is now 5",
    ),
    ((DEFAULTS, 'id = "false"', "value = false", "value = true"), "value of the default false is released as"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_released_changed(change: tuple[str, str, str, str], message: str, specs: Path) -> None:
    file, after, old, new = change
    edit(specs / file, after, old, new)
    rules, text = rules_and_text(found(specs))
    # What came later than it did has no feature.
    assert rules - {"feature-missing"} == {"released-changed"}
    assert message in text
    assert "released entries must not change: revert the change, and add a new version instead" in text


@pytest.mark.parametrize(
    ("file", "header", "message"),
    [
        (FORGOTTEN, f"[[op]]\n{TRACE}\n\n[[op.version]]", "the op trace_v1 is released, but was removed"),
        (TYPES, '[[type]]\nname = "witness_v1"', "the type witness_v1 is released, but was removed"),
        (FEATURES, '[[feature]]\nid = "range_locations"', "the feature range_locations is released, but was removed"),
        (VERSIONS, '[[version]]\nversion = "0.13.0"', "versions.toml: 0.13.0: released-removed: the version 0.13.0"),
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
    with (specs / FEATURES).open("a") as file:
        file.write(NAMES_MINE.format(NEWEST))
    mine = specs / "vhlo" / "ops" / "mine.toml"
    shape = "operands = []\nresults = []\nattributes = []\n"
    entry = f'[[op]]\nname = "mine"\n[[op.version]]\nnumber = 1\nmin = "{NEWEST}"\n{shape}'
    mine.write_text(entry)
    rules, text = rules_and_text(found(specs))
    assert rules == {"released-added"}
    assert f"the new op mine_v1 begins at {NEWEST}, which is already released" in text
    with (specs / VERSIONS).open("a") as file:
        file.write(AT_THE_END.format(NEXT, BYTECODE))
    mine.write_text(entry.replace(str(NEWEST), str(NEXT)))
    edit(specs / FEATURES, 'id = "mine"', str(NEWEST), str(NEXT))
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
    with pytest.raises(vt.InvalidSpecificationError, match="is not a baseline"):
        found(specs)


def test_the_committed_release_is_written_by_the_tool(specs: Path) -> None:
    text = (specs / "released.json").read_text()
    assert baseline_text(json.loads(text)) == text


# What cannot be read is no violation but refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((UNARY, 'name = "abs"', "name = abs"), r"elementwise_unary.toml: Invalid value"),
        ((UNARY, "number = 1\n", ""), r"\[\[op\]\] abs: the key 'number' is missing"),
        ((UNARY, "number = 1\n", "number = true\n"), r"abs: number is True: expected a number, at least 1"),
        ((UNARY, "number = 1\n", "number = 0\n"), r"abs: number is 0: expected a number, at least 1"),
        (
            (UNARY, 'results = ["result"]', "results = [1]"),
            r"abs: results is \[1\]: expected a list, each element a string",
        ),
        (
            (UNARY, "added = { ", "added = { x = 1, "),
            r"\[\[op\]\] \w+: added is .*: expected a table, each value a string",
        ),
        (
            (UNARY, '[[op]]\nname = "cbrt"', '[[ops]]\nname = "cbrt"'),
            r"unary.toml: unknown key ops: expected only \[\[op\]\]",
        ),
        (
            (COLLECTIVES, '"same_element_types"', '"nothing"'),
            r"all_reduce: requires is 'nothing': expected one of attri",
        ),
        (
            (COLLECTIVES, '"same_element_types"', '"attributes_are_not"\nattributes = ["channel_id"]'),
            "all_reduce: attributes_are_not has attributes: expected attributes and kind or attributes and value",
        ),
        (
            (COLLECTIVES, '"same_element_types"', '"same_element_types"\nkind = "dict_v1"'),
            "kind: expected nothing else",
        ),
        (
            (DEFAULTS, 'equals = "zero"', 'equals = "nothing"'),
            r"accuracy: equals is 'nothing': expected one of no_elements",
        ),
        (
            (DEFAULTS, 'of = "lhs"', 'text = "#vhlo"'),
            "zero_convolution_padding: expected text and value, or computed and of",
        ),
        (
            (DEFAULTS, '{ attribute = "array_v1", elements', "{ elements"),
            "empty_array: value is not an attribute: expected",
        ),
        ((TYPES, "code = 0", "code = -1"), "bool_v1: code is -1: expected a number, at least 0"),
        (
            (TYPES, '"element: type"', '"element: typ"'),
            "complex_v1: 'element: typ' is not a field: expected NAME: KIND, where KIND is",
        ),
        ((TYPES, "[[type.encoding]]\ncode = 0", "encoding = []"), "bool_v1: it has no encoding"),
        ((VERSIONS, '"tag"', '"hearsay"'), "0.9.0: dated_by is 'hearsay': expected one of commit, release, tag"),
        ((VERSIONS, "date = 2023-03-02", 'date = "today"'), "0.9.0: date is 'today': expected a date"),
        ((FEATURES, 'kind = "type"', 'kind = "typ"'), "kind is 'typ': expected one of alias, attribute"),
        ((FEATURES, 'remedy = "convert', 'remedy = " " # "'), "remedy is ' ': expected a string"),
        ((UNARY, "number = 1\n", "number = 1\nmaximum = 2\n"), r"\[\[op\]\] abs: unknown key maximum"),
        ((VERSIONS, '"0.9.0"', '"0.09.0"'), r"versions.toml: \[\[version\]\] 0.09.0: '0.09.0' is not a StableHLO"),
        ((FEATURES, "remedy", "remedies"), r"\[\[feature\]\] f8E4M3FNUZ_f8E5M2FNUZ: unknown key remedies"),
    ],
)
def test_unreadable(change: tuple[str, str, str], message: str, specs: Path) -> None:
    file, old, new = change
    edit(specs / file, "[[", old, new)
    with pytest.raises(vt.InvalidSpecificationError, match=message):
        load_specification(specs)


def test_files_may_be_missing(tmp_path: Path) -> None:
    with pytest.raises(vt.InvalidSpecificationError, match="contains no specification"):
        load_specification(tmp_path)
    (tmp_path / "vhlo").mkdir()
    (tmp_path / "vhlo" / "types.toml").write_text((OURS / TYPES).read_text())
    specs = load_specification(tmp_path)
    assert (specs.types, specs.ops) == (known_specification().types, ())
    assert specs.newest == known_specification().newest
    assert lint(specs) == ()
