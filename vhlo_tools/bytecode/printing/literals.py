"""Numbers, strings and names in the syntax of MLIR text.

Source: the MLIR language reference (``mlir/docs/LangRef.md``) and ``mlir/lib/AsmParser/Lexer.cpp``.
"""

from __future__ import annotations

import math
import re
import struct
from typing import Final

_BARE: Final = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)


def escaped(text: bytes) -> str:
    parts = [
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else "\\\\" if byte == ord("\\") else f"\\{byte:02X}"
        for byte in text
    ]
    return f'"{"".join(parts)}"'


def bare_or_quoted(name: bytes) -> str:
    text = name.decode("utf-8", "replace")
    return text if _BARE.fullmatch(text) else escaped(name)


def double(value: float) -> str:
    """The lexer requires a point before an exponent."""
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}"


# The struct formats for converting bits to a float, for the types that Python has.
_LAYOUTS: Final = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}


def float_of_bits(bits: int, name: str, width: int) -> str:
    """Return a float as a decimal if that is exact, else as hexadecimal."""
    bits &= (1 << width) - 1
    if name == "bf16":
        name, bits = "f32", bits << 16
    if name in _LAYOUTS:
        store, load = _LAYOUTS[name]
        value: float = struct.unpack(load, struct.pack(store, bits))[0]
        if math.isfinite(value):
            return double(value)
    return f"0x{bits:0{(width + 3) // 4}X}"
