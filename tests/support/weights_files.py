"""Files of weights, read as a user would: the format by hand, values by numpy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import vhlo_tools as vt

_DTYPES = {
    "BOOL": "bool",
    **{f"{sign}{bits}": f"{name}{bits}" for sign, name in (("I", "int"), ("U", "uint")) for bits in (8, 16, 32, 64)},
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "C64": "complex64",
}


def read_header(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the header of a safetensors file, and what follows it."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def arguments_of(path: Path) -> list[np.ndarray]:
    """Return the arrays for the new arguments of a program, in their order."""
    header, data = read_header(path)
    moved = json.loads(header["__metadata__"]["vhlo_tools.constants"])["moved"]
    arrays = []
    for each in sorted(moved, key=lambda each: each["argument"]):
        entry = header[each["tensor"]]
        start, stop = entry["data_offsets"]
        arrays.append(np.frombuffer(data[start:stop], _DTYPES[entry["dtype"]]).reshape(entry["shape"]))
    return arrays


def text_of(artifact: vt.Artifact) -> str:
    """Return a program as the installed library prints it, with locations."""
    return str(vt.deserialize(artifact).operation.get_asm(enable_debug_info=True))


def round_trip(artifact: vt.Artifact, folder: Path, *, min_size: int = 0) -> tuple[vt.Externalized, vt.Artifact]:
    """Take constants out and put them back, by way of files."""
    result = vt.externalize_constants(artifact, min_size=min_size)
    result.artifact.save(folder / "out.mlirbc", force=True)
    result.save_weights(folder / "out.safetensors", force=True)
    vt.restore_constants(folder / "out.mlirbc", folder / "out.safetensors").save(folder / "again.mlirbc", force=True)
    return result, vt.open_artifact((folder / "again.mlirbc").read_bytes(), name="restored")
