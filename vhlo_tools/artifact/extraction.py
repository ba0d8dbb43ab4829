"""Extraction of constants as files for numpy and other readers."""

from __future__ import annotations

import io
import json
import re
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from vhlo_tools.artifact.artifact import Artifact
from vhlo_tools.artifact.constants import StoredTensor, find_constants, named_constants, numpy_name, safetensors_name
from vhlo_tools.documents import read_json
from vhlo_tools.errors import InvalidInputError
from vhlo_tools.files import Chunk, Place, Url, View, view, write_atomically
from vhlo_tools.records import dataclass

# Reader and writer of files of tensors in the safetensors format, as views
#
# The format is that of ``README.md`` in huggingface/safetensors: eight bytes with the size of a header, the header as
# JSON, then the tensors without gaps. Implemented here because the library requires every tensor in memory.

_ALIGNMENT: Final = 8
# The limit of the library, which rejects larger headers.
_LARGEST_HEADER: Final = 100_000_000
#: The metadata key for the element types of tensors stored as plain bytes.
_ELEMENT_TYPES: Final = "element_types"


@dataclass(frozen=True, slots=True)
class TensorFile:
    metadata: Mapping[str, str]
    tensors: Mapping[str, View]
    name: str


def write_tensors(tensors: Mapping[str, StoredTensor], metadata: Mapping[str, str]) -> Iterator[Chunk]:
    """The widest elements come first, so that all tensors are aligned."""
    order = sorted(tensors.items(), key=lambda item: -item[1].size)
    plain = {name: tensor.element for name, tensor in order if safetensors_name(tensor.element) is None}
    if plain:
        metadata = {**metadata, _ELEMENT_TYPES: json.dumps(plain)}
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, tensor in order:
        dtype, shape = safetensors_name(tensor.element), list(tensor.shape)
        if dtype is None:
            # Stored as bytes, which are a further dimension if an element has several.
            dtype, shape = "U8", shape + [tensor.size] * (tensor.size > 1)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + tensor.bytes]}
        at += tensor.bytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    yield struct.pack("<Q", len(text)) + text
    for _, tensor in order:
        yield from tensor.chunks()


def read_tensors(data: Chunk | bytearray, name: str) -> TensorFile:
    whole = view(data)
    size = int.from_bytes(bytes(whole[:8]), "little") if len(whole) >= 8 else len(whole)
    if size > min(_LARGEST_HEADER, len(whole) - 8):
        raise InvalidInputError(
            f"{name} is not a safetensors file, or is cut short: its header ends after {len(whole)} bytes"
        )
    try:
        header = read_json(bytes(whole[8 : 8 + size]))
        metadata = header.pop("__metadata__", {})
        if not all(isinstance(value, str) for value in metadata.values()):
            raise ValueError("its metadata values are not strings")
        data = whole[8 + size :]
        tensors = {}
        end = 0
        for tensor, entry in header.items():
            start, stop = entry["data_offsets"]
            if not isinstance(start, int) or not isinstance(stop, int) or not 0 <= start <= stop <= len(data):
                raise ValueError(f"the tensor {tensor} is located at {start} to {stop} of {len(data)} bytes")
            tensors[tensor] = data[start:stop]
            end = max(end, stop)
        if end != len(data):
            raise ValueError(f"{len(data) - end} bytes follow the last tensor")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInputError(f"{name} is not a safetensors file, or is damaged: {error}") from error
    return TensorFile(metadata, tensors, name)


# Extraction of constants as files for numpy and other readers

#: A splat of a few bytes can represent a tensor of any size; larger ones than this are not written out.
LARGEST_SPLAT: Final = 1 << 30
#: The default limit on the bytes that are written in all: thousands of splats fit into a small file.
LARGEST_SUM: Final = 8 << 30

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME: Final = 120


@dataclass(frozen=True, slots=True)
class Extracted:
    """The result of extracting a constant.

    Attributes:
        path: Its path in the program.
        file: The file with its elements; ``None`` if they were not written.
        dtype: The numpy or ml_dtypes name of its element type; ml_dtypes types are unknown in ``.npy`` files, which
            contain them as bytes to be viewed.
        reason: The reason why they were not written.
    """

    path: str
    file: Place | None
    dtype: str | None
    reason: str | None = None


def extract(
    artifact: Artifact,
    output: Place,
    *,
    only: Sequence[str] = (),
    force: bool = False,
    max_size: int = LARGEST_SUM,
    announce: Callable[[int, int], None] | None = None,
) -> list[Extracted]:
    """Write constants to a ``.safetensors`` file, a ``.npy`` file for one, or a folder for ``.npy`` files.

    ``only`` are paths of constants. ``announce`` gets their number and the sum of their bytes before anything is
    written; more than ``max_size`` bytes, or than the disk has left, are an error.
    """
    constants, _ = find_constants(artifact.file)
    tensors = {path: tensor for path, _, tensor in named_constants(artifact.file, artifact.name, constants)}
    if unknown := [path for path in only if path not in tensors]:
        raise InvalidInputError(
            f"{artifact.name} has no constant {unknown[0]}; `vhlo constants list` shows those it has"
        )
    wanted = {path: tensor for path, tensor in tensors.items() if not only or path in only}
    is_one = output.suffix == ".safetensors"
    files = dict.fromkeys(wanted, output) if is_one else _files(wanted, output)
    reasons = {path: too_large(tensor) for path, tensor in wanted.items()}
    for path, tensor in wanted.items() if not is_one else ():
        if reasons[path] is None and numpy_name(tensor.element) is None:
            reasons[path] = f"numpy does not support {tensor.element}"
    written = {path: tensor for path, tensor in wanted.items() if reasons[path] is None}
    total = sum(tensor.bytes for tensor in written.values())
    if announce is not None:
        announce(len(written), total)
    _check_space(artifact.name, output, total, max_size)
    if is_one:
        write_atomically(output, write_tensors(written, {}), force=force)
    else:
        for path, tensor in written.items():
            if isinstance(file := files[path], Path):
                file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, _npy(tensor), force=force)
    return [
        Extracted(path, files[path] if path in written else None, numpy_name(tensor.element), reasons[path])
        for path, tensor in wanted.items()
    ]


def _check_space(name: str, output: Place, total: int, max_size: int) -> None:
    if total > max_size:
        raise InvalidInputError(
            f"the constants of {name} are {total} bytes, and at most {max_size} are written: choose some with --only "
            f"(only=), or raise --max-size (max_size=)"
        )
    if isinstance(output, Url):
        return
    folder = output.absolute()
    while not folder.is_dir():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if total > free:
        raise InvalidInputError(
            f"the constants of {name} are {total} bytes, and {free} are left on the disk of {folder}: choose some with "
            f"--only (only=), or another disk"
        )


def too_large(tensor: StoredTensor) -> str | None:
    """Return the reason why elements are too large to be written out."""
    if tensor.form != "splat" or tensor.bytes <= LARGEST_SPLAT:
        return None
    return f"one element represents {tensor.bytes} bytes; at most {LARGEST_SPLAT} are expanded"


def _files(tensors: dict[str, StoredTensor], output: Place) -> dict[str, Place]:
    """Return a file for each constant, with a name that every file system accepts."""
    if output.suffix == ".npy":
        if len(tensors) != 1:
            raise InvalidInputError(
                f"{output} can contain only one constant, but there are {len(tensors)}: choose one with --only, or "
                f"name a folder"
            )
        return dict.fromkeys(tensors, output)
    files: dict[str, Place] = {}
    # Some file systems are case-insensitive.
    taken: set[str] = set()
    for number, path in enumerate(tensors):
        stem = _UNSAFE.sub("_", path).strip("_.")[:_LONGEST_NAME] or "constant"
        while stem.lower() in taken:
            stem = f"{stem}-{number}"
        taken.add(stem.lower())
        files[path] = output / f"{stem}.npy"
    return files


def _npy(tensor: StoredTensor) -> Iterator[Chunk]:
    import numpy as np

    name = numpy_name(tensor.element)
    # For ml_dtypes types, bytes: `numpy.save` writes some of them in a form that `numpy.load` cannot read.
    described = np.dtype(name).str if hasattr(np, name or "") else f"|V{tensor.size}"
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": described, "fortran_order": False, "shape": tensor.shape})
    yield head.getvalue()
    yield from tensor.chunks()
