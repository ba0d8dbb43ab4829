"""A plugin of PJRT by ctypes: what it says of itself, what its compiler makes of a program, and its device.

Source: ``xla/pjrt/c/pjrt_c_api.h`` in openxla/xla. ``GetPjrtApi()`` gives a table of functions in the header's order,
at whose end newer plugins have more. Each takes one struct, which begins with its own size and a pointer to extensions,
and gives an error or null. What a struct has at its end, older plugins do not know.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_Size, _Pointer, _Integer = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int64

#: CompileOptionsProto (``xla/pjrt/proto/compile_options.proto``): num_replicas and num_partitions of
#: executable_build_options are 1.
_FOR_ONE = bytes([3 << 3 | 2, 4, 4 << 3, 1, 5 << 3, 1])

#: Of each function that is called, its place in the table.
_PLACES = {
    "Error_Destroy": 0,
    "Error_Message": 1,
    "Plugin_Initialize": 3,
    "Plugin_Attributes": 4,
    "Event_Destroy": 5,
    "Event_Await": 8,
    "Client_Create": 10,
    "Client_AddressableDevices": 16,
    "Client_Compile": 20,
    "Client_BufferFromHostBuffer": 22,
    "Executable_Destroy": 40,
    "Executable_NumOutputs": 44,
    "Executable_GetCostAnalysis": 46,
    "Executable_OptimizedProgram": 48,
    "LoadedExecutable_Destroy": 50,
    "LoadedExecutable_GetExecutable": 51,
    "LoadedExecutable_Execute": 55,
    "Buffer_Destroy": 58,
    "Buffer_ElementType": 59,
    "Buffer_Dimensions": 60,
    "Buffer_ToHostBuffer": 70,
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


def _has_tpu() -> bool:
    """Whether there is a chip of Google's (``jax/_src/hardware_utils.py`` in jax-ml/jax)."""
    return any(path.read_text().strip() == "0x1ae0" for path in Path("/sys/bus/pci/devices").glob("*/vendor"))


def _held(program: bytes, kept: list[Any]) -> int:
    held = _Program(ctypes.sizeof(_Program), None, _address(program, kept), len(program), _address(b"mlir", kept), 4)
    kept.append(held)
    return ctypes.addressof(held)


class Plugin:
    """A plugin's library, loaded and initialized. With ``has_device``, one that is here is as the system says."""

    def __init__(self, library: Path, *, has_device: bool = False) -> None:
        if not (has_device and _has_tpu()):
            os.environ.update(ALONE)
        found = ctypes.CDLL(str(library))
        found.GetPjrtApi.restype = _Pointer
        table = found.GetPjrtApi()
        size = _Size.from_address(table).value
        self._table = (_Pointer * ((size - _TABLE) // ctypes.sizeof(_Pointer))).from_address(table + _TABLE)
        self.interface: tuple[int, ...] = tuple((ctypes.c_int * 2).from_address(table + 32))
        self.call("Plugin_Initialize")

    def call(self, function: str, *fields: tuple[str, Any, Any]) -> Any:
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
        found = self.call("Plugin_Attributes", ("values", _Pointer, None), ("number", _Size, 0))
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
        made = self.call(
            "TopologyDescription_Create",
            *(("name", _Pointer, _address(name.encode(), kept)), ("name_size", _Size, len(name))),
            *(("options", _Pointer, ctypes.addressof(values)), ("number", _Size, len(options))),
            ("topology", _Pointer, None),
        )
        try:
            yield made.topology
        finally:
            self.call("TopologyDescription_Destroy", ("topology", _Pointer, made.topology))

    def devices(self, topology: int) -> int:
        """Return the number of devices of a topology."""
        asked = ("topology", _Pointer, topology), ("descriptions", _Pointer, None), ("number", _Size, 0)
        return int(self.call("TopologyDescription_GetDeviceDescriptions", *asked).number)

    @contextmanager
    def compiled(self, topology: int, program: bytes, options: bytes) -> Iterator[int]:
        """Compile MLIR text, bytecode or an artifact, with options as a serialized CompileOptionsProto."""
        kept: list[Any] = []
        made = self.call(
            "Compile",
            *(("topology", _Pointer, topology), ("program", _Pointer, _held(program, kept))),
            *(("options", _Pointer, _address(options, kept)), ("options_size", _Size, len(options))),
            *(("client", _Pointer, None), ("executable", _Pointer, None)),
        )
        try:
            yield made.executable
        finally:
            self.call("Executable_Destroy", ("executable", _Pointer, made.executable))

    def optimized(self, executable: int) -> bytes:
        """Return the optimized program, a serialized HloModuleProto or HloModuleProtoWithConfig."""
        held = _Program(ctypes.sizeof(_Program))
        asked = ("executable", _Pointer, executable), ("program", _Pointer, ctypes.addressof(held))
        self.call("Executable_OptimizedProgram", *asked)
        code = ctypes.create_string_buffer(held.code_size)
        held.code = ctypes.addressof(code)
        self.call("Executable_OptimizedProgram", *asked)
        return code.raw[: held.code_size]

    def memory(self, executable: int) -> dict[str, int]:
        """Return bytes on a device, by :data:`MEMORY`."""
        for number in (len(MEMORY), len(MEMORY) - 1):
            names = MEMORY[:number]
            try:
                found = self.call(
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
        found = self.call(
            "Executable_GetCostAnalysis",
            *(("executable", _Pointer, executable), ("number", _Size, 0), ("values", _Pointer, None)),
        )
        return dict(_named(found.values, found.number))


class _Layout(ctypes.Structure):
    """A layout without tiles; what is of strides alone is shorter."""

    _fields_ = [
        *(("size", _Size), ("extensions", _Pointer)),
        *(("size_of_kind", _Size), ("extensions_of_kind", _Pointer), ("minor_to_major", _Pointer), ("rank", _Size)),
        *(("tiles", _Pointer), ("tile_sizes", _Pointer), ("number_of_tiles", _Size), ("kind", ctypes.c_int)),
    ]


class _ExecuteOptions(ctypes.Structure):
    _fields_ = [
        *(("size", _Size), ("extensions", _Pointer), ("sends", _Pointer), ("receives", _Pointer)),
        *(("number_of_sends", _Size), ("number_of_receives", _Size), ("launch", ctypes.c_int)),
        *(("kept_inputs", _Pointer), ("number_of_kept_inputs", _Size), ("context", _Pointer), ("place", _Pointer)),
        *(("number_of_tasks", _Size), ("tasks", _Pointer), ("incarnations", _Pointer)),
    ]


#: The types of elements, in the order of PJRT_Buffer_Type, by the names of numpy; the first is none.
ELEMENTS = (
    *("", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)


class Device:
    """The first device of a plugin that has one here. Arrays are of numpy, of :data:`ELEMENTS`, and C-contiguous."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self._client = plugin.call(
            "Client_Create",
            *(("options", _Pointer, None), ("number", _Size, 0)),
            *((name, _Pointer, None) for name in ("get", "get_for", "put", "put_for", "client", "try_get", "try_for")),
        ).client
        asked = ("client", _Pointer, self._client), ("devices", _Pointer, None), ("number", _Size, 0)
        found = plugin.call("Client_AddressableDevices", *asked)
        if not found.number:
            raise PluginError("it has no device here")
        self._device = _Pointer.from_address(found.devices).value

    def compile(self, program: bytes) -> int:
        """Compile MLIR text, bytecode or an artifact for the device."""
        kept: list[Any] = []
        made = self._plugin.call(
            "Client_Compile",
            *(("client", _Pointer, self._client), ("program", _Pointer, _held(program, kept))),
            *(("options", _Pointer, _address(_FOR_ONE, kept)), ("options_size", _Size, len(_FOR_ONE))),
            ("executable", _Pointer, None),
        )
        return int(made.executable)

    def forget(self, executable: int) -> None:
        self._plugin.call("LoadedExecutable_Destroy", ("executable", _Pointer, executable))

    def _outputs(self, executable: int) -> int:
        asked = ("executable", _Pointer, executable), ("held", _Pointer, None)
        held = self._plugin.call("LoadedExecutable_GetExecutable", *asked).held
        found = self._plugin.call("Executable_NumOutputs", ("executable", _Pointer, held), ("number", _Size, 0))
        self._plugin.call("Executable_Destroy", ("executable", _Pointer, held))
        return int(found.number)

    def run(self, executable: int, inputs: Sequence[Any]) -> list[Any]:
        """Run a program, and return its results."""
        buffers: list[int] = []
        made = (_Pointer * self._outputs(executable))()
        try:
            for each in inputs:
                buffers.append(self._put(each))
            given = (_Pointer * len(inputs))(*buffers)
            lists, made_lists = (_Pointer * 1)(ctypes.addressof(given)), (_Pointer * 1)(ctypes.addressof(made))
            options = _ExecuteOptions(ctypes.sizeof(_ExecuteOptions))
            self._plugin.call(
                "LoadedExecutable_Execute",
                *(("executable", _Pointer, executable), ("options", _Pointer, ctypes.addressof(options))),
                *(("inputs", _Pointer, ctypes.addressof(lists)), ("devices", _Size, 1), ("number", _Size, len(inputs))),
                *(("results", _Pointer, ctypes.addressof(made_lists)), ("done", _Pointer, None)),
                ("device", _Pointer, None),
            )
            return [self._take(each or 0) for each in made]
        finally:
            for each in (*buffers, *filter(None, made)):
                self._plugin.call("Buffer_Destroy", ("buffer", _Pointer, each))

    def _put(self, array: Any) -> int:
        sizes = (_Integer * array.ndim)(*array.shape)
        made = self._plugin.call(
            "Client_BufferFromHostBuffer",
            *(("client", _Pointer, self._client), ("data", _Pointer, array.ctypes.data)),
            *(("type", ctypes.c_int, ELEMENTS.index(array.dtype.name)), ("sizes", _Pointer, ctypes.addressof(sizes))),
            *(("rank", _Size, array.ndim), ("strides", _Pointer, None), ("number_of_strides", _Size, 0)),
            # The data is read during the call.
            *(("semantics", ctypes.c_int, 0), ("device", _Pointer, self._device), ("memory", _Pointer, None)),
            *(("layout", _Pointer, None), ("done", _Pointer, None), ("buffer", _Pointer, None)),
        )
        self._await(made.done)
        return int(made.buffer)

    def _take(self, buffer: int) -> Any:
        import numpy as np

        of = ("buffer", _Pointer, buffer)
        type_ = self._plugin.call("Buffer_ElementType", of, ("type", ctypes.c_int, 0)).type
        found = self._plugin.call("Buffer_Dimensions", of, ("sizes", _Pointer, None), ("rank", _Size, 0))
        sizes = tuple((_Integer * found.rank).from_address(found.sizes)) if found.rank else ()
        if not 0 < type_ < len(ELEMENTS):
            raise PluginError(f"it returns elements of the type {type_}")
        array = np.empty(sizes, ELEMENTS[type_])
        order = (_Integer * len(sizes))(*reversed(range(len(sizes))))
        layout = _Layout(ctypes.sizeof(_Layout), None, 56, None, ctypes.addressof(order), len(sizes))
        read = self._plugin.call(
            "Buffer_ToHostBuffer",
            *(of, ("layout", _Pointer, ctypes.addressof(layout)), ("to", _Pointer, array.ctypes.data)),
            *(("bytes", _Size, array.nbytes), ("done", _Pointer, None)),
        )
        self._await(read.done)
        return array

    def _await(self, event: int) -> None:
        try:
            self._plugin.call("Event_Await", ("event", _Pointer, event))
        finally:
            self._plugin.call("Event_Destroy", ("event", _Pointer, event))


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
