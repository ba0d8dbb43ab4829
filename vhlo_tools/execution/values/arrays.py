"""Values: numpy arrays, their types, and the form in which the interpreter exchanges them.

The interpreter itself exchanges booleans, integers of 8 to 64 bits and the IEEE floats. All other values are
*converted*: to real and imaginary parts, to the bits of an unsigned integer, or to a wider number, and back in the
program (:mod:`vhlo_tools.execution.reference.calling_convention`). Quantized tensors are, as stored, integers in numpy;
tokens are ``None``, and tuples are tuples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np

from vhlo_tools.errors import EngineError, InvalidInputError
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Conversion = Literal["direct", "parts", "bits", "wider"]

_DIRECT: Final = {
    "i1": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
}
_PARTS: Final = {"complex<f32>": ("complex64", "f32"), "complex<f64>": ("complex128", "f64")}
# The dtypes of ml_dtypes, with the integer type that contains their bits.
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
# Types for which a wider type represents every number; none of these floats has a NaN or an infinity.
_WIDER: Final = {
    "i2": ("int2", "i8"),
    "i4": ("int4", "i8"),
    "ui2": ("uint2", "ui8"),
    "ui4": ("uint4", "ui8"),
    "f4E2M1FN": ("float4_e2m1fn", "f32"),
    "f6E2M3FN": ("float6_e2m3fn", "f32"),
    "f6E3M2FN": ("float6_e3m2fn", "f32"),
}

#: The element type of each dtype, by name.
_ELEMENTS: Final = {
    **{dtype: element for element, dtype in _DIRECT.items()},
    **{dtype: element for element, (dtype, _) in (*_PARTS.items(), *_BITS.items(), *_WIDER.items())},
}

_TENSOR: Final = re.compile(
    r"tensor<((?:(?:[0-9]+|\?)x)*)(!quant\.uniform<(?:[^<>]|<[^<>]*>)*>|[a-zA-Z][^,]*?)"
    r"(?:, #stablehlo\.bounds<(.*)>|, .*)?>"
)
_STORAGE: Final = re.compile(r"!quant\.uniform<([iu][0-9]+)")


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """The tensor type of an argument or a result.

    Attributes:
        text: The type as MLIR prints it, without bounds, and with the storage of quantized elements.
        shape: Its dimensions; ``None`` for a dynamic dimension.
        bounds: The greatest size of each dimension; ``None`` for a dimension without a bound.
        element: Its element type as MLIR prints it.
        dtype: The numpy dtype of its values.
        conversion: The conversion of its values for the interpreter.
        converted: The element type to which they are converted.
        storage: The element type of ``dtype``: the element type itself, or the storage type of a quantized one.
    """

    text: str
    shape: tuple[int | None, ...]
    bounds: tuple[int | None, ...]
    element: str
    dtype: np.dtype[Any]
    conversion: Conversion
    converted: str
    storage: str

    @property
    def is_static(self) -> bool:
        """Whether all dimensions are known."""
        return None not in self.shape

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The dimensions.

        Raises:
            EngineError: If a dimension is dynamic.
        """
        sizes = tuple(size for size in self.shape if size is not None)
        if len(sizes) != len(self.shape):
            raise EngineError(f"the inputs do not resolve the shape of a result, {self.text}")
        return sizes

    @property
    def is_direct(self) -> bool:
        """Whether the interpreter exchanges values of the type without conversion."""
        return self.conversion == "direct"

    def with_shape(self, shape: tuple[int, ...]) -> ArgumentType:
        """Return the type with the dimensions ``shape``."""
        return parse_tensor_type(_tensor_text(shape, self.element))

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Return whether a value may have the shape ``shape``."""
        return len(shape) == len(self.shape) and all(
            size in (None, found) and (bound is None or found <= bound)
            for size, bound, found in zip(self.shape, self.bounds, shape, strict=True)
        )

    def sizes(self) -> str:
        """Return the sizes that values may have, as text."""
        words = []
        for size, bound in zip(self.shape, self.bounds, strict=True):
            dynamic = "any" if bound is None else f"at most {bound}"
            words.append(dynamic if size is None else str(size))
        return ", ".join(words)

    def converted_text(self) -> str:
        """Return the type to which values are converted, as MLIR text."""
        return _tensor_text(self.shape, self.converted)

    def converted_dtype(self) -> np.dtype[Any]:
        """Return the dtype of ``converted``."""
        return np.dtype(_DIRECT[self.converted])


@dataclass(frozen=True, slots=True)
class TokenType:
    """The only value is ``None``."""

    text: str


@dataclass(frozen=True, slots=True)
class TupleType:
    text: str
    parts: tuple[ValueType, ...]


ValueType = ArgumentType | TokenType | TupleType


def _tensor_text(shape: tuple[int | None, ...], element: str) -> str:
    dimensions = "".join(f"{'?' if size is None else size}x" for size in shape)
    return f"tensor<{dimensions}{element}>"


@cache
def parse_value_type(text: str) -> ValueType:
    if text == "!stablehlo.token":
        return TokenType(text)
    if text.startswith("tuple<") and text.endswith(">"):
        parts = tuple(map(parse_value_type, _split(text[len("tuple<") : -1])))
        return TupleType(f"tuple<{', '.join(part.text for part in parts)}>", parts)
    return parse_tensor_type(text)


def _split(types: str) -> Iterator[str]:
    depth = start = 0
    for index, sign in enumerate(types):
        depth += {"<": 1, "{": 1, ">": -1, "}": -1}.get(sign, 0)
        if sign == "," and not depth:
            yield types[start:index].strip()
            start = index + 1
    if types[start:].strip():
        yield types[start:].strip()


@cache
def parse_tensor_type(text: str) -> ArgumentType:
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise EngineError(f"numpy cannot represent values of type {text}")
    shape = _sizes(match[1].split("x")[:-1])
    bounds = _sizes(match[3].split(",")) if match[3] else (None,) * len(shape)
    element = storage = match[2]
    if stored := _STORAGE.match(element):
        storage = stored[1].replace("u", "ui")
    if storage in _DIRECT:
        conversion: Conversion = "direct"
        name = converted = storage
        dtype = np.dtype(_DIRECT[name])
    elif storage in _PARTS:
        conversion, (name, converted) = "parts", _PARTS[storage]
        dtype = np.dtype(name)
    elif storage in _BITS:
        conversion, (name, converted) = "bits", _BITS[storage]
        dtype = _ml_dtype(name, text)
    elif storage in _WIDER:
        conversion, (name, converted) = "wider", _WIDER[storage]
        dtype = _ml_dtype(name, text)
    else:
        raise EngineError(f"numpy cannot represent values of type {text}")
    return ArgumentType(_tensor_text(shape, storage), shape, bounds, element, dtype, conversion, converted, storage)


def type_of_array(array: np.ndarray[Any, Any]) -> ArgumentType | None:
    element = _ELEMENTS.get(array.dtype.name)
    return None if element is None else parse_tensor_type(_tensor_text(array.shape, element))


def _sizes(words: Iterable[str]) -> tuple[int | None, ...]:
    return tuple(None if word.strip() == "?" else int(word) for word in words)


def _ml_dtype(name: str, text: str) -> np.dtype[Any]:
    import ml_dtypes

    if not hasattr(ml_dtypes, name):
        raise EngineError(f"values of type {text} require a newer ml_dtypes, with {name}")
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def as_arrays(value: Any, wanted: ValueType, which: str) -> list[tuple[np.ndarray[Any, Any], ArgumentType]]:
    """One array, those of a tuple, or none for a token."""
    if isinstance(wanted, ArgumentType):
        return [(as_array(value, wanted, which), wanted)]
    if isinstance(wanted, TokenType):
        if value is not None:
            raise InvalidInputError(f"{which} has the type {type(value).__name__}, but a token must be None")
        return []
    if not isinstance(value, tuple | list) or len(value) != len(wanted.parts):
        found = f"{len(value)} values" if isinstance(value, tuple | list) else f"of the type {type(value).__name__}"
        raise InvalidInputError(
            f"{which} is {found}, but the program requires a tuple of {len(wanted.parts)} ({wanted.text})"
        )
    return [
        array
        for index, (each, part) in enumerate(zip(value, wanted.parts, strict=True))
        for array in as_arrays(each, part, f"{which}[{index}]")
    ]


def as_array(value: ArrayLike, wanted: ArgumentType, which: str) -> np.ndarray[Any, Any]:
    """An array must have the dtype; Python numbers must be representable in it, floats after rounding."""
    array = value if isinstance(value, np.ndarray | np.generic) else _from_numbers(value, wanted, which)
    array = np.asarray(array)
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == wanted.dtype.itemsize:
        array = array.view(wanted.dtype)  # numpy files contain the bits, but not the names, of ml_dtypes types
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    fitting(array, wanted, which)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)


class _Typed(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...


def fitting(value: _Typed, wanted: ArgumentType, which: str) -> None:
    if value.dtype != wanted.dtype or not wanted.takes(value.shape):
        raise InvalidInputError(
            f"{which} is {value.dtype}{list(value.shape)}, but the program requires {wanted.dtype}[{wanted.sizes()}] "
            f"({wanted.text})"
        )


def as_saved(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Raw bytes for elements of ml_dtypes types: for some of these, numpy would write names that it cannot read."""
    return array if array.dtype.type.__module__ == "numpy" else array.view(f"V{array.dtype.itemsize}")


def _from_numbers(value: ArrayLike, wanted: ArgumentType, which: str) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidInputError(f"{which} is not an array of numbers: {error}") from error
    if array.dtype.kind not in "biufc":
        raise InvalidInputError(f"{which} is not an array of numbers: the program requires {wanted.text}")
    whole = wanted.storage.startswith(("i", "ui"))
    if array.dtype.kind == "c" and wanted.conversion != "parts":
        raise InvalidInputError(f"{which} is complex: the program requires {wanted.text}")
    with np.errstate(over="ignore", invalid="ignore"):
        converted = array.astype(wanted.dtype)
        if whole and not np.array_equal(converted.astype(array.dtype), array):
            raise InvalidInputError(f"{which} contains numbers that {wanted.text} cannot represent")
    return converted
