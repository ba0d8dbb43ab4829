"""Replies of isolated processes: results, errors, and failures of the process itself."""

from __future__ import annotations

import re
import signal
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from vhlo_tools import errors
from vhlo_tools.bindings.isolation.limits import Limits, readable_size
from vhlo_tools.bindings.isolation.messages import Chunk, SharedMemory, copied
from vhlo_tools.bindings.provider import MLIRFailure
from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.errors import EngineCrashError, EngineError, EngineTimeoutError, VhloToolsError
from vhlo_tools.findings import Diagnostic, Finding
from vhlo_tools.printable import printable_lines
from vhlo_tools.version import Version

# Replies of a child process: values and errors as data, which cannot name code that the receiver would run
#
# A child that a hostile program has taken over can send anything. So a reply is decoded by types that are listed here,
# sizes are checked before memory is allocated, and texts are printable.

if TYPE_CHECKING:
    from typing import dataclass_transform

    # `pyright --verifytypes` cannot say what a class that derives from one of msgspec is, so that is declared here.
    @dataclass_transform()
    class Struct:
        def __init_subclass__(cls, *, array_like: bool = False, tag: str | bool | None = None) -> None: ...

else:
    from msgspec import Struct

__all__ = [
    "Asked",
    "Failed",
    "OutOfMemory",
    "OutputTooLarge",
    "Raised",
    "Ready",
    "Reply",
    "Returned",
    "TooLarge",
    "decode_reply",
    "encode_error",
    "encode_reply",
    "pack_value",
    "unpack_error",
    "unpack_value",
]

#: The largest reply without its arrays, bytes and long texts, which are kept apart.
_LARGEST: Final = 16 << 20
#: Longer texts are kept apart.
_LONG_TEXT: Final = 4096
_SIZE: Final = struct.Struct("<I")

# The element types of numpy, as in the `str` of a dtype, and those of ml_dtypes, by name.
_NUMPY_TYPE: Final = re.compile(r"[<>|][biufc][0-9]{1,2}")
_ML_TYPE: Final = re.compile(r"bfloat16|float[0-9]{1,2}_[a-z0-9]+|u?int[124]")


class OutputTooLarge(Exception):  # noqa: N818 - it never leaves this package
    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes")
        self.size = size


class _Node(Struct, array_like=True):
    """A value that has no counterpart in MessagePack."""


class _Bytes(_Node, tag="bytes"):
    chunk: Chunk


class _Text(_Node, tag="text"):
    chunk: Chunk


class _Array(_Node, tag="array"):
    dtype: str
    shape: tuple[int, ...]
    chunk: Chunk


class _Tuple(_Node, tag="tuple"):
    items: tuple[_Value, ...]


class _List(_Node, tag="list"):
    items: list[_Value]


class _Dict(_Node, tag="dict"):
    keys: tuple[_Value, ...]
    values: tuple[_Value, ...]


class _Diagnostic(_Node, tag="diagnostic"):
    diagnostic: Diagnostic


_Value = None | bool | int | float | str | _Bytes | _Text | _Array | _Tuple | _List | _Dict | _Diagnostic


class _Error(Struct, array_like=True):
    """An error of the toolkit, with the attributes that any of them has."""

    name: str
    message: str
    notes: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    findings: tuple[Finding, ...] = ()
    summary: str = ""
    offset: int | None = None
    section: str | None = None
    signal: str | None = None
    exit_code: int | None = None
    op: str | None = None
    output: str = ""
    seconds: float | None = None
    cpu_seconds: float | None = None
    differences: tuple[str, ...] = ()


class _Outcome(Struct, array_like=True): ...


class Ready(_Outcome, tag="ready"):
    """The first message of a child: it can take requests."""


class Returned(_Outcome, tag="returned"):
    value: _Value


class Asked(_Outcome, tag="asked"):
    """The function calls one of the caller's functions, by number, and waits for its answer."""

    function: int
    arguments: _Value


class Raised(_Outcome, tag="raised"):
    error: _Error


class Failed(_Outcome, tag="failed"):
    """The function raised an exception that is not the toolkit's."""

    name: str
    message: str
    trace: str


class OutOfMemory(_Outcome, tag="out of memory"): ...


class TooLarge(_Outcome, tag="too large"):
    size: int


class Reply(Struct, array_like=True):
    outcome: Ready | Returned | Asked | Raised | Failed | OutOfMemory | TooLarge
    retire: bool = False  # the child should be replaced by a new one


def _from_version(value: object) -> object:
    return str(value)


def _to_version(type_: type, value: object) -> object:
    if type_ is Version and isinstance(value, str):
        return Version(value)
    raise TypeError(f"no value of {type_.__name__}")


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_from_version)
_DECODER: Final = msgspec.msgpack.Decoder(Reply, dec_hook=_to_version)


def encode_reply(reply: Reply, inline: bytes) -> bytes:
    control = _ENCODER.encode(reply)
    return _SIZE.pack(len(control)) + control + inline


def decode_reply(body: bytes | bytearray) -> tuple[Reply, memoryview]:
    (size,) = _SIZE.unpack_from(body)
    if size > min(_LARGEST, len(body) - _SIZE.size):
        raise ValueError(f"it announces {size} bytes")
    view = memoryview(body)
    return _DECODER.decode(view[_SIZE.size : _SIZE.size + size]), view[_SIZE.size + size :]


def pack_value(value: object, memory: SharedMemory, largest: int | None = None) -> tuple[_Value, bytes]:
    """Return a value as data, with its large chunks in ``memory``, and its small chunks.

    It may consist of ``None``, booleans, numbers, texts, bytes, arrays of numbers, diagnostics, tuples, lists and
    dictionaries; ``largest`` is in bytes.
    """
    chunks: list[memoryview] = []
    packed = _packed(value, chunks)
    size = sum(chunk.nbytes for chunk in chunks)
    if largest is not None and size > largest:
        raise OutputTooLarge(size)
    places, inline = memory.place(chunks)
    return (packed if not chunks else _placed(packed, places)), inline


def unpack_value(value: _Value, memory: SharedMemory, inline: memoryview, largest: int | None = None) -> Any:
    """Arrays are copied, and are writable; invalid or too large data is a ``ValueError``."""
    return _Unpacking(memory, inline, largest).value(value)


def encode_error(error: BaseException) -> Raised | None:
    """Return an error of the toolkit as data; ``None`` for any other."""
    attributes = _ATTRIBUTES.get(type(error).__name__)
    if attributes is None or _CLASSES[type(error).__name__] is not type(error):
        return None
    notes = tuple(map(str, getattr(error, "__notes__", ())))
    message = str(error.args[0]) if error.args else ""
    return Raised(_Error(type(error).__name__, message, notes, **{each: getattr(error, each) for each in attributes}))


def unpack_error(raised: Raised) -> BaseException:
    said = raised.error
    if said.name not in _CLASSES:
        raise ValueError("it names an unknown error")
    class_ = _CLASSES[said.name]
    ours = issubclass(class_, VhloToolsError)
    error: BaseException = class_.__new__(class_)
    error.args = (printable_lines(said.message) if ours else said.message,)
    for name in _ATTRIBUTES[said.name]:
        value = getattr(said, name)
        setattr(error, name, printable_lines(value) if isinstance(value, str) and name != "output" else value)
    for note in said.notes:
        error.add_note(printable_lines(note))
    return error


def _attributes(class_: type[BaseException]) -> tuple[str, ...]:
    """The attributes of a class include those of its bases."""
    return tuple(dict.fromkeys(name for base in class_.__mro__ for name in _DEFINED.get(base.__name__, ())))


#: The attributes that each class of errors defines.
_DEFINED: Final[Mapping[str, tuple[str, ...]]] = {
    "InvalidProgramError": ("diagnostics",),
    "MalformedArtifactError": ("offset", "section", "diagnostics"),
    "ManifestError": ("summary", "differences"),
    "_FindingsError": ("summary", "findings"),
    "EngineError": ("diagnostics",),
    "EngineCrashError": ("signal", "exit_code", "op", "output"),
    "EngineTimeoutError": ("seconds", "op", "cpu_seconds"),
    "MLIRFailure": ("diagnostics",),
}
_CLASSES: Final[Mapping[str, type[BaseException]]] = {
    class_.__name__: class_ for class_ in (*(getattr(errors, name) for name in errors.__all__), MLIRFailure, XlaFailure)
}
_ATTRIBUTES: Final = {name: _attributes(class_) for name, class_ in _CLASSES.items()}


def _packed(value: Any, chunks: list[memoryview]) -> Any:
    """Return data whose chunks have their number as offset, and append the chunks."""
    kind = type(value)
    if value is None or kind in (bool, int, float):
        return value
    if kind is str:
        if len(value) <= _LONG_TEXT:
            # Only texts of UTF-8 can be encoded.
            return value.encode(errors="backslashreplace").decode()
        return _Text(_chunk(value.encode(errors="backslashreplace"), chunks))
    if kind in (bytes, bytearray, memoryview):
        return _Bytes(_chunk(value, chunks))
    if kind is tuple:
        return _Tuple(tuple(_packed(each, chunks) for each in value))
    if kind is list:
        return _List([_packed(each, chunks) for each in value])
    if kind is dict:
        return _Dict(
            tuple(_packed(each, chunks) for each in value), tuple(_packed(each, chunks) for each in value.values())
        )
    if kind is Diagnostic:
        return _Diagnostic(value)
    return _packed_array(value, chunks)


def _packed_array(value: Any, chunks: list[memoryview]) -> _Array:
    import numpy as np

    if not isinstance(value, np.ndarray | np.generic):
        raise TypeError(f"a value of {type(value).__qualname__} cannot be sent to another process")
    name = _dtype_name(value.dtype)
    if not _NUMPY_TYPE.fullmatch(name) and not _ML_TYPE.fullmatch(name):
        raise TypeError(f"an array of {value.dtype} cannot be sent to another process")
    # Arrays of ml_dtypes dtypes do not support the buffer protocol; their bytes do.
    data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return _Array(name, value.shape, _chunk(memoryview(data.data), chunks))


def _dtype_name(dtype: Any) -> str:
    """Return the name by which :func:`_dtype` finds an element type."""
    return str(dtype.name if _ML_TYPE.fullmatch(dtype.name) else dtype.str)


def _chunk(data: bytes | bytearray | memoryview, chunks: list[memoryview]) -> Chunk:
    view = memoryview(data)
    chunks.append(view.cast("B") if view.c_contiguous else memoryview(view.tobytes()))
    return Chunk(len(chunks) - 1, 0, False)


def _placed(value: Any, places: list[Chunk]) -> Any:
    if isinstance(value, _Bytes | _Text | _Array):
        return msgspec.structs.replace(cast(Any, value), chunk=places[value.chunk.offset])
    if isinstance(value, _Tuple):
        return _Tuple(tuple(_placed(each, places) for each in value.items))
    if isinstance(value, _List):
        return _List([_placed(each, places) for each in value.items])
    if isinstance(value, _Dict):
        return _Dict(
            tuple(_placed(each, places) for each in value.keys), tuple(_placed(each, places) for each in value.values)
        )
    return value


class _Unpacking:
    def __init__(self, memory: SharedMemory, inline: memoryview, largest: int | None) -> None:
        self._memory, self._inline, self._left = memory, inline, largest

    def value(self, data: _Value) -> Any:
        if isinstance(data, _Tuple):
            return tuple(map(self.value, data.items))
        if isinstance(data, _List):
            return list(map(self.value, data.items))
        if isinstance(data, _Dict):
            return dict(zip(map(self.value, data.keys), map(self.value, data.values), strict=True))
        if isinstance(data, _Diagnostic):
            return data.diagnostic
        if isinstance(data, _Bytes):
            return bytes(self._bytes(data.chunk))
        if isinstance(data, _Text):
            return str(self._bytes(data.chunk), "utf-8")
        return self._array(data) if isinstance(data, _Array) else data

    def _bytes(self, chunk: Chunk) -> memoryview:
        if self._left is not None:
            self._left -= chunk.size
            if self._left < 0:
                raise ValueError("it is larger than the limit of output")
        return self._memory.find(chunk, self._inline)

    def _array(self, data: _Array) -> Any:
        import numpy as np

        dtype = _dtype(data.dtype)
        count = dtype.itemsize
        for size in data.shape:
            # A product of unchecked numbers could take long to compute.
            if size < 0 or (count := count * size) > 1 << 62:
                raise ValueError(f"an array has the shape {data.shape}")
        if count != data.chunk.size:
            raise ValueError(f"an array of {dtype}{list(data.shape)} has {data.chunk.size} bytes")
        array = copied(self._bytes(data.chunk)).view(dtype).reshape(data.shape)
        if dtype == np.bool_:
            # Numpy relies on booleans being 0 or 1.
            np.not_equal(array.view(np.uint8), 0, out=array)
        return array


def _dtype(name: str) -> Any:
    import numpy as np

    if _NUMPY_TYPE.fullmatch(name):
        return np.dtype(name)
    if _ML_TYPE.fullmatch(name):
        import ml_dtypes

        found = getattr(ml_dtypes, name, None)
        if isinstance(found, type) and issubclass(found, np.generic):
            return np.dtype(found)
    raise ValueError(f"{name!r} is not an element type")


# Errors for failed calls in a child process

# Texts that the C++ library, LLVM and Python print when memory runs out.
_SIGNS_OF_NO_MEMORY: Final = (
    "bad_alloc",
    "out of memory",
    "Allocation failed",
    "Cannot allocate memory",
    "MemoryError",
)

# What comes before a stack trace: messages of XLA (`F1122 12:00:00 7 file.cc:1] Check failed`), of LLVM and of C++.
_FATAL: Final = re.compile(
    r"^(?:F\d{4} \S+ +\d+ (.*)|(LLVM ERROR: .*)|(terminate called after .*)|(.*Assertion `.*failed.*))$", re.MULTILINE
)

# The number of characters of output in a message; the error has more.
_QUOTED: Final = 400


def crash(
    exit_code: int | None, op: str | None, output: str, limits: Limits, how: str | None = None
) -> EngineCrashError:
    """``how`` is the failure if it is not a crash, ``output`` the end of the child's output."""
    name = None if how else signal_name(exit_code)
    if how:
        exit_code = None
    elif name is not None:
        how = f"crashed with {name}"
    elif exit_code is not None:
        how = f"ended with the exit code {exit_code}"
    else:
        how = "has disappeared"
    message = f"the child process {how}{_while(op)}"
    if limits.memory is not None and any(sign in output for sign in _SIGNS_OF_NO_MEMORY):
        message += f": it ran out of memory; {_memory_rule(limits.memory)}"
    elif name == "SIGKILL":
        message += ": the system may have terminated it because memory ran out"
    if said := _last_words(output):
        message += f"; it wrote: {said}"
    return EngineCrashError(message, signal=name, exit_code=exit_code if name is None else None, op=op, output=output)


def _last_words(output: str) -> str:
    """Return the message of a fatal error in a child's output, or the end of the output."""
    if fatal := list(_FATAL.finditer(output)):
        said = next(each for each in fatal[-1].groups() if each).strip()
        return said if len(said) <= _QUOTED else said[:_QUOTED] + "..."
    said = output.strip()
    return said if len(said) <= _QUOTED else "..." + said[-_QUOTED:]


def timeout(op: str | None, limits: Limits, cpu_seconds: float | None) -> EngineTimeoutError:
    return EngineTimeoutError(
        f"the child process was terminated after {limits.seconds:.3g} s{_while(op)} (Limits.seconds)",
        seconds=limits.seconds,
        op=op,
        cpu_seconds=cpu_seconds,
    )


def failure(function: str, outcome: object, op: str | None, limits: Limits) -> BaseException:
    """An outcome without a valid error is a ``ValueError``."""
    if isinstance(outcome, Raised):
        return unpack_error(outcome)
    if isinstance(outcome, OutOfMemory):
        rule = "the system did not provide more" if limits.memory is None else _memory_rule(limits.memory)
        return EngineError(
            f"the child process ran out of memory{_while(op)}{':' if limits.memory is None else ';'} {rule}"
        )
    if isinstance(outcome, TooLarge):
        allowed = readable_size(limits.output or 0)
        return EngineError(f"the results are {readable_size(outcome.size)}; the limit is {allowed} (Limits.output)")
    if not isinstance(outcome, Failed):
        raise ValueError("it contains no outcome")
    error = EngineError(f"{function} failed in the child process{_while(op)}: {outcome.name}: {outcome.message}")
    error.add_note(f"In the child process:\n{printable_lines(outcome.trace)}")
    return error


def signal_name(exit_code: int | None) -> str | None:
    """Return ``None`` if no signal terminated the process."""
    if exit_code is None or exit_code >= 0:
        return None
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def _while(op: str | None) -> str:
    return f" while at {op}" if op else ""


def _memory_rule(memory: int) -> str:
    return f"the limit of a call is {readable_size(memory)} (Limits.memory)"
