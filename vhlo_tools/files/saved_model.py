"""Reader of the signatures of TensorFlow SavedModels, which are folders, without TensorFlow.

The main file is a protocol buffer, of which only the path to the signatures is read. The field numbers are those of
``tensorflow/core/protobuf/saved_model.proto`` and ``meta_graph.proto``, and never change.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files.mapping import view
from vhlo_tools.files.protobuf import Message
from vhlo_tools.files.recognition import SAVED_MODEL_FILE, read_bytes
from vhlo_tools.records import dataclass

_VARIABLES: Final = "variables"
# The prefix of the signatures that TensorFlow itself uses when it loads a SavedModel.
_INTERNAL: Final = "__saved_model_"

# Field numbers: of the file, a graph, its information, an entry of a map, a tensor, and a shape.
_META_GRAPHS, _META_INFO, _SIGNATURES, _TAGS, _TENSORFLOW_VERSION = 2, 1, 5, 4, 5
_KEY, _VALUE = 1, 2
_SIDES: Final = {1: "inputs", 2: "outputs"}
_DTYPE, _SHAPE = 2, 3
_DIMENSIONS, _SIZE, _UNKNOWN_RANK = 2, 1, 3

#: The types of `tensorflow/core/framework/types.proto` that tensors of programs have.
_TYPES: Final = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    7: "string",
    8: "complex64",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    20: "resource",
    21: "variant",
    22: "uint32",
    23: "uint64",
}


@dataclass(frozen=True, slots=True)
class SavedTensor:
    name: str
    type: str  # of the elements, as numpy names it
    shape: tuple[int | None, ...] | None  # None for each unknown dimension; None if the rank is unknown

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.type} of any shape"
        return f"{self.type}[{', '.join('?' if size is None else str(size) for size in self.shape)}]"


@dataclass(frozen=True, slots=True)
class SavedSignature:
    """A function of a SavedModel with named inputs and outputs."""

    name: str
    inputs: tuple[SavedTensor, ...]
    outputs: tuple[SavedTensor, ...]


@dataclass(frozen=True, slots=True)
class SavedModel:
    tensorflow_version: str  # the release that wrote it
    tags: tuple[str, ...]  # normally ``serve``
    signatures: tuple[SavedSignature, ...]
    graph_bytes: int
    variable_bytes: int


def read_saved_model(path: Path) -> SavedModel:
    data = read_bytes(path / SAVED_MODEL_FILE)
    whole = Message(view(data), _SECTION)
    graphs = [value for number, value in whole.fields() if number == _META_GRAPHS and isinstance(value, Message)]
    if not graphs:
        raise MalformedArtifactError(f"{path / SAVED_MODEL_FILE} contains no graph", section=_SECTION)
    version, tags, signatures = "", [], []
    # TensorFlow has not written more than one graph since version 1.
    for number, value in graphs[0].fields():
        if number == _META_INFO:
            for field, text in whole.message(value).fields():
                if field == _TAGS:
                    tags.append(whole.message(text).text())
                elif field == _TENSORFLOW_VERSION:
                    version = whole.message(text).text()
        elif number == _SIGNATURES:
            signature = _signature(whole.message(value))
            if not signature.name.startswith(_INTERNAL):
                signatures.append(signature)
    folder = path / _VARIABLES
    return SavedModel(
        tensorflow_version=version,
        tags=tuple(tags),
        signatures=tuple(sorted(signatures, key=lambda each: each.name)),
        graph_bytes=len(data),
        variable_bytes=sum(each.stat().st_size for each in folder.iterdir()) if folder.is_dir() else 0,
    )


_SECTION: Final = "SavedModel"


def _entry(part: Message) -> tuple[str, Message]:
    """Return the key and the value of an entry of a map."""
    key, value = "", Message(memoryview(b""), part.file, part.at)
    for number, field in part.fields():
        if number == _KEY:
            key = part.message(field).text()
        elif number == _VALUE:
            value = part.message(field)
    return key, value


def _signature(part: Message) -> SavedSignature:
    name, signature = _entry(part)
    sides: dict[str, list[SavedTensor]] = {side: [] for side in _SIDES.values()}
    for number, field in signature.fields():
        if number in _SIDES:
            sides[_SIDES[number]].append(_tensor(*_entry(part.message(field))))
    inputs, outputs = (tuple(sorted(each, key=lambda tensor: tensor.name)) for each in sides.values())
    return SavedSignature(name, inputs, outputs)


def _tensor(name: str, info: Message) -> SavedTensor:
    kind, shape = 0, None
    for number, field in info.fields():
        if number == _DTYPE:
            kind = info.number(field)
        elif number == _SHAPE:
            shape = _shape(info.message(field))
    return SavedTensor(name, _TYPES.get(kind, f"type {kind}"), shape)


def _shape(part: Message) -> tuple[int | None, ...] | None:
    sizes: list[int | None] = []
    for number, field in part.fields():
        if number == _UNKNOWN_RANK and part.number(field):
            return None
        if number == _DIMENSIONS:
            size = next((part.number(value) for key, value in part.message(field).fields() if key == _SIZE), 0)
            # Negative sizes are encoded as the 64 bits of their two's complement.
            sizes.append(size if size < 1 << 63 else None)
    return tuple(sizes)
