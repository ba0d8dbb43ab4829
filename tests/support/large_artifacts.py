"""Artifacts with constants of any size, made without the compiler, which would hold them several times."""

from __future__ import annotations

import os
from pathlib import Path

import vhlo_tools as vt
from vhlo_tools.bytecode import Entry, decode, encode_chunks
from vhlo_tools.bytecode.primitives import varint
from vhlo_tools.files import read_bytes
from vhlo_tools.files.atomic_writes import write_atomically
from vhlo_tools.files.mapping import view

_BLOCK = 1 << 24


def write_artifact_of_constants(path: Path, size: int, number: int, version: str) -> None:
    """Write an artifact of ``number`` constants of f32 and random elements, together of about ``size`` bytes.

    The library makes the program with splats, and their bytes are then replaced by more of them.
    """
    length = size // number // 4
    tensor = f"tensor<{length}xf32>"
    lines = [f"func.func @main(%0: {tensor}) -> {tensor} {{"]
    for index in range(number):
        lines.append(f"  %c{index} = stablehlo.constant dense<{index + 1}.0> : {tensor}")
        lines.append(f"  %{index + 1} = stablehlo.add %{index}, %c{index} : {tensor}")
    file = decode(bytes(vt.serialize("\n".join([*lines, f"  return %{number} : {tensor}", "}"]), version)))
    # Where the elements of each constant stand: behind what an entry begins with.
    places: list[tuple[int, int, int]] = []
    elements = path.with_suffix(".elements")
    random = os.urandom(_BLOCK)
    with elements.open("wb") as out:
        for index in range(len(file.attributes)):
            value = file.decode("attribute", index)
            if value is None or value.name != "tensor_v1":
                continue
            start = out.tell()
            out.write(varint(value.encoding.code) + varint(value.field("type")) + varint(4 * length))
            for at in range(0, 4 * length, _BLOCK):
                out.write(random[: min(_BLOCK, 4 * length - at)])
            # So that no two are alike.
            out.seek(-4, os.SEEK_CUR)
            out.write(index.to_bytes(4, "little"))
            places.append((index, start, out.tell()))
    data = view(read_bytes(elements))
    for index, start, stop in places:
        file.attributes[index] = Entry(file.attributes[index].dialect, True, data[start:stop])
    write_atomically(path, encode_chunks(file), force=True)
    elements.unlink()


def write_artifact_of_ops(path: Path, number: int, version: str) -> None:
    ops = ("add", "multiply", "subtract", "maximum")
    lines = ["func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {"]
    lines += [f"  %{i + 1} = stablehlo.{ops[i % 4]} %{i}, %{max(0, i - 3)} : tensor<4xf32>" for i in range(number)]
    text = "\n".join([*lines, f"  return %{number} : tensor<4xf32>", "}"])
    vt.serialize(text, version).save(path, force=True)
