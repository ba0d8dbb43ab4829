from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpus import EXAMPLES
from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.api import program_of
from vhlo_tools.api.frontends import FRONTENDS
from vhlo_tools.files import Kind
from vhlo_tools.program import LOADERS, load_program

TEXT = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"


def test_every_kind_of_content_has_a_loader() -> None:
    assert set(LOADERS) | set(FRONTENDS) == set(Kind)
    assert not set(LOADERS) & set(FRONTENDS)


def test_one_program_in_every_form_is_one_artifact(raw: RawLibrary, tmp_path: Path) -> None:
    module = raw.parse(TEXT)
    path = tmp_path / "any.name"
    path.write_text(TEXT)
    pieces: list[bytes] = []
    module.operation.write_bytecode(type("Sink", (), {"write": lambda _, data: pieces.append(bytes(data))})())
    artifact = vt.serialize(TEXT)
    forms: list[Any] = [TEXT, TEXT.encode(), bytearray(TEXT.encode()), module, module.operation, path, str(path)]
    forms += [b"".join(pieces), memoryview(b"".join(pieces)), artifact, bytes(artifact)]
    assert {vt.serialize(form, "1.0.0") for form in forms} == {vt.serialize(TEXT, "1.0.0")}


def test_vhlo_is_a_program_too() -> None:
    artifact = vt.serialize(TEXT, "1.0.0")
    text = program_of(artifact, "vhlo", debug_info=True).decode()
    assert "vhlo.func_v1" in text
    assert vt.serialize(text, "1.0.0") == artifact


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("module { foo }", r"the text is not a valid MLIR program: the text:1:10: custom op 'foo' is unknown"),
        (b"func.func @main(", "the input is not a valid MLIR program"),
        (b"module {// caf\xc3\xa9\n" + b"x" * 5000 + b"\xff", "starts with text, but byte 5017 is not UTF-8"),
        (42, "a builtins.int is not a program: expected an ir.Module"),
        (None, "a builtins.NoneType is not a program"),
        (lambda: None, "bytes or a path; pass jax.jit\\(f\\).lower\\(x\\), or torch.export.export of a module"),
        (b"", "the input is empty"),
    ],
)
def test_what_is_no_program(source: object, message: str) -> None:
    with pytest.raises(vt.InvalidProgramError, match=message):
        vt.serialize(source)


def test_a_path_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        vt.serialize("no_such_file.mlir")


def test_an_object_of_mlir_that_is_no_module(raw: RawLibrary) -> None:
    with pytest.raises(vt.InvalidProgramError, match="is not a module: expected an ir.Module"):
        vt.serialize(raw.context())


def test_a_program_that_is_parsed_but_not_verified(raw: RawLibrary) -> None:
    module = raw.parse(TEXT)
    with raw.ir.InsertionPoint.at_block_begin(module.body.operations[0].regions[0].blocks[0]), module.context:
        argument = module.body.operations[0].regions[0].blocks[0].arguments[0]
        wrong = raw.ir.RankedTensorType.get([5], raw.ir.F32Type.get(), loc=raw.ir.Location.unknown())
        raw.ir.Operation.create("chlo.erf", results=[wrong], operands=[argument], loc=raw.ir.Location.unknown())
    with pytest.raises(vt.InvalidProgramError, match="the module is not valid: "):
        vt.serialize(module, legalize=False)


def test_names_of_examples_are_their_paths() -> None:
    assert load_program(EXAMPLES / "saxpy.mlir").name.endswith("saxpy.mlir")
    assert load_program(TEXT, name="mine").name == "mine"


@pytest.mark.parametrize("number", [9, 1999, 2001])
def test_large_constants_of_booleans_in_both_forms_of_mlir(number: int) -> None:
    """One of them is that of the installed library, the other that of older or newer ones."""
    values = np.random.default_rng(0).random(number) < 0.5
    for stored in (values.astype(np.uint8), np.packbits(values, bitorder="little")):
        text = f"""func.func @main() -> tensor<{number}xi1> {{
          %0 = stablehlo.constant dense<"0x{stored.tobytes().hex().upper()}"> : tensor<{number}xi1>
          return %0 : tensor<{number}xi1>
        }}"""
        assert np.array_equal(vt.run(text, [])[0], values)


def test_a_constant_of_booleans_in_no_form() -> None:
    text = 'func.func @main() { %0 = stablehlo.constant dense<"0x010101"> : tensor<40xi1> return }'
    with pytest.raises(vt.InvalidProgramError, match="elements hex data size is invalid"):
        vt.serialize(text)


DEEP = 100_000
DEEP_TEXTS = {
    "hlo": f"HloModule m\n\nENTRY e {{\n  ROOT p = {'(' * DEEP}f32[]{')' * DEEP} parameter(0)\n}}\n",
    "array": f"module attributes {{a = {'[' * DEEP}{']' * DEEP}}} {{}}",
    "types": f"func.func @f(%a: {'tuple<' * DEEP}tensor<f32>{'>' * DEEP}) {{ return }}",
    "hidden": f"module attributes {{a = {chr(10).join(['[ // ]'] * DEEP)}{']' * DEEP}}} {{}}",
    "in strings": f'module attributes {{a = {"[{b = " * DEEP}{"}]" * DEEP}, c = "{"]" * DEEP}"}} {{}}',
}


@pytest.mark.parametrize("name", DEEP_TEXTS)
def test_text_that_nests_so_deeply_that_parsers_crash(name: str) -> None:
    """Given as a string, which is otherwise parsed in this process."""
    with pytest.raises(vt.InvalidProgramError, match="crashes or hangs"):
        vt.serialize(DEEP_TEXTS[name])
