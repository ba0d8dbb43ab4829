"""What a file is, told from its contents and never from its name."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from vhlo_tools.artifact.hlo_content import is_hlo_proto
from vhlo_tools.artifact.jax_export import is_jax_export
from vhlo_tools.artifact.storage import Buffer
from vhlo_tools.artifact.torch_export import is_torch_export
from vhlo_tools.bytecode import MAGIC
from vhlo_tools.errors import InvalidProgramError

__all__ = ["ARTIFACT_PRODUCER", "Kind", "recognise"]

#: How the producer of a portable artifact begins; its version follows (``stablehlo/dialect/Serialization.cpp``).
ARTIFACT_PRODUCER: Final = b"StableHLO_v"

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
    #: A folder; all others but the next are the contents of a file.
    SAVED_MODEL = "saved-model"
    #: An object of Python, of the class ``jax.stages.Lowered``.
    JAX_LOWERED = "jax-lowered"


def recognise(data: Buffer, name: str = "the input") -> Kind:
    """Tell what ``data`` is.

    Args:
        data: The whole contents.
        name: What to call it in a message.

    Raises:
        InvalidProgramError: If it is empty, white space, or of no known kind.
    """
    if len(data) == 0:
        raise InvalidProgramError(f"{name} is empty: expected {_EXPECTED}")
    view = memoryview(data)
    for kind, matches in _SIGNS.items():
        if matches(view):
            if kind is Kind.MLIR_TEXT and not (bytes(view[:_TEXT_SAMPLE]).strip() or bytes(view).strip()):
                raise InvalidProgramError(f"{name} holds nothing but white space: expected {_EXPECTED}")
            return kind
    raise InvalidProgramError(
        f"{name} starts with {bytes(view[:8])!r}, which is the start of no kind of program known here: "
        f"expected {_EXPECTED}"
    )


_EXPECTED = "a portable artifact, MLIR bytecode or text, HLO, a jax.export file or a torch.export file"


def _is_artifact(data: memoryview) -> bool:
    # The version of the format is a varint of one to nine bytes between the magic and the producer.
    head = bytes(data[: len(MAGIC) + 9 + len(ARTIFACT_PRODUCER)])
    return head.startswith(MAGIC) and ARTIFACT_PRODUCER in head[len(MAGIC) + 1 :]


def _is_bytecode(data: memoryview) -> bool:
    return bytes(data[: len(MAGIC)]) == MAGIC


def _is_text(data: memoryview) -> bool:
    sample = bytes(data[:_TEXT_SAMPLE])
    if b"\0" in sample:
        return False
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        # The sample may end within a character.
        return len(data) > _TEXT_SAMPLE and error.start > _TEXT_SAMPLE - 4
    return True


def _is_hlo_text(data: memoryview) -> bool:
    return bytes(data[:_TEXT_SAMPLE]).lstrip().startswith(b"HloModule ") and _is_text(data)


# In the order in which they are tried: the first that matches decides.
_SIGNS: Final[dict[Kind, Callable[[memoryview], bool]]] = {
    Kind.PORTABLE_ARTIFACT: _is_artifact,
    Kind.MLIR_BYTECODE: _is_bytecode,
    Kind.TORCH_EXPORT: is_torch_export,
    Kind.JAX_EXPORT: is_jax_export,
    Kind.HLO_PROTO: is_hlo_proto,
    Kind.HLO_TEXT: _is_hlo_text,
    Kind.MLIR_TEXT: _is_text,
}
