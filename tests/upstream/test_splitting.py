"""Inputs of several parts: where each is, what is expected of it, and what stands between results."""

from __future__ import annotations

import pytest
from support.opt_programs import opt, translate

FAULT = '"stablehlo.abs"() : () -> ()'
SAID = "'stablehlo.abs' op requires one result"


def test_faults_are_at_their_lines_of_the_whole_input() -> None:
    ran = opt("--split-input-file", text=f"module {{}}\n// -----\n\n  {FAULT}\n// -----\nmodule @last {{}}\n")
    assert ran.code == 1
    assert ran.error.startswith(f"<stdin>:4:3: error: {SAID}\n  {FAULT}\n  ^\n")
    assert ran.text == "module {\n}\n\n// -----\n\n// -----\nmodule @last {\n}\n"


def test_what_stands_behind_a_marker_on_its_line_has_its_column() -> None:
    assert f"<stdin>:2:10: error: {SAID}" in opt("--split-input-file", text=f"module {{}}\n// ----- {FAULT}").error


def test_translations_take_each_part_for_itself() -> None:
    ran = translate("--split-input-file", "--serialize", "--target=1.0.0", text=f"module {{}}\n// -----\n\n{FAULT}\n")
    assert ran.error.startswith(f"within split at <stdin>:2 offset :3:1: error: {SAID}\n")


def test_each_part_is_held_against_what_it_expects() -> None:
    expected = f"// expected-error@+1 {{{{requires one result}}}}\n{FAULT}\n"
    text = f"{expected}// -----\nmodule {{}}\n// -----\n{expected}"
    assert (ran := opt("--split-input-file", "--verify-diagnostics", text=text)).code == 0, ran.error
    missing = opt("--split-input-file", "--verify-diagnostics", text=f"{text}// -----\n{FAULT}")
    assert missing.code == 1
    assert missing.error == f"<stdin>:9:1: error: unexpected error: {SAID}\n{FAULT}\n^\n"
    superfluous = text.replace("module", "// expected-note {{x}}\nmodule")
    ran = opt("--split-input-file", "--verify-diagnostics", text=superfluous)
    assert ran.code == 1
    assert ran.error.startswith('<stdin>:4:4: error: expected note "x" was not produced\n')


def test_what_almost_is_a_marker_is_pointed_at() -> None:
    ran = opt("--split-input-file", text="module {}\n  // ----\nmodule @second {}\n")
    assert ran.code == 0
    assert ran.error == "<stdin>:2:9: warning: near miss with file split marker\n  // ----\n        ^\n"
    assert "module @second" in ran.text


@pytest.mark.parametrize("marker", ["%", "%%", "//%%"])
def test_markers_can_be_chosen_however_short(marker: str) -> None:
    text = f"module @first {{}}\n{marker}\nmodule @second {{}}\n"
    ran = opt(f"--split-input-file={marker}", "--output-split-marker=// and", text=text)
    assert ran.text == "module @first {\n}\n\n// and\nmodule @second {\n}\n", ran.error


def test_parts_can_be_left_together() -> None:
    assert opt("--split-input-file=false", text="func.func private @f()\n// -----\nfunc.func private @f()").code == 1


def test_bytecode_is_one_part() -> None:
    bytecode = opt("--emit-bytecode", text="module @only {}").raw
    assert opt("--split-input-file", text=bytecode).text == "module @only {\n}\n"
