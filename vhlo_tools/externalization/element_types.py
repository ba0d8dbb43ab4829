"""Names of element types in numpy and in safetensors."""

from __future__ import annotations

from typing import Final

from vhlo_tools.errors import InvalidInputError
from vhlo_tools.spec import spellings_of

# Only the safetensors names that all of its readers know; its 8-bit float of this name is the one without infinities.
_NAMES: Final[dict[str, tuple[str, str | None]]] = {
    "i1": ("bool", "BOOL"),
    "i2": ("int2", None),
    "i4": ("int4", None),
    "i8": ("int8", "I8"),
    "i16": ("int16", "I16"),
    "i32": ("int32", "I32"),
    "i64": ("int64", "I64"),
    "index": ("int64", "I64"),
    "ui2": ("uint2", None),
    "ui4": ("uint4", None),
    "ui8": ("uint8", "U8"),
    "ui16": ("uint16", "U16"),
    "ui32": ("uint32", "U32"),
    "ui64": ("uint64", "U64"),
    "f16": ("float16", "F16"),
    "bf16": ("bfloat16", "BF16"),
    "f32": ("float32", "F32"),
    "f64": ("float64", "F64"),
    "f4E2M1FN": ("float4_e2m1fn", None),
    "f6E2M3FN": ("float6_e2m3fn", None),
    "f6E3M2FN": ("float6_e3m2fn", None),
    "f8E3M4": ("float8_e3m4", None),
    "f8E4M3": ("float8_e4m3", None),
    "f8E4M3B11FNUZ": ("float8_e4m3b11fnuz", None),
    "f8E4M3FN": ("float8_e4m3fn", "F8_E4M3"),
    "f8E4M3FNUZ": ("float8_e4m3fnuz", None),
    "f8E5M2": ("float8_e5m2", "F8_E5M2"),
    "f8E5M2FNUZ": ("float8_e5m2fnuz", None),
    "f8E8M0FNU": ("float8_e8m0fnu", None),
    "complex<f32>": ("complex64", "C64"),
    "complex<f64>": ("complex128", None),
}

# Element types with another name in VHLO.
_VHLO_NAMES: Final = {"i1": "bool_v1", "tf32": "tf31_v1"}


def numpy_name(element: str) -> str | None:
    """Return the name in numpy or ml_dtypes."""
    return _NAMES.get(element, (None, None))[0]


def element_named(name: str) -> str:
    """Return the StableHLO type of a name in numpy or ml_dtypes."""
    for element, (each, _) in _NAMES.items():
        if each == name and element != "index":
            return element
    raise InvalidInputError(f"numpy's {name} is not an element type of StableHLO")


def safetensors_name(element: str) -> str | None:
    """Return the name in safetensors; ``None`` if not all of its readers have it."""
    return _NAMES.get(element, (None, None))[1]


def element_size(element: str) -> int | None:
    """Return the size in bytes; ``None`` for a type that constants cannot have."""
    if element.startswith("complex<"):
        element = element[len("complex<") : -1]
        part = None if element.startswith("complex<") else element_size(element)
        return 2 * part if part else None
    name = str(structure_of(element)["type"])
    bits = next((each.bits for each in spellings_of("vhlo", "type") if each.name == name), None)
    return max(1, bits // 8) if bits else None


def structure_of(element: str) -> dict[str, object]:
    """Return the VHLO type, in the form of ``dialect_specs/vhlo/defaults.toml``."""
    if element.startswith("complex<"):
        return {"type": "complex_v1", "element": structure_of(element[len("complex<") : -1])}
    return {"type": _VHLO_NAMES.get(element, f"{element}_v1")}
