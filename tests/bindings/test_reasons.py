"""What MLIR says of a failure is read where it can end no process but a child: texts that are not UTF-8 end theirs."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import vhlo_tools as vt
from vhlo_tools.bindings import MLIRFailure, Provider, get_provider

pytestmark = pytest.mark.every_python

NOT_UTF8 = b"na\xffme"
TO_VHLO = "stablehlo-legalize-to-vhlo{allow-other-dialects=false}"
REFUSED = "func.func @main(%a: tensor<4xf32>) { %0 = mhlo.copy %a : tensor<4xf32> return }"


def bytecode(provider: Provider, text: str, **names: bytes) -> bytes:
    written = io.BytesIO()
    provider.parse(provider.new_context(), text).operation.write_bytecode(written)
    data = written.getvalue()
    for name, other in names.items():
        assert name.encode() in data
        data = data.replace(name.encode(), other)
    return data


@contextmanager
def said(words: str) -> Iterator[None]:
    with pytest.raises(MLIRFailure) as caught:
        yield
    assert words in str(caught.value)
    assert caught.value.diagnostics


def test_a_name_that_is_not_utf8_is_in_what_the_parser_says() -> None:
    provider = get_provider()
    data = bytecode(
        provider, "func.func @one_a() { return } func.func @two_b() { return }", one_a=NOT_UTF8, two_b=NOT_UTF8
    )
    with said("fails where it says why (tried in a child process): the child process crashed"):
        provider.parse(provider.new_context(), data)
    with pytest.raises(vt.InvalidProgramError):
        vt.serialize(data, trusted=True)


def test_a_name_that_is_not_utf8_is_in_what_the_verifier_says() -> None:
    provider = get_provider()
    text = 'func.func @one_a() { return } func.func @other() attributes {a.x = "two_b"} { return }'
    module = provider.parse(provider.new_context(), bytecode(provider, text, one_a=NOT_UTF8, two_b=NOT_UTF8))
    function: Any = module.body.operations[1]
    function.attributes["sym_name"] = function.attributes["a.x"]
    with said("it is not valid, and has a name that is not UTF-8"):
        provider.verify(module)
    with pytest.raises(vt.InvalidProgramError, match="not UTF-8"):
        vt.serialize(module)  # and, not verified, it would be written, and not be read


def test_the_verifier_s_reasons_are_read_with_names_of_any_language() -> None:
    provider = get_provider()
    module: Any = provider.parse(
        provider.new_context(), 'func.func @"\\C3\\A9\\\\" () { return } func.func @b() { return }'
    )
    module.body.operations[1].attributes["sym_name"] = module.body.operations[0].attributes["sym_name"]
    with said("redefinition of symbol named 'é\\'"):
        provider.verify(module)


def test_reasons_of_passes_are_those_of_a_child_that_runs_them_again() -> None:
    provider = get_provider()

    def load() -> Any:
        return provider.parse(provider.new_context(), REFUSED)

    with said("failed to legalize unresolved"):
        provider.run_passes(load(), TO_VHLO, verify=False, before=(load, TO_VHLO))
    with pytest.raises(MLIRFailure, match="MLIR reported no reason"):
        provider.run_passes(load(), TO_VHLO, verify=False)
