"""Expansions in a program of 100,000 ops, of which 1,000 need one, beside the library's writing of it as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider

_OPS: Final = 100_000
#: One op in so many is ``tan``, which 1.4.0 introduced.
_EVERY: Final = 100
#: The version before ``tan``, that of jaxlib 0.4.26, and the oldest.
_TARGETS: Final = ("1.3.0", "0.19.0", "0.9.0")

Case = tuple[str, Callable[[Any], object], Callable[[Any], object], Callable[[], Any]]


def cases() -> Iterator[Case]:
    """Yield the name of each case, what we do, what the library does, and what gives the input."""
    provider = get_provider()
    raw, current = RawLibrary(provider), str(provider.library.current)
    prepare = partial(raw.parse, program())
    for target in _TARGETS:
        yield f"expanded for {target}", partial(_expanded, target), partial(_written, raw, current), prepare
    yield f"as it is, {current}", partial(_written_by_us, current), partial(_written, raw, current), prepare


def program() -> str:
    """Return the program as MLIR text."""
    ops = ("add", "multiply", "subtract", "maximum")
    lines = ["func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {"]
    for i in range(_OPS):
        op = f"tan %{i}" if i % _EVERY == 0 else f"{ops[i % 4]} %{i}, %{max(0, i - 3)}"
        lines.append(f"  %{i + 1} = stablehlo.{op} : tensor<4xf32>")
    return "\n".join([*lines, f"  return %{_OPS} : tensor<4xf32>", "}"])


def _expanded(target: str, module: Any) -> object:
    return vt.serialize(module, target, expand=True)


def _written_by_us(target: str, module: Any) -> object:
    return vt.serialize(module, target)


def _written(raw: RawLibrary, target: str, module: Any) -> object:
    return raw.serialize(module, target)
