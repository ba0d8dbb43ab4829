"""Damaged jax.export files: read, or refused with a place, and never unfolded into more than they are."""

from __future__ import annotations

import random

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.files import decode_jax_export, read_signature, recognise
from vhlo_tools.files.jax_export import replace_modules
from vhlo_tools.files.mapping import join

STORE = EXAMPLES / "jax_store"
MODULE = b"ML\xefR\1\2\3"


def small_file(name: str) -> bytes:
    """Return a file with a tiny artifact, so that what is damaged is the rest."""
    return join(replace_modules((STORE / f"{name}.jax_export").read_bytes(), lambda *_: [MODULE]))


def try_it(data: bytes) -> bool:
    """Do all that is done with such files; tell whether they were read."""
    try:
        recognise(data)
        for level in decode_jax_export(data).levels():
            read_signature(level)
        rewritten = join(replace_modules(data, lambda *_: [MODULE * 9]))
    except vt.MalformedArtifactError as error:
        assert error.offset is not None
        return False
    except vt.InvalidProgramError:
        return False
    # What can be rewritten can be read again, with what was put in.
    assert {bytes(level.module) for level in decode_jax_export(rewritten).levels()} <= {MODULE * 9, b""}
    return True


@pytest.mark.parametrize("name", ["loss", "sharded_predict"])
def test_truncated_files(name: str) -> None:
    data = small_file(name)
    assert try_it(data)
    # At the very end stands nothing but what aligns it.
    assert not any(try_it(data[:length]) for length in range(len(data) - 8))


@pytest.mark.long
@pytest.mark.parametrize("name", ["evaluate", "sharded_predict"])
def test_every_byte_damaged(name: str) -> None:
    data = small_file(name)
    chance = random.Random(0)
    outcomes = set()
    for place in range(len(data)):
        for value in {0xFF, data[place] ^ (1 << chance.randrange(8))}:
            outcomes.add(try_it(data[:place] + bytes([value]) + data[place + 1 :]))
    assert outcomes == {True, False}


def test_many_bytes_damaged() -> None:
    chance = random.Random(1)
    for name in ("loss", "standardize", "train_step"):
        data = small_file(name)
        for _ in range(300):
            damaged = bytearray(data)
            for _ in range(chance.randrange(2, 12)):
                damaged[chance.randrange(len(data))] = chance.randrange(256)
            try_it(bytes(damaged))
