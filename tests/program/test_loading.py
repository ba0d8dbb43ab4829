from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from corpus import EXAMPLES
from raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.api import program_of
from vhlo_tools.api.frontends import FRONTENDS
from vhlo_tools.artifact import Kind
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
        (b"// caf\xc3\xa9\n" + b"x" * 5000 + b"\xff", "starts as text, but byte 5009 is not UTF-8"),
        (42, "a builtins.int is no program: expected an ir.Module"),
        (None, "a builtins.NoneType is no program"),
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
    with pytest.raises(vt.InvalidProgramError, match="is no module: expected an ir.Module"):
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
