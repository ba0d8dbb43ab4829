"""Recognition of the kind of a file by its contents, never by its name; of a folder, by the file in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from os import PathLike
from typing import TYPE_CHECKING, Final

from vhlo_tools.bytecode import MAGIC
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.mapping import view as as_view

if TYPE_CHECKING:
    from vhlo_tools.formats.storage import Buffer
    from vhlo_tools.mapping import View

#: The prefix of the producer of a portable artifact, before its version (``stablehlo/dialect/Serialization.cpp``).
ARTIFACT_PRODUCER: Final = b"StableHLO_v"

#: The file that makes a folder a SavedModel of TensorFlow.
SAVED_MODEL_FILE: Final = "saved_model.pb"

_TEXT_SAMPLE = 4096


class Kind(StrEnum):
    """The kinds of input."""

    PORTABLE_ARTIFACT = "portable-artifact"
    MLIR_BYTECODE = "mlir-bytecode"
    JAX_EXPORT = "jax-export"
    MLIR_TEXT = "mlir-text"
    HLO_TEXT = "hlo-text"
    HLO_PROTO = "hlo-proto"
    TORCH_EXPORT = "torch-export"
    #: A folder; all others except the next are the contents of a file.
    SAVED_MODEL = "saved-model"
    #: A Python object of the class ``jax.stages.Lowered``.
    JAX_LOWERED = "jax-lowered"


def recognise(data: Buffer, name: str = "the input") -> Kind:
    if len(data) == 0:
        raise InvalidProgramError(f"{name} is empty: expected {_EXPECTED}")
    view = as_view(data)
    for kind, matches in _SIGNS.items():
        if matches(view):
            if kind is Kind.MLIR_TEXT and not (bytes(view[:_TEXT_SAMPLE]).strip() or bytes(view).strip()):
                raise InvalidProgramError(f"{name} contains only white space: expected {_EXPECTED}")
            return kind
    raise InvalidProgramError(
        f"{name} has no known program format: it starts with {bytes(view[:8])!r}, expected {_EXPECTED}"
    )


def is_saved_model(path: str | PathLike[str]) -> bool:
    try:
        return os.path.isfile(os.path.join(path, SAVED_MODEL_FILE))  # noqa: PTH113, PTH118 - a Path of a long text raises
    except ValueError:
        return False


_EXPECTED = "a portable artifact, MLIR bytecode or text, HLO, a jax.export file or a torch.export file"


def _is_artifact(data: View) -> bool:
    # The version of the format is a varint of one to nine bytes between the magic and the producer.
    head = bytes(data[: len(MAGIC) + 9 + len(ARTIFACT_PRODUCER)])
    return head.startswith(MAGIC) and ARTIFACT_PRODUCER in head[len(MAGIC) + 1 :]


def _is_bytecode(data: View) -> bool:
    return bytes(data[: len(MAGIC)]) == MAGIC


def _is_text(data: View) -> bool:
    sample = bytes(data[:_TEXT_SAMPLE])
    if b"\0" in sample:
        return False
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        # The sample may end within a character.
        return len(data) > _TEXT_SAMPLE and error.start > _TEXT_SAMPLE - 4
    return True


def _is_hlo_text(data: View) -> bool:
    return bytes(data[:_TEXT_SAMPLE]).lstrip().startswith(b"HloModule ") and _is_text(data)


def _is_torch_export(data: View) -> bool:
    # Imported here, as are the next, because most files are artifacts, and known before.
    from vhlo_tools.formats.torch_export import is_torch_export

    return is_torch_export(data)


def _is_jax_export(data: View) -> bool:
    from vhlo_tools.formats.jax_export.export_file import is_jax_export

    return is_jax_export(data)


def _is_hlo_proto(data: View) -> bool:
    from vhlo_tools.formats.hlo.detection import is_hlo_proto

    return is_hlo_proto(data)


# In the order of the checks: the first match decides.
_SIGNS: Final[dict[Kind, Callable[[View], bool]]] = {
    Kind.PORTABLE_ARTIFACT: _is_artifact,
    Kind.MLIR_BYTECODE: _is_bytecode,
    Kind.TORCH_EXPORT: _is_torch_export,
    Kind.JAX_EXPORT: _is_jax_export,
    Kind.HLO_PROTO: _is_hlo_proto,
    Kind.HLO_TEXT: _is_hlo_text,
    Kind.MLIR_TEXT: _is_text,
}
