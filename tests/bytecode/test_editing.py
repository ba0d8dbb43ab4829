"""Edits of the decoded parts are edits of the program, as MLIR reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES, example_programs, some_versions

import vhlo_tools as vt
from vhlo_tools.bindings import Provider
from vhlo_tools.bytecode import Entry, ResourceGroup, decode, encode
from vhlo_tools.bytecode.stripping import strip_locations
from vhlo_tools.cli.main import main
from vhlo_tools.spec import encodings_of

pytestmark = pytest.mark.every_python


def with_locations(provider: Provider, data: bytes) -> str:
    return provider.text(vt.deserialize(data), debug_info=True)


def stripped_by_mlir(provider: Provider, data: bytes) -> str:
    module = vt.deserialize(data)
    provider.run_passes(module, "strip-debuginfo", verify=True)
    return provider.text(module, debug_info=True)


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", example_programs(), ids=lambda path: path.name)
def test_strip_gives_the_program_of_strip_debuginfo(path: Path, provider: Provider) -> None:
    for version in some_versions(path.name):
        try:
            artifact = vt.serialize(path, version, allow_other_dialects=True)
        except vt.DowngradeError:
            continue
        stripped = vt.strip(artifact)
        assert (stripped.version, stripped.bytecode_version) == (version, artifact.bytecode_version)
        assert with_locations(provider, bytes(stripped)) == stripped_by_mlir(provider, bytes(artifact))
        assert len(stripped) <= len(artifact) + 8
        assert vt.strip(stripped) == stripped


def test_what_another_dialect_writes_alike_is_no_location() -> None:
    program = "func.func @main() { %0 = arith.constant 1 : i32 return }"
    file = decode(bytes(vt.serialize(program, allow_other_dialects=True)))
    arith = next(index for index in range(len(file.dialects.names)) if file.dialect(index) == "arith")
    unknown = next(code for code, each in encodings_of("builtin", "attribute").items() if each.name == "unknown")
    file.attributes[0] = Entry(arith, True, bytes([unknown << 1 | 1]))
    strip_locations(file)
    (module,) = file.ir.operations
    assert file.dialect(file.attributes[module.location].dialect) == "builtin"


def test_what_locations_used_is_gone() -> None:
    artifact = vt.serialize(EXAMPLES / "transformer_step.mlir")
    assert b"make_transformer_step.py" in bytes(artifact)
    stripped = vt.strip(artifact)
    assert b"make_transformer_step.py" not in bytes(stripped)
    assert len(stripped) < 0.75 * len(artifact)


def test_serialize_without_debug_info(tmp_path: Path, capfd: Any) -> None:
    path, out, other = str(EXAMPLES / "transformer_step.mlir"), str(tmp_path / "a"), str(tmp_path / "b")
    assert main(["serialize", path, "--strip-debug-info", "--target", "1.9.0", "-o", out]) == 0
    assert main(["serialize", path, "--target", "1.9.0", "-o", other]) == 0
    assert main(["retarget", "--strip-debug-info", other, "-o", other, "--force"]) == 0
    assert vt.open_artifact(out) == vt.open_artifact(other)
    assert main(["retarget", "--strip-debug-info", path, "-o", str(tmp_path / "c")]) == 2
    assert "is text: expected a portable artifact" in capfd.readouterr().err


def test_a_symbol_is_renamed() -> None:
    data = bytes(vt.serialize(EXAMPLES / "convnet.bc", "1.0.0"))
    file = decode(data)
    index = file.strings.index(b"relu")
    # The name stands once in the string table, and both the function and its calls refer to it.
    file.strings[index] = b"rectified_linear"
    before, after = str(vt.deserialize(data)), str(vt.deserialize(encode(file)))
    assert after == before.replace("@relu(", "@rectified_linear(")
    assert before != after


def test_an_attribute_is_dropped() -> None:
    artifact = vt.serialize(EXAMPLES / "transformer_step.mlir", "1.4.0")
    file = decode(bytes(artifact))
    module = file.ir.operations[0]
    assert module.attributes is not None
    dictionary = file.decode("attribute", module.attributes)
    assert dictionary is not None
    pairs = dictionary.field("elements")
    kept = tuple(pair for pair in pairs if b"num_replicas" not in name_of(file, pair[0]))
    assert len(kept) == len(pairs) - 1
    entry = file.encode("attribute", type(dictionary)(dictionary.dialect, dictionary.encoding, (kept,)))
    file.attributes.append(Entry(entry.dialect, True, entry.data))
    module.attributes = len(file.attributes) - 1
    before, after = str(vt.deserialize(artifact)), str(vt.deserialize(encode(file)))
    assert after == before.replace(", mhlo.num_replicas = 1 : i32", "")
    assert before != after


def name_of(file: Any, index: int) -> bytes:
    name = file.decode("attribute", index)
    assert name is not None
    text: bytes = file.strings[name.field("value")]
    return text


def test_an_op_is_added(provider: Provider) -> None:
    """What counts values and lengths is made anew, so that nothing but the op itself has to be edited."""
    text = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.abs %a : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    file = decode(bytes(vt.serialize(text)))
    (module,) = file.ir.operations
    (function,) = module.regions[0].blocks[0].operations
    operations = function.regions[0].blocks[0].operations
    twice = replace(operations[0], operands=(1,))
    operations.insert(1, twice)
    operations[2].operands = (2,)
    printed = provider.text(vt.deserialize(encode(file)))
    assert printed.count("stablehlo.abs") == 2
    assert "stablehlo.abs %0" in printed
    assert "return %1" in printed


@pytest.mark.parametrize(("target", "version"), [("0.10.0", 3), ("0.12.0", 0), ("1.9.0", 5)])
def test_another_version_of_the_format(target: str, version: int, provider: Provider) -> None:
    artifact = vt.serialize(EXAMPLES / "convnet.bc", target)
    file = decode(bytes(artifact))
    file.version = version
    again = vt.open_artifact(encode(file))
    assert again.bytecode_version == version
    assert with_locations(provider, bytes(again)) == with_locations(provider, bytes(artifact))


def test_edits_that_make_no_file_are_refused() -> None:
    file = decode(bytes(vt.serialize(EXAMPLES / "saxpy.mlir")))
    file.version = 4
    with pytest.raises(
        ValueError,
        match="bytecode version 6 cannot be changed to version 4 by its version number alone: only one of them stores",
    ):
        encode(file)
    file = decode(bytes(vt.serialize(EXAMPLES / "saxpy.mlir")))
    file.order = [name for name in file.order if not name.startswith("resource")]
    file.resources.append(ResourceGroup(0, True, ()))
    with pytest.raises(ValueError, match="resources were added to a file that has no resource section"):
        encode(file)
    file = decode(bytes(vt.serialize(EXAMPLES / "saxpy.mlir")))
    file.ir.operations[0].location = -1
    with pytest.raises(ValueError, match="a location or an operand that is no index"):
        encode(file)


def test_arguments_without_a_place_need_a_newer_version() -> None:
    file = decode(bytes(vt.strip(vt.serialize(EXAMPLES / "saxpy.mlir", "0.14.0"))))
    file.version = 3
    with pytest.raises(ValueError, match="a block argument has no location, which version 3 of the format requires"):
        encode(file)


def test_a_long_stack_of_callers_is_printed(provider: Provider) -> None:
    place = '"f.py":1:1'
    for line in range(2, 400):
        place = f'callsite("f.py":{line}:1 at {place})'
    text = f"module {{}} loc({place})"
    printed = vt.serialize(text).text(debug_info=True)
    assert printed.count("callsite(") == 398
