"""A plugin of PJRT by ctypes: what it says of itself, and what its compiler makes of a program for a device.

Source: ``xla/pjrt/c/pjrt_c_api.h`` in openxla/xla. ``GetPjrtApi()`` gives a table of functions in the header's order,
at whose end newer plugins have more. Each takes one struct, which begins with its own size and a pointer to extensions,
and gives an error or null. What a struct has at its end, older plugins do not know.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_Size, _Pointer, _Integer = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int64

#: Of each function that is called, its place in the table.
_PLACES = {
    "Error_Destroy": 0,
    "Error_Message": 1,
    "Plugin_Initialize": 3,
    "Plugin_Attributes": 4,
    "Executable_Destroy": 40,
    "Executable_GetCostAnalysis": 46,
    "Executable_OptimizedProgram": 48,
    "TopologyDescription_Create": 82,
    "TopologyDescription_Destroy": 83,
    "TopologyDescription_GetDeviceDescriptions": 86,
    "Compile": 89,
    "Executable_GetCompiledMemoryStats": 96,
}
#: Where the table begins: behind its size, its extensions and the version, a struct of a size, extensions and two ints.
_TABLE = 40

#: What memory statistics hold, in order; older plugins have no peak.
MEMORY = (
    *("code", "arguments", "results", "aliased", "temporary"),
    *("host_code", "host_arguments", "host_results", "host_aliased", "host_temporary", "peak"),
)


#: Without these, libtpu asks the machine's metadata server, looks for other hosts, and lets one process load it at a
#: time.
ALONE = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_STDERR_LOG_LEVEL": "2",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}


class PluginError(Exception):
    """What a plugin says when it refuses."""


class _NamedValue(ctypes.Structure):
    _fields_ = [
        *(("size", _Size), ("extensions", _Pointer), ("name", _Pointer), ("name_size", _Size)),
        *(("type", ctypes.c_int), ("value", ctypes.c_uint64), ("number", _Size)),
    ]


class _Program(ctypes.Structure):
    _fields_ = [
        *(("size", _Size), ("extensions", _Pointer), ("code", _Pointer), ("code_size", _Size)),
        *(("format", _Pointer), ("format_size", _Size)),
    ]


def _address(data: bytes, kept: list[Any]) -> int:
    """Return the address of bytes, which live as long as ``kept``."""
    kept.append(ctypes.create_string_buffer(data, len(data)))
    return ctypes.addressof(kept[-1])


class Plugin:
    """A plugin's library, loaded and initialized. Needs no device."""

    def __init__(self, library: Path) -> None:
        os.environ.update(ALONE)
        found = ctypes.CDLL(str(library))
        found.GetPjrtApi.restype = _Pointer
        table = found.GetPjrtApi()
        size = _Size.from_address(table).value
        self._table = (_Pointer * ((size - _TABLE) // ctypes.sizeof(_Pointer))).from_address(table + _TABLE)
        self.interface: tuple[int, ...] = tuple((ctypes.c_int * 2).from_address(table + 32))
        self._call("Plugin_Initialize")

    def _call(self, function: str, *fields: tuple[str, Any, Any]) -> Any:
        """Call a function with a struct of these fields: names, types and values. Return the struct."""
        place = _PLACES[function]
        if place >= len(self._table) or not self._table[place]:
            raise PluginError(f"its interface {'.'.join(map(str, self.interface))} has no {function}")
        kind = type(
            function,
            (ctypes.Structure,),
            {"_fields_": [("size", _Size), ("extensions", _Pointer), *((name, type_) for name, type_, _ in fields)]},
        )
        given = kind(ctypes.sizeof(kind), None, *(value for _, _, value in fields))
        error = ctypes.CFUNCTYPE(_Pointer, _Pointer)(self._table[place] or 0)(ctypes.addressof(given))
        if error:
            raise PluginError(self._message(error))
        return given

    def _message(self, error: int) -> str:
        class Message(ctypes.Structure):
            _fields_ = [
                *(("size", _Size), ("extensions", _Pointer), ("error", _Pointer)),
                *(("text", _Pointer), ("text_size", _Size)),
            ]

        said = Message(ctypes.sizeof(Message), None, error)
        void = ctypes.CFUNCTYPE(None, _Pointer)
        void(self._table[_PLACES["Error_Message"]] or 0)(ctypes.addressof(said))
        words = ctypes.string_at(said.text, said.text_size).decode(errors="replace")
        # The struct that ends an error has no text behind it.
        said.size = 24
        void(self._table[_PLACES["Error_Destroy"]] or 0)(ctypes.addressof(said))
        return words

    def attributes(self) -> dict[str, Any]:
        """Return what the plugin says of itself, such as ``stablehlo_current_version``; old plugins say nothing."""
        found = self._call("Plugin_Attributes", ("values", _Pointer, None), ("number", _Size, 0))
        return dict(_named(found.values, found.number))

    @contextmanager
    def topology(self, name: str, options: Mapping[str, str]) -> Iterator[int]:
        """Describe devices that need not be there."""
        kept: list[Any] = []
        values = (_NamedValue * len(options))()
        for value, (key, text) in zip(values, options.items()):  # noqa: B905 - Python 3.9
            value.size = ctypes.sizeof(_NamedValue)
            value.name, value.name_size = _address(key.encode(), kept), len(key)
            value.value, value.number = _address(text.encode(), kept), len(text)
        made = self._call(
            "TopologyDescription_Create",
            *(("name", _Pointer, _address(name.encode(), kept)), ("name_size", _Size, len(name))),
            *(("options", _Pointer, ctypes.addressof(values)), ("number", _Size, len(options))),
            ("topology", _Pointer, None),
        )
        try:
            yield made.topology
        finally:
            self._call("TopologyDescription_Destroy", ("topology", _Pointer, made.topology))

    def devices(self, topology: int) -> int:
        """Return the number of devices of a topology."""
        asked = ("topology", _Pointer, topology), ("descriptions", _Pointer, None), ("number", _Size, 0)
        return int(self._call("TopologyDescription_GetDeviceDescriptions", *asked).number)

    @contextmanager
    def compiled(self, topology: int, program: bytes, options: bytes) -> Iterator[int]:
        """Compile MLIR text, bytecode or an artifact, with options as a serialized CompileOptionsProto."""
        kept: list[Any] = []
        held = _Program(
            ctypes.sizeof(_Program), None, _address(program, kept), len(program), _address(b"mlir", kept), 4
        )
        made = self._call(
            "Compile",
            *(("topology", _Pointer, topology), ("program", _Pointer, ctypes.addressof(held))),
            *(("options", _Pointer, _address(options, kept)), ("options_size", _Size, len(options))),
            *(("client", _Pointer, None), ("executable", _Pointer, None)),
        )
        try:
            yield made.executable
        finally:
            self._call("Executable_Destroy", ("executable", _Pointer, made.executable))

    def optimized(self, executable: int) -> bytes:
        """Return the optimized program, a serialized HloModuleProto or HloModuleProtoWithConfig."""
        held = _Program(ctypes.sizeof(_Program))
        asked = ("executable", _Pointer, executable), ("program", _Pointer, ctypes.addressof(held))
        self._call("Executable_OptimizedProgram", *asked)
        code = ctypes.create_string_buffer(held.code_size)
        held.code = ctypes.addressof(code)
        self._call("Executable_OptimizedProgram", *asked)
        return code.raw[: held.code_size]

    def memory(self, executable: int) -> dict[str, int]:
        """Return bytes on a device, by :data:`MEMORY`."""
        for number in (len(MEMORY), len(MEMORY) - 1):
            names = MEMORY[:number]
            try:
                found = self._call(
                    "Executable_GetCompiledMemoryStats",
                    ("executable", _Pointer, executable),
                    *((name, _Integer, 0) for name in names),
                )
            except PluginError as error:
                if "size" not in str(error) or number < len(MEMORY):
                    raise
                continue
            return {name: getattr(found, name) for name in names}
        raise AssertionError

    def costs(self, executable: int) -> dict[str, Any]:
        """Return the properties of the analysis of costs, such as ``flops``."""
        found = self._call(
            "Executable_GetCostAnalysis",
            *(("executable", _Pointer, executable), ("number", _Size, 0), ("values", _Pointer, None)),
        )
        return dict(_named(found.values, found.number))


def _named(address: int | None, number: int) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of an array of named values, whose structs may be longer than this one."""
    at = address or 0
    for _ in range(number):
        each = _NamedValue.from_address(at)
        value: Any = each.value
        if each.type == 0:
            value = ctypes.string_at(each.value, each.number).decode(errors="replace")
        elif each.type == 1:
            value = _Integer(each.value).value
        elif each.type == 2:
            value = list((_Integer * each.number).from_address(each.value)) if each.number else []
        elif each.type == 3:
            value = ctypes.c_float.from_buffer_copy(each.value.to_bytes(8, "little")[:4]).value
        elif each.type == 4:
            value = bool(each.value & 1)
        yield ctypes.string_at(each.name, each.name_size).decode(errors="replace"), value
        at += max(each.size, ctypes.sizeof(_NamedValue))


if __name__ == "__main__":
    # What a library prints comes before.
    print(f"\n{json.dumps(Plugin(Path(sys.argv[1])).attributes())}", flush=True)
