"""Constants of element types that the bindings cannot give as numpy arrays, read from their printed form.

MLIR prints at most a hundred elements as numbers, floats that are not finite as their bits, and more elements as a
string of bytes, one for each element. A splat is printed as its one element.

Source: ``printDenseElementsAttr`` in ``mlir/lib/IR/AsmPrinter.cpp`` of llvm/llvm-project.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

_BYTES: Final = re.compile(r'dense<"0x([0-9A-Fa-f]*)">')
_NUMBER: Final = re.compile(r"[-+.0-9a-zA-Z]+")


def elements_of_constant(attribute: Any, kind: Any) -> np.ndarray[Any, Any]:
    """Elements have at most 8 bits; of a splat, only the one element is returned."""
    # The type follows after the last colon.
    text = str(attribute).rpartition(" : ")[0]
    if found := _BYTES.fullmatch(text):
        return _of_bits(np.frombuffer(bytes.fromhex(found[1]), np.uint8), kind)
    words = _NUMBER.findall(text.removeprefix("dense"))
    if words and any(word.startswith("0x") for word in words):
        return np.concatenate([_of_word(word, kind) for word in words])
    return np.array([float(word) for word in words], np.float64).astype(kind)


def _of_word(word: str, kind: Any) -> np.ndarray[Any, Any]:
    if word.startswith("0x"):
        return _of_bits(np.array([int(word, 16)], np.uint8), kind)
    return np.array([float(word)], np.float64).astype(kind)


def _of_bits(bits: np.ndarray[Any, Any], kind: Any) -> np.ndarray[Any, Any]:
    # A type of fewer bits ignores the upper ones in conversions, not in comparisons.
    return bits.view(kind)
