from __future__ import annotations

from pathlib import Path

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.files import Kind, recognise


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("saxpy.mlir", Kind.MLIR_TEXT),
        ("convnet.bc", Kind.MLIR_BYTECODE),
        ("symbolic_export.jax_export", Kind.JAX_EXPORT),
    ],
)
def test_examples(file: str, kind: Kind) -> None:
    assert recognise((EXAMPLES / file).read_bytes()) is kind


def test_an_artifact() -> None:
    artifact = vt.serialize(EXAMPLES / "saxpy.mlir")
    assert recognise(bytes(artifact)) is Kind.PORTABLE_ARTIFACT
    assert recognise(memoryview(bytes(artifact))) is Kind.PORTABLE_ARTIFACT
    # The version of the format stands between, in a byte or more.
    magic, rest = bytes(artifact)[:4], bytes(artifact)[5:]
    assert recognise(magic + b"\x80" + bytes(8) + rest) is Kind.PORTABLE_ARTIFACT
    assert recognise(magic + rest) is Kind.MLIR_BYTECODE


def test_the_name_of_a_file_decides_nothing(tmp_path: Path) -> None:
    misnamed = tmp_path / "artifact.txt"
    vt.serialize(EXAMPLES / "saxpy.mlir", "1.0.0").save(misnamed)
    assert vt.serialize(misnamed, "0.9.0").version == vt.Version("0.9.0")


def test_text_that_is_cut_within_a_character_by_the_sample() -> None:
    text = ("//" + "é" * 5000).encode()
    assert recognise(text) is Kind.MLIR_TEXT
    assert recognise(b"/" + text) is Kind.MLIR_TEXT


def test_text_may_begin_with_any_white_space() -> None:
    assert recognise(b" \n" * 10_000 + b"module {}") is Kind.MLIR_TEXT


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x is empty: expected a portable artifact, MLIR"),
        (b" \n\t", "contains only white space"),
        (b" " * 10_000, "contains only white space"),
        (b"\x7fELF\x02\x01\x01\0\0\0", r"starts with b'\\x7fELF"),
        (b"\xff\xfeabc", "no known program format"),
        (b"\0" * 64, "no known program format"),
    ],
)
def test_what_is_no_program(data: bytes, message: str) -> None:
    with pytest.raises(vt.InvalidProgramError, match=message):
        recognise(data, "x")
