"""Values: numpy arrays, the tensor types they belong to, and the form in which the interpreter takes and gives them.

The interpreter itself exchanges booleans, integers of 8 to 64 bits and the IEEE floats. Everything else is *carried*:
as real and imaginary parts, as the bits of an unsigned integer, or in a wider integer, with the conversion done in the
program (:mod:`vhlo_tools.interpreter.carrying`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np

from vhlo_tools.errors import EngineError, InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["ArgumentType", "Carriage", "as_array", "fitting", "parse_tensor_type"]

Carriage = Literal["direct", "parts", "bits", "wider"]

_DIRECT: Final = {
    "i1": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
}
_PARTS: Final = {"complex<f32>": ("complex64", "f32"), "complex<f64>": ("complex128", "f64")}
# The dtypes of ml_dtypes, with the integer that holds their bits.
_BITS: Final = {
    "bf16": ("bfloat16", "ui16"),
    "f8E3M4": ("float8_e3m4", "ui8"),
    "f8E4M3": ("float8_e4m3", "ui8"),
    "f8E4M3B11FNUZ": ("float8_e4m3b11fnuz", "ui8"),
    "f8E4M3FN": ("float8_e4m3fn", "ui8"),
    "f8E4M3FNUZ": ("float8_e4m3fnuz", "ui8"),
    "f8E5M2": ("float8_e5m2", "ui8"),
    "f8E5M2FNUZ": ("float8_e5m2fnuz", "ui8"),
    "f8E8M0FNU": ("float8_e8m0fnu", "ui8"),
}
_WIDER: Final = {"i2": ("int2", "i8"), "i4": ("int4", "i8"), "ui2": ("uint2", "ui8"), "ui4": ("uint4", "ui8")}

_TENSOR: Final = re.compile(r"tensor<((?:(?:[0-9]+|\?)x)*)([a-zA-Z][^,]*?)(?:, .*)?>")


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """The tensor type of an argument or a result.

    Attributes:
        text: The type as MLIR prints it.
        shape: Its dimensions; ``None`` for one that is dynamic.
        element: Its element type as MLIR prints it.
        dtype: The numpy dtype of its values.
        carriage: How values of it come into the interpreter and out.
        carrier: The element type in which they are carried.
    """

    text: str
    shape: tuple[int | None, ...]
    element: str
    dtype: np.dtype[Any]
    carriage: Carriage
    carrier: str

    @property
    def is_static(self) -> bool:
        """Whether all dimensions are known."""
        return None not in self.shape

    def with_shape(self, shape: tuple[int, ...]) -> ArgumentType:
        """Return the type with the dimensions ``shape``."""
        return parse_tensor_type(_tensor_text(shape, self.element))

    def carrier_text(self) -> str:
        """Return the type, as MLIR text, in which values are carried."""
        return _tensor_text(self.shape, self.carrier)


def _tensor_text(shape: tuple[int | None, ...], element: str) -> str:
    dimensions = "".join(f"{'?' if size is None else size}x" for size in shape)
    return f"tensor<{dimensions}{element}>"


@cache
def parse_tensor_type(text: str) -> ArgumentType:
    """Return the tensor type that MLIR prints as ``text``.

    Raises:
        EngineError: If it is no tensor type, or one without values in numpy.
    """
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise EngineError(f"values of type {text} have no form in numpy")
    shape = tuple(None if size == "?" else int(size) for size in match[1].split("x")[:-1])
    element = match[2]
    if element in _DIRECT:
        return ArgumentType(text, shape, element, np.dtype(_DIRECT[element]), "direct", element)
    if element in _PARTS:
        name, part = _PARTS[element]
        return ArgumentType(text, shape, element, np.dtype(name), "parts", part)
    if element in _BITS:
        name, carrier = _BITS[element]
        return ArgumentType(text, shape, element, _ml_dtype(name, text), "bits", carrier)
    if element in _WIDER:
        name, carrier = _WIDER[element]
        return ArgumentType(text, shape, element, _ml_dtype(name, text), "wider", carrier)
    raise EngineError(f"values of type {text} have no form in numpy")


def _ml_dtype(name: str, text: str) -> np.dtype[Any]:
    import ml_dtypes

    if not hasattr(ml_dtypes, name):
        raise EngineError(f"values of type {text} need a newer ml_dtypes, with {name}")
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def as_array(value: ArrayLike, wanted: ArgumentType, which: str) -> np.ndarray[Any, Any]:
    """Return ``value`` as a contiguous array in the machine's byte order that fits ``wanted``.

    Args:
        value: An array, which must have the dtype; or Python numbers, which take it if it can hold them.
        wanted: The type of the argument.
        which: What to call the argument in a message.

    Raises:
        InvalidInputError: If dtype or shape do not fit.
    """
    array = value if isinstance(value, np.ndarray | np.generic) else _from_numbers(value, wanted, which)
    array = np.asarray(array)
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == wanted.dtype.itemsize:
        array = array.view(wanted.dtype)  # numpy's files keep the bits of the types of ml_dtypes, and not their names
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    fitting(array, wanted, which)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)


class _Typed(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...


def fitting(value: _Typed, wanted: ArgumentType, which: str) -> None:
    """Raise unless an array is of the type of the argument.

    Args:
        value: The array, or what has a shape and a dtype as one.
        wanted: The type of the argument.
        which: What to call the argument in a message.

    Raises:
        InvalidInputError: If dtype or shape do not fit.
    """
    fits = len(value.shape) == len(wanted.shape) and all(
        size in (None, found) for size, found in zip(wanted.shape, value.shape, strict=True)
    )
    if value.dtype != wanted.dtype or not fits:
        raise InvalidInputError(
            f"{which} is {value.dtype}{list(value.shape)}, but the program takes {wanted.dtype}"
            f"[{', '.join('any' if size is None else str(size) for size in wanted.shape)}] ({wanted.text})"
        )


def _from_numbers(value: ArrayLike, wanted: ArgumentType, which: str) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidInputError(f"{which} is no array of numbers: {error}") from error
    if array.dtype.kind not in "biufc":
        raise InvalidInputError(f"{which} is no array of numbers: the program takes {wanted.text}")
    whole = wanted.dtype.kind in "biu" or wanted.carriage == "wider"
    if array.dtype.kind == "c" and wanted.carriage != "parts":
        raise InvalidInputError(f"{which} is complex: the program takes {wanted.text}")
    with np.errstate(over="ignore", invalid="ignore"):
        converted = array.astype(wanted.dtype)
        if whole and not np.array_equal(converted.astype(array.dtype), array):
            raise InvalidInputError(f"{which} holds numbers that {wanted.text} cannot hold")
    return converted
