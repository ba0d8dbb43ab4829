"""Files of tensors in the format of safetensors, written and read as views.

The format is that of ``README.md`` in huggingface/safetensors: eight bytes with the size of a header, the header as
JSON, then the tensors without gaps. Written by hand, for the library wants every tensor in memory.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vhlo_tools.bytecode import Chunk
from vhlo_tools.errors import InvalidInputError
from vhlo_tools.weights.element_types import safetensors_name
from vhlo_tools.weights.tensors import Tensor

__all__ = ["TensorFile", "read_tensors", "write_tensors"]

_ALIGNMENT: Final = 8
# As in the library, which refuses larger ones.
_LARGEST_HEADER: Final = 100_000_000
#: In the metadata: the element types of tensors that stand as plain bytes.
_ELEMENT_TYPES: Final = "element_types"


@dataclass(frozen=True, slots=True)
class TensorFile:
    """A file of tensors.

    Attributes:
        metadata: What it says beside the tensors.
        tensors: The bytes of each, by name.
        name: What to call it in messages.
    """

    metadata: Mapping[str, str]
    tensors: Mapping[str, memoryview]
    name: str


def write_tensors(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Iterator[Chunk]:
    """Yield a file of ``tensors``, those with the widest elements first, so that all of them are aligned."""
    order = sorted(tensors.items(), key=lambda item: -item[1].size)
    plain = {name: tensor.element for name, tensor in order if safetensors_name(tensor.element) is None}
    if plain:
        metadata = {**metadata, _ELEMENT_TYPES: json.dumps(plain)}
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, tensor in order:
        dtype, shape = safetensors_name(tensor.element), list(tensor.shape)
        if dtype is None:
            # As bytes, which are a dimension of their own where an element has several.
            dtype, shape = "U8", shape + [tensor.size] * (tensor.size > 1)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + tensor.bytes]}
        at += tensor.bytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    yield struct.pack("<Q", len(text)) + text
    for _, tensor in order:
        yield from tensor.chunks()


def read_tensors(data: Chunk, name: str) -> TensorFile:
    """Return the tensors of a file.

    Raises:
        InvalidInputError: If it is none, or damaged.
    """
    view = memoryview(data)
    size = struct.unpack("<Q", view[:8])[0] if len(view) >= 8 else len(view)
    if size > min(_LARGEST_HEADER, len(view) - 8):
        raise InvalidInputError(
            f"{name} is no safetensors file, or is cut short: its header ends after {len(view)} bytes"
        )
    try:
        header = json.loads(bytes(view[8 : 8 + size]))
        metadata = header.pop("__metadata__", {})
        return TensorFile(_checked_metadata(metadata), _tensors(header, view[8 + size :]), name)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidInputError(f"{name} is no safetensors file, or a damaged one: {error}") from error


def _checked_metadata(metadata: Mapping[str, str]) -> Mapping[str, str]:
    if not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata are not text")
    return metadata


def _tensors(header: Mapping[str, Any], data: memoryview) -> dict[str, memoryview]:
    tensors = {}
    end = 0
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        if not isinstance(start, int) or not isinstance(stop, int) or not 0 <= start <= stop <= len(data):
            raise ValueError(f"the tensor {name} stands at {start} to {stop} of {len(data)} bytes")
        tensors[name] = data[start:stop]
        end = max(end, stop)
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes follow the last tensor")
    return tensors
