"""The files of jax.export: a FlatBuffer with a portable artifact inside.

Only what leads to the artifact and describes how it is called is read, with every offset checked; the FlatBuffers
runtime for Python checks none and loads numpy. The layout is that of ``jax/_src/export/serialization.fbs`` in
jax-ml/jax, which adds fields at the end and never moves one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from vhlo_tools.artifact.storage import Buffer
from vhlo_tools.bytecode import MAGIC
from vhlo_tools.errors import MalformedArtifactError

__all__ = ["JaxExport", "decode_jax_export", "is_jax_export"]

# Offsets in the vtable of the table `Exported`.
_FUNCTION_NAME: Final = 6
_PLATFORMS: Final = 22
_MODULE: Final = 30
_CALLING_CONVENTION: Final = 32
_KEPT_ARGUMENTS: Final = 34


@dataclass(frozen=True, slots=True)
class JaxExport:
    """What a jax.export file says of the artifact it holds.

    Attributes:
        function_name: The name of the exported function.
        platforms: The platforms it was lowered for.
        calling_convention_version: The version of JAX's calling convention that it follows.
        kept_arguments: The flat arguments of the function that the artifact's ``main`` still takes.
        module: The bytes of the artifact, as a view into the file.
    """

    function_name: str
    platforms: tuple[str, ...]
    calling_convention_version: int
    kept_arguments: tuple[int, ...]
    module: memoryview


def is_jax_export(data: memoryview) -> bool:
    """Tell whether ``data`` is a jax.export file, which it is if MLIR bytecode is found where one keeps it."""
    try:
        return bytes(_root(data).bytes_at(_MODULE)[: len(MAGIC)]) == MAGIC
    except MalformedArtifactError:
        return False


def decode_jax_export(data: Buffer) -> JaxExport:
    """Read a jax.export file.

    Raises:
        MalformedArtifactError: If it is not one, or is damaged.
    """
    root = _root(memoryview(data))
    return JaxExport(
        function_name=_text(root.bytes_at(_FUNCTION_NAME)),
        platforms=tuple(_text(platform) for platform in root.strings_at(_PLATFORMS)),
        calling_convention_version=root.uint16_at(_CALLING_CONVENTION),
        kept_arguments=tuple(memoryview(root.bytes_at(_KEPT_ARGUMENTS, 2)).cast("H")),
        module=root.bytes_at(_MODULE),
    )


def _text(data: memoryview) -> str:
    return bytes(data).decode("utf-8", "backslashreplace")


def _unpack(data: memoryview, layout: str, at: int) -> int:
    if not 0 <= at <= len(data) - struct.calcsize(layout):
        raise MalformedArtifactError("a jax.export file refers outside itself", offset=at, section="jax.export")
    value: int = struct.unpack_from(layout, data, at)[0]
    return value


def _root(data: memoryview) -> _Table:
    return _Table(data, _unpack(data, "<I", 0))


class _Table:
    """A table of a FlatBuffer: fields are found through a vtable, which stands elsewhere."""

    def __init__(self, data: memoryview, position: int) -> None:
        self._data = data
        self._position = position
        self._vtable = position - _unpack(data, "<i", position)
        self._vtable_size = _unpack(data, "<H", self._vtable)

    def _field(self, slot: int) -> int | None:
        offset = _unpack(self._data, "<H", self._vtable + slot) if slot < self._vtable_size else 0
        return self._position + offset if offset else None

    def uint16_at(self, slot: int) -> int:
        at = self._field(slot)
        return 0 if at is None else _unpack(self._data, "<H", at)

    def _vector(self, at: int, element_size: int) -> memoryview:
        start = at + _unpack(self._data, "<I", at)
        size = _unpack(self._data, "<I", start) * element_size
        if size > len(self._data) - start - 4:
            raise MalformedArtifactError(
                f"a jax.export file announces {size} bytes where {len(self._data) - start - 4} are left",
                offset=start,
                section="jax.export",
            )
        return self._data[start + 4 : start + 4 + size]

    def bytes_at(self, slot: int, element_size: int = 1) -> memoryview:
        at = self._field(slot)
        return memoryview(b"") if at is None else self._vector(at, element_size)

    def strings_at(self, slot: int) -> list[memoryview]:
        at = self._field(slot)
        if at is None:
            return []
        start = at + _unpack(self._data, "<I", at) + 4
        return [self._vector(start + 4 * i, 1) for i in range(len(self._vector(at, 4)) // 4)]
