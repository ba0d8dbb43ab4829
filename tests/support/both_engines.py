"""Programs run by the reference interpreter and by XLA on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import vhlo_tools as vt
from support.xla_cpu import run_on_xla


def tensor(array: np.ndarray[Any, Any] | Sequence[int], element: str) -> str:
    """Return the type of ``array``, or of a shape."""
    shape = array.shape if isinstance(array, np.ndarray) else array
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def function(arguments: str, body: str, results: Sequence[str], types: Sequence[str]) -> str:
    """Return a ``main`` that takes ``arguments`` and returns ``results``."""
    kinds = ", ".join(types)
    return f"func.func @main({arguments}) -> ({kinds}) {{ {body} return {', '.join(results)} : {kinds} }}"


def run(text: str, inputs: Sequence[Any], **options: Any) -> tuple[Any, ...]:
    """Return what the reference interpreter gives, of values that need be no arrays."""
    arguments: Any = inputs
    return vt.run(text, arguments, **options)


def run_on_both(
    text: str, inputs: Sequence[Any]
) -> tuple[tuple[np.ndarray[Any, Any], ...], list[np.ndarray[Any, Any]]]:
    """Return what the reference interpreter gives, and what XLA gives."""
    return vt.run(text, inputs), run_on_xla(bytes(vt.serialize(text)), inputs)
