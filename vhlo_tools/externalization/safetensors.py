"""Reader and writer of files of tensors in the safetensors format, as views.

The format is that of ``README.md`` in huggingface/safetensors: eight bytes with the size of a header, the header as
JSON, then the tensors without gaps. Implemented here because the library requires every tensor in memory.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vhlo_tools.documents import read_json
from vhlo_tools.errors import InvalidInputError
from vhlo_tools.externalization.element_types import safetensors_name
from vhlo_tools.externalization.tensors import StoredTensor
from vhlo_tools.files import Chunk, View, view
from vhlo_tools.records import dataclass

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
        return TensorFile(_checked_metadata(metadata), _tensors(header, whole[8 + size :]), name)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInputError(f"{name} is not a safetensors file, or is damaged: {error}") from error


def _checked_metadata(metadata: Mapping[str, str]) -> Mapping[str, str]:
    if not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata values are not strings")
    return metadata


def _tensors(header: Mapping[str, Any], data: View) -> dict[str, View]:
    tensors = {}
    end = 0
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        if not isinstance(start, int) or not isinstance(stop, int) or not 0 <= start <= stop <= len(data):
            raise ValueError(f"the tensor {name} is located at {start} to {stop} of {len(data)} bytes")
        tensors[name] = data[start:stop]
        end = max(end, stop)
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes follow the last tensor")
    return tensors
