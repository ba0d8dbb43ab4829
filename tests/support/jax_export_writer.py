"""jax.export files of any tables, written with the FlatBuffers library by our own description of the tables."""

from __future__ import annotations

import flatbuffers

from vhlo_tools.files.jax_export import JAX_EXPORT

MODULE = b"ML\xefR\1"
LEAF, TUPLE, LIST, DICT, CUSTOM = 0, 2, 3, 4, 5


class Writer:
    """Writes tables; offsets are what the library makes of them."""

    def __init__(self, module: bytes = MODULE) -> None:
        self.module = module
        self.builder = flatbuffers.Builder(1024)

    def text(self, value: str) -> int:
        return int(self.builder.CreateString(value))

    def offsets(self, values: list[int]) -> int:
        self.builder.StartVector(4, len(values), 4)
        for value in reversed(values):
            self.builder.PrependUOffsetTRelative(value)
        return int(self.builder.EndVector())

    def numbers(self, values: list[int]) -> int:
        self.builder.StartVector(4, len(values), 4)
        for value in reversed(values):
            self.builder.PrependUint32(value)
        return int(self.builder.EndVector())

    def table(self, name: str, future: int = 0, **values: int) -> int:
        fields = JAX_EXPORT.tables[name]
        self.builder.StartObject(len(fields) + bool(future))
        if future:
            self.builder.PrependUint16Slot(len(fields), future, 0)
        for field, value in values.items():
            index, kind = (fields[field].slot - 4) // 2, fields[field]
            if kind.is_offset:
                self.builder.PrependUOffsetTRelativeSlot(index, value, 0)
            elif kind.kind == "i8":
                self.builder.PrependInt8Slot(index, value, 0)
            else:
                self.builder.PrependUint16Slot(index, value, 0)
        return int(self.builder.EndObject())

    def leaf(self) -> int:
        return self.table("PyTreeDef", kind=LEAF)

    def tree(self, kind: int, children: list[int], **more: int) -> int:
        return self.table("PyTreeDef", kind=kind, children=self.offsets(children), **more)

    def aval(self, *shape: int, dtype: int = 10) -> int:
        return self.table("AbstractValue", shape=self.offsets(list(shape)), dtype=dtype)

    def file(self, **values: int) -> bytes:
        module = self.builder.CreateByteVector(self.module)
        self.builder.Finish(self.table("Exported", mlir_module_serialized=module, **values))
        return bytes(self.builder.Output())
