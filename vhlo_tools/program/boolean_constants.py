"""Large constants of booleans in MLIR text, which MLIR writes in hexadecimal in one of two forms.

Some releases of MLIR pack eight booleans into a byte, the first one into the lowest bit, and others give each a byte of
its own. A library reads the form that it writes. Source: ``DenseElementsAttr`` in ``mlir/lib/IR/BuiltinAttributes.cpp``
of llvm/llvm-project, in its versions.
"""

from __future__ import annotations

import re
from math import prod
from typing import Final

import numpy as np

_BOOLEANS: Final = re.compile(r'dense<"0x([0-9A-Fa-f]+)">( *: *(?:tensor|vector)<((?:\d+x)+)i1\b)')


def in_other_form(text: str) -> str:
    """Unpacks packed constants, and packs unpacked ones."""
    return _BOOLEANS.sub(_other, text)


def _other(match: re.Match[str]) -> str:
    stored = np.frombuffer(bytes.fromhex(match[1]) if len(match[1]) % 2 == 0 else b"", np.uint8)
    number = prod(int(size) for size in match[3].split("x")[:-1])
    if stored.size == number:
        changed = np.packbits(stored != 0, bitorder="little")
    elif stored.size == -(-number // 8):
        changed = np.unpackbits(stored, count=number, bitorder="little")
    else:
        return match[0]
    return f'dense<"0x{changed.tobytes().hex().upper()}">{match[2]}'
