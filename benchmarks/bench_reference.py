"""What isolation costs the reference interpreter, and how many small programs are verified in a minute."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider

PROGRAMS: Final = 2000
THREADS: Final = 2
LARGE: Final = 64 << 20

SCALAR: Final = """func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %a : tensor<f32>
  return %0 : tensor<f32>
}"""


def run(pairs: int) -> None:
    """Measure, and print a line for each case."""
    raw = RawLibrary(get_provider())
    tensor = f"tensor<{LARGE // 4}xf32>"
    large = SCALAR.replace("tensor<f32>", tensor)
    for name, text, array in (
        ("scalar program, fresh context", SCALAR, np.float32(1)),
        ("64 MB in and out", large, np.ones(LARGE // 4, np.float32)),
    ):
        executable = vt.load_executable(text, engine="reference")
        ours, bare = _medians(lambda: executable.run([array]), lambda: _raw(raw, text, np.asarray(array)), pairs)  # noqa: B023
        difference = f"{(ours - bare) * 1e3:+.2f} ms, ratio {ours / bare:.2f}"
        print(f"{name}: ours {ours * 1e3:.2f} ms, raw {bare * 1e3:.2f} ms, {difference}")
    artifacts = [vt.serialize(_small(number)) for number in range(PROGRAMS)]
    started = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        passed = sum(pool.map(lambda each: vt.verify(each, each).passed, artifacts))
    print(
        f"{passed} of {PROGRAMS} small programs verified in {time.perf_counter() - started:.1f} s by {THREADS} threads"
    )


def _medians(ours: Callable[[], object], raw: Callable[[], object], pairs: int) -> tuple[float, float]:
    taken: tuple[list[float], list[float]] = ([], [])
    for turn in range(-1, pairs):
        for mine, function in list(zip(taken, (ours, raw), strict=True))[:: 1 if turn % 2 else -1]:
            started = time.perf_counter()
            function()
            if turn >= 0:
                mine.append(time.perf_counter() - started)
    return statistics.median(taken[0]), statistics.median(taken[1])


def _raw(raw: RawLibrary, text: str, array: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Evaluate with the bare library, in this process."""
    module = raw.parse(text)
    attribute = raw.ir.DenseElementsAttr.get(array, shape=list(array.shape), context=module.context)
    return [np.array(each) for each in raw.stablehlo.eval_module(module, [attribute])]


def _small(number: int) -> str:
    """Return one of many small programs: a few ops on a few elements."""
    ops = ("add", "multiply", "subtract", "maximum", "minimum")
    tensor = f"tensor<{number % 7 + 1}x{number % 5 + 1}xf32>"
    lines = [f"  %{at + 1} = stablehlo.{ops[(number + at) % 5]} %{at}, %0 : {tensor}" for at in range(number % 11 + 1)]
    return "\n".join(
        [f"func.func @main(%0: {tensor}) -> {tensor} {{", *lines, f"  return %{len(lines)} : {tensor}", "}"]
    )
