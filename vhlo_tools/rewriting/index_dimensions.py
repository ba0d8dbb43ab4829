"""Dimension numbers of gathers and scatters, read from and written as text of MLIR."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_PART: Final = re.compile(r"(\w+) = (\[[^\]]*\]|\d+)")
_INTEGER: Final = re.compile(r"\d+")


def dimension_numbers(attribute: Any) -> dict[str, list[int]]:
    """The dimension of index vectors, ``index_vector_dim``, is a list of one."""
    found = {name: [int(each) for each in _INTEGER.findall(listed)] for name, listed in _PART.findall(str(attribute))}
    return {"index_vector_dim": [0]} | found


def dimension_numbers_text(kind: str, numbers: Mapping[str, Sequence[int]]) -> str:
    parts = [f"{name} = {list(each)}" for name, each in numbers.items() if name != "index_vector_dim"]
    (vector,) = numbers["index_vector_dim"]
    return f"#stablehlo.{kind}<{', '.join([*parts, f'index_vector_dim = {vector}'])}>"
