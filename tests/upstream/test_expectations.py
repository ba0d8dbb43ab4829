"""What a test expects to be said: in every form, and what comes of a wrong, a missing and a superfluous expectation."""

from __future__ import annotations

import pytest
from support.opt_programs import Ran, opt

from vhlo_tools.bindings.toolbox import FilePosition, Remark
from vhlo_tools.upstream.diagnostics import Verifier
from vhlo_tools.upstream.sources import SourceText

FAULT = '  %0 = "stablehlo.abs"(%a) : (tensor<2xf32>) -> tensor<3xf32>'
SAID = "'stablehlo.abs' op all non-scalar operands/results must have the same shape and base type"


def verified(before: str, after: str = "", fault: str = FAULT, *arguments: str) -> Ran:
    """Verify what is said of a program that has expectations around its fault."""
    text = (
        "func.func @f(%a: tensor<2xf32>) -> tensor<3xf32> {\n"
        f"{before}{fault}{after}\n"
        "  return %0 : tensor<3xf32>\n}\n"
    )
    return opt("--verify-diagnostics", *arguments, text=text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "  // expected-error {{same shape}}"),
        ("// expected-error@+1 {{same shape}}\n", ""),
        ("// expected-error @+1 {{same shape}}\n", ""),
        ("// expected-error@+2 {{same shape}}\n\n", ""),
        ("// expected-error@below {{same shape}}\n", ""),
        ("", "\n// expected-error@-1 {{same shape}}"),
        ("", "\n// expected-error@above {{same shape}}"),
        ("// expected-error-re@+1 {{same {{sh[a-z]+}} and {{[[:alpha:]]+}} type}}\n", ""),
        ("// expected-error-re @+1 {{{{^}}'stablehlo.abs' op all}}\n", ""),
    ],
)
def test_what_is_expected_in_any_form_is_good(before: str, after: str) -> None:
    ran = verified(before, after)
    assert (ran.code, ran.error) == (0, "")


def test_a_wrong_expectation_fails_with_what_was_said_and_what_was_not() -> None:
    ran = verified("// expected-error@+1 {{another thing}}\n")
    assert ran.code == 1
    assert f"<stdin>:3:8: error: unexpected error: {SAID}\n{FAULT}\n       ^\n" in ran.error
    assert '<stdin>:2:4: error: expected error "another thing" was not produced\n' in ran.error


def test_a_missing_expectation_fails() -> None:
    ran = verified("")
    assert ran.code == 1
    assert ran.error == f"<stdin>:2:8: error: unexpected error: {SAID}\n{FAULT}\n       ^\n"


def test_a_superfluous_expectation_fails() -> None:
    fine = '  %0 = "stablehlo.pad"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<3xf32>'
    ran = verified("// expected-error@+1 {{same shape}}\n// expected-error@+1 {{padding}}\n", fault=fine)
    assert ran.code == 1
    assert 'error: expected error "same shape" was not produced' in ran.error


def test_the_same_message_of_another_kind_is_a_near_miss() -> None:
    ran = verified("// expected-warning@+1 {{same shape}}\n")
    assert ran.code == 1
    assert "<stdin>:2:4: error: 'error' diagnostic emitted when expecting a 'warning'" in ran.error


def test_a_pattern_goes_on_beyond_the_end_of_a_line() -> None:
    text = "// expected-error-re@-1 {{No target version{{.*}}form}}\n"
    ran = opt("--verify-diagnostics", "--vhlo-to-version", text=text)
    assert (ran.code, ran.error) == (0, "")


def test_a_pattern_that_is_none_fails() -> None:
    ran = verified("// expected-error-re@+1 {{same {{(}} shape}}\n")
    assert ran.code == 1
    assert "<stdin>:2:4: error: invalid regex" in ran.error


def test_what_is_not_expected_is_let_pass_if_so_asked() -> None:
    text = '"stablehlo.abs"() : () -> ()'
    assert opt("--verify-diagnostics=only-expected", text=text).code == 0
    assert opt("--verify-diagnostics=all", text=text).code == 1
    assert opt("--verify-diagnostics=only-expected", text=f"{text} // expected-error {{{{another}}}}").code == 1


def test_an_expectation_goes_to_the_last_braces_of_its_line() -> None:
    ran = verified("", "  // expected-error {{same shape}} // expected-error {{base type}}")
    assert ran.code == 1
    assert 'expected error "same shape}} // expected-error {{base type" was not produced' in ran.error


def test_expectations_have_no_counts() -> None:
    assert verified("// expected-error@+1 1 {{same shape}}\n").code == 1


def test_what_is_expected_once_may_be_said_again() -> None:
    text = "// expected-error@+1 {{symbol named}}\nmodule {\n  func.func private @f()\n}"
    assert opt("--verify-diagnostics", text=text).code == 1
    text = "func.func private @f()\n// expected-error@+1 {{redefinition of symbol named}}\nfunc.func private @f()\n"
    ran = opt("--verify-diagnostics", text=text)
    assert ran.error.startswith("<stdin>:1:1: error: unexpected note: see existing symbol definition here\n")
    assert opt("--verify-diagnostics", text="// expected-note@below {{existing}}\n" + text).code == 0


@pytest.mark.parametrize("kind", ["error", "warning", "note", "remark"])
def test_what_is_said_is_of_the_kind_that_is_expected(kind: str) -> None:
    said: list[str] = []
    for expected in ("error", "warning", "note", "remark"):
        source = SourceText("a.mlir", f"// expected-{expected}@+1 {{{{there}}}}\nop\n".encode())
        verifier = Verifier(source, said.append)
        verifier.hear(Remark(kind, "there it is", 'loc("a.mlir":2:1)', FilePosition("a.mlir", 2, 1)))
        assert verifier.finish() == (expected == kind)
    assert sum(f"'{kind}' diagnostic emitted when expecting a" in text for text in said) == 3


def test_of_many_calls_the_last_ten_are_shown() -> None:
    place = '"f.py":13:1'
    for line in range(12, 0, -1):
        place = f'callsite("f.py":{line}:1 at {place})'
    ran = opt(text=f'"stablehlo.abs"() : () -> () loc({place})')
    said = [line for line in ran.error.split("\n") if "note: called from" in line]
    assert said == [f"f.py:{line}:1: note: called from" for line in range(2, 12)]


def test_locations_that_name_what_is_no_file_are_shown_without_their_line() -> None:
    for path in ("/dev/zero", "there/is/no/such/file", "."):
        ran = opt(text=f'"stablehlo.abs"() : () -> () loc("{path}":1:1)')
        assert ran.code == 1
        assert ran.error.split("\n")[1].startswith(f"{path}:1:1: note: see current operation: "), ran.error


def test_places_that_are_none_can_be_expected() -> None:
    text = (
        "// expected-error@unknown {{failed to legalize operation}}\n"
        "// expected-error@+1 {{failed to convert VHLO to v1.3.0}}\n"
        "module {\n"
        "func.func @f(%a: tensor<f32>) -> tensor<f32> {\n"
        "  %0 = stablehlo.tan %a : tensor<f32> loc(unknown)\n"
        "  return %0 : tensor<f32>\n}\n}\n"
    )
    ran = opt("--verify-diagnostics", "--stablehlo-legalize-to-vhlo", "--vhlo-to-version=target=1.3.0", text=text)
    assert (ran.code, ran.error) == (0, "")


def test_without_verification_errors_have_their_line_and_the_op() -> None:
    text = "func.func @f(%a: tensor<2xf32>) -> tensor<3xf32> {\n" + FAULT + "\n  return %0 : tensor<3xf32>\n}\n"
    ran = opt(text=text)
    assert ran.code == 1
    place, line, caret, note, *_ = ran.error.split("\n")
    assert (place, line, caret) == (f"<stdin>:2:8: error: {SAID}", FAULT, "       ^")
    assert note.startswith('<stdin>:2:8: note: see current operation: %0 = "stablehlo.abs"(%arg0)')


def test_a_failure_that_the_library_says_nothing_of_is_an_error_too() -> None:
    text = "module {}\n// -----\nfunc.func @main() {\n  return\n}\n"
    ran = opt("--stablehlo-refine-arguments", "--split-input-file", text=text)
    said = "builtin.module(stablehlo-refine-arguments): error: it failed, but the library reported no reason\n"
    assert (ran.code, ran.error) == (1, f"<stdin>: {said}")
    assert "func.func @main" in ran.text
    # A test expects what is said, and that is nothing.
    assert opt("--stablehlo-refine-arguments", "--verify-diagnostics", text="module {}").code == 0
