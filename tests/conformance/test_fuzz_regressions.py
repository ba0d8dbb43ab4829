"""Inputs on which the campaign found hangs and errors without a type."""

from __future__ import annotations

import lzma
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzz.bits import decode_whole, take_apart
from fuzz.cases import answered
from fuzz.layers import reader_calls
from support.corpus import EXAMPLES

import vhlo_tools as vt

pytestmark = pytest.mark.long

INPUTS = sorted((Path(__file__).parents[1] / "programs" / "fuzz").iterdir())
#: Far more CPU seconds than any of them takes, on a slow machine too.
_LIMIT = 60


@pytest.fixture(autouse=True)
def _watchdog() -> Iterator[None]:
    def end(number: int, frame: Any) -> None:
        raise TimeoutError(f"no end within {_LIMIT} s")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, _LIMIT)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.name)
def test_an_answer_or_a_typed_error(path: Path) -> None:
    data = path.read_bytes()
    data = lzma.decompress(data) if path.suffix == ".xz" else data
    other = bytes(vt.serialize(EXAMPLES / "saxpy.mlir"))
    decoded = answered(lambda: decode_whole(data))
    if decoded and len(data) < 1 << 20 and b"StableHLO" in data[:32]:
        answered(lambda: take_apart(data))
    for call in reader_calls(data, other, "1.0.0").values():
        answered(call)
