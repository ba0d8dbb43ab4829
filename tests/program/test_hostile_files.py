"""Files that crashed the process, took minutes, or ended in a traceback: an answer or a typed error, within seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import vhlo_tools as vt
from vhlo_tools.artifact import inspect_bytes

FILES = sorted((Path(__file__).parents[1] / "programs" / "hostile").iterdir())
# A limit against hangs; the slowest takes a fraction of it on an idle machine.
SECONDS = 30.0

CALLS: dict[str, Callable[[Path], object]] = {
    "serialize": vt.serialize,
    "serialize for an old version": lambda path: vt.serialize(path, "1.0.0"),
    "check": lambda path: vt.check(path, "1.0.0"),
    "require": lambda path: vt.require(path, "1.0.0"),
    "inspect": lambda path: inspect_bytes(path.read_bytes(), path.name),
    "retarget": lambda path: vt.retarget(path, "1.0.0"),
    "strip": vt.strip,
    "deserialize": vt.deserialize,
    "diff": lambda path: vt.diff(path, path),
    "run on the interpreter": lambda path: vt.run(path, [], engine="reference", timeout=5),
    "run": lambda path: vt.run(path, [], timeout=5),
    "run in parallel": lambda path: vt.run_parallel(path, [[]], timeout=5),
    "verify": lambda path: vt.verify(path, path, timeout=5),
    "constants": lambda path: vt.constants(path),
}


@pytest.mark.sample(16)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_answer_or_a_typed_error_in_time(path: Path, call: str) -> None:
    if "splats" in path.name and ("run" in call or call == "verify"):
        return  # it computes two terabytes
    begun = time.monotonic()
    try:
        CALLS[call](path)
    except vt.VhloToolsError as error:
        assert str(error)
        assert "Traceback" not in str(error)
    assert time.monotonic() - begun < SECONDS


@pytest.mark.parametrize(
    ("name", "message"),
    [
        # jaxlib 0.10 dies of it, 0.12 refuses it.
        ("hlo_proto_flipped_bit.pb", "crashes or hangs|is not valid HLO: Out-of-bounds dimension 0"),
        ("hlo_proto_invalid.pb", "is not valid HLO: op requires the same element type"),
        ("integer_of_16777215_bits.mlirbc", "contains an integer type of 16777215 bits: at most 4096 are read"),
        ("integer_of_a_million_words.mlirbc", "contains an integer type of 16777215 bits: at most 4096 are read"),
    ],
)
def test_the_reason(name: str, message: str) -> None:
    with pytest.raises(vt.InvalidProgramError, match=message):
        vt.serialize(FILES[0].with_name(name))


def test_names_that_are_not_utf8() -> None:
    path = FILES[0].with_name("name_not_utf8.mlirbc")
    assert len(vt.serialize(path))
    with pytest.raises(vt.InvalidProgramError, match="has a name that is empty, not UTF-8"):
        vt.load_executable(path)
