"""What the lint of aliases finds: errors exactly where XLA refuses, and warnings of what it takes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from check_aliases import differences

import vhlo_tools as vt
from vhlo_tools.aliasing import ALIAS_FEATURES
from vhlo_tools.cli.main import main
from vhlo_tools.findings import Finding

#: Seeds of programs; the last rule that XLA has shows at seed 162. check_aliases.py tries thousands.
SEEDS = range(170)

MAY = (
    '{alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 0 : i64}, '
    "output_index = array<i64>}"
)
ONE = "tensor<4xf32>"


@pytest.mark.long
def test_errors_are_what_xla_refuses_and_for_the_same_reason() -> None:
    seen: Counter[str] = Counter()
    assert list(differences(SEEDS, seen)) == []
    errors = {feature for feature, level in ALIAS_FEATURES.items() if level == "error"}
    reasons = {each.split()[-1] for each in seen if each.split()[0] in ("conversion", "compilation")}
    # What XLA's reader may crash of is no refusal.
    assert reasons == errors - {"alias_malformed"}
    assert seen["compiled"] > len(SEEDS) // 5


def findings(arguments: str, results: str, module: str = "") -> list[Finding]:
    text = f"module attributes {{{module}}} {{ func.func private @main({arguments}) -> ({results}) }}"
    found = vt.serialize(text, alias_lint=False).alias_findings()
    assert all(each.kind == "alias" and each.remedy and each.level == ALIAS_FEATURES[each.feature] for each in found)
    assert [each for each in vt.check(text, "0.9.0") if each.kind == "alias"] == found
    # The same at the oldest version, where attributes stand elsewhere.
    assert vt.serialize(text, "0.9.0", alias_lint=False).alias_findings() == found
    return found


@pytest.mark.parametrize(
    ("arguments", "results", "module", "feature", "message"),
    [
        (f"{ONE} {{tf.aliasing_output = 0 : i32}}", "tensor<4xi32>", "", "alias_other_element_type", "which it may"),
        (f"{ONE} {{tf.aliasing_output = 0 : i32}}", "tensor<2x2xf32>", "", "alias_other_shape", "which it may"),
        (f'{ONE} {{tf.aliasing_output = "x"}}', ONE, "", "alias_ignored_attribute", 'is "x", which XLA'),
        (f"{ONE} {{jax.buffer_donor = 1 : i32}}", ONE, "", "alias_ignored_attribute", "make it a bool"),
        (ONE, ONE, 'mhlo.input_output_alias = "x"', "alias_ignored_attribute", "an array"),
        (
            f"{ONE} {{jax.buffer_donor = true}}",
            "tensor<8xf32>",
            "",
            "alias_unusable_donor",
            "no unaliased output of 16 bytes",
        ),
        (
            f"{ONE}, {ONE} {{tf.aliasing_output = 0 : i32}}",
            ONE,
            f"mhlo.input_output_alias = [{MAY}]",
            "alias_replaced",
            "which replace the alias of output {} with parameter 1",
        ),
        (ONE, ONE, "mhlo.input_output_alias = [{}]", "alias_malformed", "malformed and may crash XLA"),
    ],
)
def test_findings(arguments: str, results: str, module: str, feature: str, message: str) -> None:
    (found,) = findings(arguments, results, module)
    assert found.feature == feature
    assert message in f"{found.message}; {found.remedy}"


def test_donors_share_what_is_left() -> None:
    donor = "tensor<4xf32> {jax.buffer_donor = true}"
    assert findings(f"{donor}, {donor}", "tensor<4xf32>, tensor<2x2xi32>") == []
    (found,) = findings(f"{donor}, {donor}", "tensor<4xf32>, tensor<2x3xi32>")
    assert (found.path, found.function) == ("@main argument 1", "main")
    # What an alias takes is not left.
    aliased = "tensor<4xf32> {tf.aliasing_output = 0 : i32}"
    (found,) = findings(f"{aliased}, {donor}", "tensor<4xf32>")
    assert found.feature == "alias_unusable_donor"
    assert findings(donor, "tensor<?xf32>") == []


@pytest.mark.parametrize(
    ("output", "operand", "index", "feature"),
    [
        ("1", "2", "", "alias_parameter_number"),
        ("2", "0", "", "alias_output_index"),
        ("0", "0", "0", "alias_parameter_index"),
        ("0", "1", "", "alias_shape"),
    ],
)
def test_calls(output: str, operand: str, index: str, feature: str) -> None:
    text = """func.func @main(%a: tensor<4xf32>, %b: tensor<8xf32>) -> tensor<4xf32> {
      %0:2 = stablehlo.custom_call @fill(%a, %b) {output_operand_aliases = [
        #stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>,
        #stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 0, operand_tuple_indices = []>]}
        : (tensor<4xf32>, tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      return %0#0 : tensor<4xf32>
    }"""
    good = vt.serialize(text)
    assert good.alias_findings() == []
    # What the verifier of StableHLO would not let us write.
    file = good.copy_of_file()
    wrong = next(
        at
        for at in range(len(file.attributes))
        if (value := file.decode("attribute", at)) is not None and value.name == "output_operand_alias_v1"
    )
    value = file.decode("attribute", wrong)
    assert value is not None
    numbers = tuple(int(each) for each in (index,) if each)
    file.attributes[wrong] = file.encode("attribute", replace(value, fields=((int(output),), int(operand), numbers)))
    (found,) = good.edited(file).alias_findings()
    assert (found.feature, found.op, found.function) == (feature, "stablehlo.custom_call", "main")
    assert found.path == "@main/0:stablehlo.custom_call"
    assert found.location is not None


WRONG = f"func.func @main(%a: {ONE} {{tf.aliasing_output = 3 : i32}}) -> {ONE} {{ return %a : {ONE} }}"
ODD = "func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}) { return }"


def test_only_errors_stop_what_is_written() -> None:
    with pytest.raises(vt.AliasError, match="aliases that XLA rejects") as refused:
        vt.serialize(WRONG)
    assert [each.feature for each in refused.value.findings] == ["alias_output_index"]
    assert not vt.serialize(WRONG, alias_lint=False).findings
    assert [each.feature for each in vt.serialize(ODD).findings] == ["alias_unusable_donor"]


def test_checks_know_aliases() -> None:
    passed = vt.serialize(WRONG, alias_lint=False)
    for program in (WRONG, passed):
        (found,) = vt.check(program, "1.0.0")
        assert (found.feature, found.level) == ("alias_output_index", "error")
    (found,) = vt.check(ODD, "1.0.0")
    assert found.level == "warning"
    # A lost alias is a difference.
    assert {each.kind for each in vt.diff(passed, vt.serialize(WRONG.replace("tf.", "other.")))} >= {"alias"}


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong, out = tmp_path / "wrong.mlir", str(tmp_path / "out.mlirbc")
    wrong.write_text(WRONG)
    assert main(["serialize", str(wrong), "-o", out]) == 1
    said = capsys.readouterr().err
    assert "has aliases that XLA rejects (--no-alias-lint accepts them)" in said
    assert "there is no output {3}: the result is f32[4]" in said
    assert "give the index of an output" in said
    assert main(["serialize", str(wrong), "-o", out, "--no-alias-lint"]) == 0
    assert main(["check", out, "--target", "1.0.0"]) == 1
    assert "error: alias_output_index" in capsys.readouterr().out
    (tmp_path / "odd.mlir").write_text(ODD)
    assert main(["check", str(tmp_path / "odd.mlir"), "--target", "1.0.0"]) == 0
    assert "warning: alias_unusable_donor" in capsys.readouterr().out
