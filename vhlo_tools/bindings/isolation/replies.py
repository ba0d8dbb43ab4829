"""Replies of isolated processes: results, errors, and failures of the process itself."""

from __future__ import annotations

import re
import signal
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from vhlo_tools import errors
from vhlo_tools.bindings.isolation.limits import Limits, readable_size
from vhlo_tools.bindings.isolation.messages import Chunk, SharedMemory, bytes_of, flat
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


def _to_version(type_: type, value: object) -> object:
    if type_ is Version and isinstance(value, str):
        return Version(value)
    raise TypeError(f"no value of {type_.__name__}")


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=str)
_DECODER: Final = msgspec.msgpack.Decoder(Reply, dec_hook=_to_version)


def encode_reply(outcome: object, inline: bytes, *, retire: bool) -> bytes:
    control = _ENCODER.encode((outcome, retire))
    return _SIZE.pack(len(control)) + control + inline


def decode_reply(body: bytes | bytearray) -> tuple[Reply, memoryview]:
    (size,) = _SIZE.unpack_from(body)
    if size > min(_LARGEST, len(body) - _SIZE.size):
        raise ValueError(f"it announces {size} bytes")
    view = memoryview(body)
    return _DECODER.decode(view[_SIZE.size : _SIZE.size + size]), view[_SIZE.size + size :]


def pack_value(value: object, memory: SharedMemory, largest: int | None = None) -> tuple[Any, bytes]:
    """Return what :data:`_Value` decodes, with its large chunks in ``memory``, and its small chunks.

    A value may consist of ``None``, booleans, numbers, texts, bytes, arrays of numbers, diagnostics, tuples, lists and
    dictionaries; ``largest`` is in bytes.
    """
    buffers: list[memoryview] = []
    places: list[list[Any]] = []

    def chunk(data: memoryview) -> list[Any]:
        buffers.append(data)
        places.append([])  # filled when all buffers have their places
        return places[-1]

    packed = _packed(value, chunk)
    size = sum(each.nbytes for each in buffers)
    if largest is not None and size > largest:
        raise OutputTooLarge(size)
    chunks, inline = memory.place(buffers)
    for place, each in zip(places, chunks, strict=True):
        place[:] = each
    return packed, inline


def encode_error(error: BaseException) -> Raised | None:
    name = type(error).__name__
    if _CLASSES.get(name) is not type(error):
        return None
    notes = tuple(map(str, getattr(error, "__notes__", ())))
    message = str(error.args[0]) if error.args else ""
    return Raised(_Error(name, message, notes, **{each: getattr(error, each) for each in _ATTRIBUTES[name]}))


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
    class_.__name__: class_
    for class_ in (*vars(errors).values(), MLIRFailure, XlaFailure)
    if isinstance(class_, type) and issubclass(class_, Exception) and not class_.__name__.startswith("_")
}
#: The attributes of each, those of its bases included.
_ATTRIBUTES: Final = {
    name: tuple(dict.fromkeys(each for base in class_.__mro__ for each in _DEFINED.get(base.__name__, ())))
    for name, class_ in _CLASSES.items()
}


# Not within `pack_value`: a closure that calls itself keeps the buffers alive until garbage is collected, and XLA
# writes over no array that somebody has.
def _packed(value: Any, chunk: Callable[[memoryview], list[Any]]) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float):
        return value
    if kind is str:
        # Only texts of UTF-8 can be encoded.
        data = value.encode(errors="backslashreplace")
        return data.decode() if len(value) <= _LONG_TEXT else ("text", chunk(memoryview(data)))
    if kind in (bytes, bytearray, memoryview):
        return "bytes", chunk(flat(memoryview(value)))
    if kind in (tuple, list):
        return kind.__name__, [_packed(each, chunk) for each in value]
    if kind is dict:
        return "dict", [_packed(each, chunk) for each in value], [_packed(each, chunk) for each in value.values()]
    if kind is Diagnostic:
        return "diagnostic", value
    import numpy as np

    if not isinstance(value, np.ndarray | np.generic):
        raise TypeError(f"a value of {kind.__qualname__} cannot be sent to another process")
    # The name by which :func:`_dtype` finds the element type.
    name = value.dtype.name if _ML_TYPE.fullmatch(value.dtype.name) else value.dtype.str
    if not _NUMPY_TYPE.fullmatch(name) and not _ML_TYPE.fullmatch(name):
        raise TypeError(f"an array of {value.dtype} cannot be sent to another process")
    return "array", name, value.shape, chunk(bytes_of(value))


def unpack_value(value: _Value, memory: SharedMemory, inline: memoryview, largest: int | None = None) -> Any:
    """Arrays are copied, and are writable; invalid or too large data is a ``ValueError``."""
    left = largest

    def find(chunk: Chunk) -> memoryview:
        nonlocal left
        if left is not None and (left := left - chunk.size) < 0:
            raise ValueError("it is larger than the limit of output")
        return memory.find(chunk, inline)

    return _found(value, find)


def _found(value: _Value, find: Callable[[Chunk], memoryview]) -> Any:
    match value:
        case _Tuple():
            return tuple([_found(each, find) for each in value.items])
        case _List():
            return [_found(each, find) for each in value.items]
        case _Dict():
            keys, values = ([_found(each, find) for each in side] for side in (value.keys, value.values))
            return dict(zip(keys, values, strict=True))
        case _Diagnostic():
            return value.diagnostic
        case _Bytes():
            return bytes(find(value.chunk))
        case _Text():
            return str(find(value.chunk), "utf-8")
        case _Array():
            return _array(value, find)
    return value


def _array(data: _Array, find: Callable[[Chunk], memoryview]) -> Any:
    import numpy as np

    dtype = _dtype(data.dtype)
    count = dtype.itemsize
    for size in data.shape:
        # A product of unchecked numbers could take long to compute.
        if size < 0 or (count := count * size) > 1 << 62:
            raise ValueError(f"an array has the shape {data.shape}")
    if count != data.chunk.size:
        raise ValueError(f"an array of {dtype}{list(data.shape)} has {data.chunk.size} bytes")
    # Numpy allocates large pages, which makes this twice as fast as a copy by Python.
    array = np.frombuffer(find(data.chunk), np.uint8).copy().view(dtype).reshape(data.shape)
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
    *("bad_alloc", "out of memory", "Allocation failed", "Cannot allocate memory", "MemoryError"),
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
    name = None
    if how:
        exit_code = None
    elif exit_code is None:
        how = "has disappeared"
    elif exit_code >= 0:
        how = f"ended with the exit code {exit_code}"
    else:
        known = {int(each): each.name for each in signal.Signals}
        name, exit_code = known.get(-exit_code, f"signal {-exit_code}"), None
        how = f"crashed with {name}"
    message = f"the child process {how}{_while(op)}"
    if limits.memory is not None and any(sign in output for sign in _SIGNS_OF_NO_MEMORY):
        message += f": it ran out of memory; {_memory_rule(limits.memory)}"
    elif name == "SIGKILL":
        message += ": the system may have terminated it because memory ran out"
    if said := _last_words(output):
        message += f"; it wrote: {said}"
    return EngineCrashError(message, signal=name, exit_code=exit_code, op=op, output=output)


def _last_words(output: str) -> str:
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


def _while(op: str | None) -> str:
    return f" while at {op}" if op else ""


def _memory_rule(memory: int) -> str:
    return f"the limit of a call is {readable_size(memory)} (Limits.memory)"
