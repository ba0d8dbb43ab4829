"""Aliases of two programs: lost or changed is what means something else, and not what is written elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from support.alias_programs import configs, declaration_text

import vhlo_tools as vt
from vhlo_tools.aliasing import AliasConfig, compare_aliases, encode_aliases, fits
from vhlo_tools.artifact import Artifact
from vhlo_tools.cli.main import main
from vhlo_tools.findings import Finding
from vhlo_tools.gate import FORMATS

PROGRAM = """
func.func @main(%w: tensor<4xf32> loc("w"), %m: tensor<4xf32> loc("m"), %x: tensor<4xf32> loc("x"))
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  return %w, %m, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
"""


def program(*aliases: vt.Alias, donors: tuple[int, ...] = ()) -> Artifact:
    artifact = vt.serialize(PROGRAM)
    return artifact.with_aliases(AliasConfig(artifact.aliases().signature, aliases, map(vt.Donor, donors)))


def compared(one: Artifact, other: Artifact) -> list[Finding]:
    found = compare_aliases(one.declared_aliases(), other.declared_aliases())
    assert all((each.level, each.kind) == ("warning", "alias") and each.remedy for each in found)
    return found


@given(configs(tuples=False))
@settings(max_examples=50)
def test_another_form_or_version_is_no_difference(config: AliasConfig) -> None:
    artifact = vt.serialize(declaration_text(config.signature, encode_aliases(config)))
    others = [artifact.with_aliases(config, "module"), vt.retarget(artifact, "0.9.0")]
    if fits(config, "argument"):
        others.append(artifact.with_aliases(config, "argument"))
    for other in others:
        assert compared(artifact, other) == compared(other, artifact) == []
    plain = artifact.with_aliases(AliasConfig(config.signature))
    assert {each.feature for each in compared(plain, artifact)} == ({"alias_lost"} if config else set())
    assert len(compared(plain, artifact)) == len(config.aliases) + len(config.donors)


@pytest.mark.parametrize(
    ("one", "other", "feature", "message"),
    [
        (
            program(vt.Alias((1,), 1)),
            program(vt.Alias((0,), 0), vt.Alias((1,), 1)),
            "alias_lost",
            "output {0} was written over parameter 0 (w), may-alias, and no longer is",
        ),
        (
            program(vt.Alias((0,), 1)),
            program(vt.Alias((0,), 0)),
            "alias_changed",
            "output {0} was written over parameter 0 (w), may-alias, and is written over parameter 1 (m), may-alias",
        ),
        (
            program(vt.Alias((0,), 0, (), "must-alias")),
            program(vt.Alias((0,), 0)),
            "alias_changed",
            "output {0} was written over parameter 0 (w), may-alias, and is written over parameter 0 (w), must-alias",
        ),
        (
            program(donors=(0,)),
            program(vt.Alias((0,), 0)),
            "alias_changed",
            "output {0} was written over parameter 0 (w), may-alias, which is now donated without an",
        ),
        (
            program(vt.Alias((2,), 0)),
            program(donors=(0,)),
            "alias_changed",
            "parameter 0 (w) was donated for any output, and is aliased with output {2}, may-alias",
        ),
        (
            program(),
            program(donors=(2,)),
            "alias_lost",
            "parameter 2 (x) was donated for any output, and no longer is",
        ),
        (
            program(vt.Alias((0,), 0, (), "must-alias")),
            program(),
            "alias_changed",
            "output {0} had no alias, and is written over parameter 0 (w), must-alias",
        ),
    ],
)
def test_what_is_lost_or_changed(one: Artifact, other: Artifact, feature: str, message: str) -> None:
    (found,) = compared(one, other)
    assert found.feature == feature
    assert message in found.message
    assert found.remedy is not None
    assert ("again with `vhlo alias set`" in found.remedy) == (feature == "alias_lost")
    assert compared(one, one) == []


def test_what_is_new_and_may_be_is_none() -> None:
    assert compared(program(vt.Alias((0,), 0), donors=(1,)), program()) == []


def test_calls_are_compared_by_what_they_call() -> None:
    call = """stablehlo.custom_call @fill(%a) {output_operand_aliases = [#stablehlo.output_operand_alias<
      output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<4xf32>) -> tensor<4xf32>"""
    text = f"func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{ %0 = {call} return %0 : tensor<4xf32> }}"
    moved = text.replace("%0 = stable", "%1 = stablehlo.negate %a : tensor<4xf32> %0 = stable")
    artifact = vt.serialize(text)
    assert compared(vt.serialize(moved), artifact) == []
    (found,) = compared(artifact.with_call_aliases({"fill": []}), artifact)
    assert "of the call of fill at @main/0:stablehlo.custom_call was aliased with operand 0" in found.message


def test_other_signatures_are_refused() -> None:
    other = vt.serialize(PROGRAM.replace("%x: tensor<4xf32>", "%x: tensor<4xi32>").replace("%x :", "%w :"))
    with pytest.raises(vt.AliasError, match=r"parameter 2 is f32\[4\] in one, s32\[4\] in the other"):
        compare_aliases(program().declared_aliases(), other.declared_aliases())


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full, part, third = (str(tmp_path / name) for name in ("full.mlirbc", "part.mlirbc", "third.mlir"))
    program(vt.Alias((0,), 0), donors=(1,)).save(full)
    program(vt.Alias((0,), 0)).save(part)
    Path(third).write_text("func.func @main() { return }")

    def check(path: str, reference: str, *arguments: str) -> int:
        return main(["check", path, "--isolated", "--target", "1.9.0", "--same-aliases-as", reference, *arguments])

    assert check(full, part) == 0
    assert capsys.readouterr().out.startswith(f"{full}: ok for 1.9.0\n")
    assert check(part, full) == 1
    assert "error: alias_lost" in capsys.readouterr().out
    for output_format in FORMATS:
        assert check(part, full, "--output-format", output_format) == 1
        assert "alias_lost" in capsys.readouterr().out, output_format
    # The levels of the settings hold for them as for others.
    assert check(part, full, "--warn", "alias") == 0
    assert "warning: alias_lost" in capsys.readouterr().out
    assert check(part, full, "--allow", "alias_lost", "--output-format", "json") == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert (file["ok"], file["findings"], file["targets"][0]["allowed"]) == (True, [], 1)
    assert check(part, third) == 2
    assert "one has 3 parameters, the other 0" in capsys.readouterr().err
    for path, reference in (("-", full), (full, "-"), (str(tmp_path), full)):
        assert check(path, reference) == 2
        said = capsys.readouterr()
        assert (said.out, "--same-aliases-as compares one file with another" in said.err) == ("", True)


def test_aliases_with_parameters_that_are_not_there() -> None:
    """As a damaged program has them; no name is known of such a parameter."""
    reference = program(vt.Alias((0,), 0)).declared_aliases()
    for number in (-1, 3, 4):
        wrong = replace(reference, declared=replace(reference.declared, arguments=(vt.Alias((0,), number),)))
        (found,) = compare_aliases(wrong, reference)
        assert found.message.endswith(f"and is written over parameter {number}, may-alias")
