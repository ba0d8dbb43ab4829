"""What cannot be done is refused with its reason, and damage never gets further."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.weights_files import read_header, round_trip

import vhlo_tools as vt

PROGRAM = """
func.func @main(%a: tensor<3xf32>, %p: tensor<i1>) -> tensor<3xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %1 = "stablehlo.if"(%p) ({
    %2 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
    %3 = stablehlo.select %2, %0, %a : tensor<3xi1>, tensor<3xf32>
    stablehlo.return %3 : tensor<3xf32>
  }, {
    %2 = stablehlo.constant dense<4.0> : tensor<3xf32>
    stablehlo.return %2 : tensor<3xf32>
  }) : (tensor<i1>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    round_trip(vt.serialize(PROGRAM, "1.9.0"), tmp_path)
    return tmp_path


def restore(folder: Path) -> vt.Artifact:
    return vt.restore_constants(folder / "out.mlirbc", folder / "out.safetensors")


def write(folder: Path, header: dict[str, Any], data: bytes) -> None:
    text = json.dumps(header).encode()
    (folder / "out.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)


Record = dict[str, Any]


def changes() -> dict[str, tuple[Callable[[Record], object], str]]:
    """Return what can be wrong with the record, and what is said of it."""
    moved: Callable[[Record], Any] = lambda record: record["moved"][1]  # noqa: E731
    return {
        "format": (lambda record: record.update(format=2), "has format 2 of a newer version of vhlo: expected 1"),
        "function": (
            lambda record: record.update(function="other"),
            "the program has no function @other; it has @main",
        ),
        "function list": (lambda record: record.update(function=[]), "is damaged: .*expected the name of a function"),
        "count": (lambda record: record["moved"].pop(), "@main has 5 arguments, but .* belongs to a function with 4"),
        "type": (lambda record: moved(record).update(type="tensor<4xi1>"), "argument 3 of @main is tensor<3xi1>, but"),
        "tensor": (lambda record: moved(record).update(tensor="gone"), "has no tensor gone"),
        "shape": (lambda record: moved(record).update(shape=[4]), "has 3 bytes: expected 4"),
        "element": (lambda record: moved(record).update(element="token"), "elements of token, which is not supported"),
        "nested": (lambda record: moved(record).update(element="complex<" * 9999), "which is not supported"),
        "form": (lambda record: moved(record).update(form="square"), "square elements of i1, which is not supported"),
        "digest": (
            lambda record: moved(record).update(digest="0"),
            "contains other elements than those externalized from @main",
        ),
        "splat": (
            lambda record: record["moved"][2].update(splat="00"),
            "contains other elements than those externalized from",
        ),
        "hex": (lambda record: record["moved"][2].update(splat="x"), "is damaged: its record of constants"),
        "position": (
            lambda record: moved(record).update(position=[0, 0, 1, 5, 0, 0]),
            "there is no location for @main/1",
        ),
        "deep": (lambda record: moved(record).update(position=[0, 0, 0, 0, 0, 0]), "there is no location for @main/1"),
        "far": (lambda record: moved(record).update(position=[0, 0, 99]), "there is no location for @main/1"),
        "elsewhere": (
            lambda record: moved(record).update(position=[0, 0, 1, 1, 0, 0]),
            "belongs to another artifact: a value is used outside its scope",
        ),
        "number": (lambda record: moved(record).update(argument=7), "is damaged: its record of constants"),
        "negative": (lambda record: moved(record).update(position=[0, 0, -1]), "is damaged: its record of constants"),
        "missing": (lambda record: moved(record).pop("path"), "is damaged: its record of constants"),
        "kind": (lambda record: record.update(moved=7), "is damaged: its record of constants"),
    }


@pytest.mark.parametrize("change", changes())
def test_weights_that_do_not_fit(change: str, folder: Path) -> None:
    header, data = read_header(folder / "out.safetensors")
    record = json.loads(header["__metadata__"]["vhlo_tools.constants"])
    edit, message = changes()[change]
    edit(record)
    header["__metadata__"]["vhlo_tools.constants"] = json.dumps(record)
    write(folder, header, data)
    with pytest.raises(vt.InvalidInputError, match=message):
        restore(folder)


def test_other_values(folder: Path) -> None:
    header, data = read_header(folder / "out.safetensors")
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        write(folder, header, bytes(changed))
        with pytest.raises(vt.InvalidInputError, match="contains other elements than those externalized from @main/"):
            restore(folder)
    write(folder, header, data)
    assert vt.diff(restore(folder), vt.serialize(PROGRAM, "1.9.0")) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a safetensors file, or is cut short"),
        (b"\xff" * 100, "is not a safetensors file, or is cut short"),
        (b"\2" + bytes(7) + b"{}", "was not written by `vhlo constants externalize`"),
        (b"\2" + bytes(7) + b"[]", "is not a safetensors file, or is damaged"),
        (b"\2" + bytes(7) + b"{}more", "4 bytes follow the last tensor"),
        (b"\x14" + bytes(7) + b'{"__metadata__": 17}', "is not a safetensors file, or is damaged"),
        (b"\x09" + bytes(7) + b'{"a": 17}', "is not a safetensors file, or is damaged"),
    ],
)
def test_what_is_no_file_of_weights(content: bytes, message: str, folder: Path) -> None:
    (folder / "out.safetensors").write_bytes(content)
    with pytest.raises(vt.InvalidInputError, match=message):
        restore(folder)


def test_damage_anywhere_is_refused_or_does_no_harm(folder: Path) -> None:
    original = vt.open_artifact((folder / "again.mlirbc").read_bytes())
    chance = random.Random(0)
    outcomes = {"refused": 0, "restored": 0}
    for name in ("out.safetensors", "out.mlirbc"):
        data = (folder / name).read_bytes()
        for _ in range(400):
            damaged = bytearray(data)
            damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            (folder / name).write_bytes(damaged[: chance.choice([len(data), chance.randrange(len(data))])])
            try:
                restored = restore(folder)
                outcomes["restored"] += 1
                if name == "out.safetensors":
                    # What a name or a path is called does not matter.
                    assert vt.diff(original, restored, locations=True) == []
            except (vt.InvalidInputError, vt.MalformedArtifactError, vt.UnsupportedFeatureError):
                outcomes["refused"] += 1
        (folder / name).write_bytes(data)
    assert outcomes["refused"] > 400
    assert outcomes["restored"] > 10


@pytest.mark.parametrize("version", ["0.9.0", "1.9.0"])
def test_a_function_that_others_call(version: str) -> None:
    artifact = vt.serialize(
        """func.func @main(%a: tensor<f32>) -> tensor<f32> {
          %0 = stablehlo.constant dense<1.0> : tensor<f32>
          return %0 : tensor<f32> }
        func.func @other(%a: tensor<f32>) -> tensor<f32> {
          %0 = func.call @main(%a) : (tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32> }""",
        version,
    )
    with pytest.raises(vt.InvalidInputError, match="@main is called by other functions"):
        vt.externalize_constants(artifact, min_size=0)
    with pytest.raises(vt.InvalidInputError, match="the program has no function @nobody; it has @main, @other"):
        vt.externalize_constants(artifact, min_size=0, function="nobody")
    assert vt.externalize_constants(artifact, min_size=0, function="other").record.moved == ()


def test_a_function_that_ops_name() -> None:
    artifact = vt.serialize(
        """func.func @main(%a: tensor<f32>) -> tensor<f32> {
          %0 = stablehlo.composite "my.op" %a {decomposition = @body} : (tensor<f32>) -> tensor<f32>
          %1 = "stablehlo.custom_call"(%0) {call_target_name = "k", called_computations = [@called]}
            : (tensor<f32>) -> tensor<f32>
          return %1 : tensor<f32> }
        func.func private @body(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }
        func.func private @called(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"""
    )
    for name in ("body", "called"):
        with pytest.raises(vt.InvalidInputError, match=f"@{name} is called by other functions"):
            vt.externalize_constants(artifact, min_size=0, function=name)
    assert vt.externalize_constants(artifact, min_size=0).notes == ()


def test_a_module_that_says_something_of_each_argument() -> None:
    artifact = vt.serialize(
        """module attributes {mhlo.xla_entry_computation_parameter_layouts = []} {
          func.func @main() -> tensor<f32> {
            %0 = stablehlo.constant dense<1.0> : tensor<f32>
            return %0 : tensor<f32> } }""",
        allow_other_dialects=True,
    )
    with pytest.raises(vt.InvalidInputError, match="so its arguments cannot change"):
        vt.externalize_constants(artifact, min_size=0)


def test_constants_that_stay(tmp_path: Path) -> None:
    artifact = vt.serialize(
        """func.func @main(%a: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
          %0 = stablehlo.constant {mhlo.frontend_attributes = {k = "v"}} dense<1.0> : tensor<f32>
          %1 = stablehlo.constant dense<2.0> : tensor<f32>
          %2 = "stablehlo.reduce"(%a, %1) ({
          ^bb0(%x: tensor<f32>, %y: tensor<f32>):
            %3 = stablehlo.constant dense<3.0> : tensor<f32>
            %4 = stablehlo.clamp %x, %3, %y : tensor<f32>
            stablehlo.return %4 : tensor<f32>
          }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
          return %0, %2 : tensor<f32>, tensor<f32> }"""
    )
    result, restored = round_trip(artifact, tmp_path)
    assert [each.path for each in result.record.moved] == ["@main/1:stablehlo.constant"]
    assert result.notes == (
        "@main/0:stablehlo.constant remains a constant: it has attributes that arguments cannot have",
        "@main/2:stablehlo.reduce/0/0:stablehlo.constant remains a constant: it is in stablehlo.reduce, whose regions "
        "should not use values from outside",
    )
    assert vt.diff(artifact, restored, locations=True) == []


def test_a_value_that_another_function_uses_too_is_counted(tmp_path: Path) -> None:
    constant = "%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32> return %0 : tensor<2xf32>"
    artifact = vt.serialize(
        f"""func.func @main() -> tensor<2xf32> {{ %1 = func.call @f() : () -> tensor<2xf32> {constant} }}
        func.func private @f() -> tensor<2xf32> {{ {constant} }}"""
    )
    result, restored = round_trip(artifact, tmp_path)
    assert result.notes == (
        "constants of functions other than @main, which were not externalized: 1",
        "values that other attributes or functions also use, and that remain in the artifact: 1, 8 bytes",
    )
    assert vt.diff(artifact, restored, locations=True) == []
