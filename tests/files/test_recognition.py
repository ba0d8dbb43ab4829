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
    text = ("//" + "é" * 5000 + "\nmodule {}").encode()
    assert recognise(text) is Kind.MLIR_TEXT
    assert recognise(b"/" + text) is Kind.MLIR_TEXT


def test_text_may_begin_with_any_white_space() -> None:
    assert recognise(b" \n" * 10_000 + b"module {}") is Kind.MLIR_TEXT


@pytest.mark.parametrize(
    "text",
    [
        "module @m attributes {a = 1 : i32} {}",
        "module{}",
        "func @main(%a: tensor<f32>) { return }",
        "func private @f()",
        "func.func public @main() { return }",
        "llvm.func internal @f()",
        "builtin.module {}",
        'memref.global "private" @m : memref<2xf32>',
        "transform.sequence failures(propagate) {}",
        '"builtin.module"() ({}) : () -> ()',
        '%0:2 = "stablehlo.rng_bit_generator"() : () -> ()',
        "%c, %d = stablehlo.f",
        "#map = affine_map<(d0) -> (d0)>\nmodule {}",
        "!t = tensor<2xf32>\nmodule {}",
        "{-# dialect_resources: {} #-}\nmodule {}",
        "// RUN: stablehlo-opt %s\n\n  // CHECK\nmodule {}",
        "//" + "x" * 100_000 + "\nmodule {}",
    ],
)
def test_first_words_of_mlir(text: str) -> None:
    assert recognise(text.encode()) is Kind.MLIR_TEXT


@pytest.mark.parametrize(
    "text", ["module @m {}", "func.func private @f() -> tensor<2xf32>", "HloModule m, is_scheduled=true"]
)
def test_words_stand_anywhere_around_the_end_of_a_sample(text: str) -> None:
    kind = Kind.HLO_TEXT if text.startswith("Hlo") else Kind.MLIR_TEXT
    for length in (*range(4096 - len(text) - 8, 4096 + 8), (1 << 16) - 1, 1 << 16, 1 << 20):
        for before in (
            b"//" + b"x" * (length - 3) + b"\n",
            b" " * length,
            b"//\n" * (length // 3) + b" " * (length % 3),
        ):
            assert recognise(before + text.encode()) is kind


def test_hlo_text_may_follow_comments() -> None:
    assert recognise(b"// a dump\nHloModule m, is_scheduled=true\n\nENTRY e {}") is Kind.HLO_TEXT
    assert recognise(b"HloModule\tm") is Kind.HLO_TEXT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!DOCTYPE html>\n<html>", "it begins with '<!DOCTYPE html>"),
        ("# Models\n\nmodule `net` is ...", "it begins with '# Models"),
        ("modules: [a]", "it begins with 'modules: \\[a\\]'"),
        ('{"a": 1}', "neither MLIR nor HLO"),
        ('"name","size"\n"a",1', "neither MLIR nor HLO"),
        ("import os\nos.path", "neither MLIR nor HLO"),
        ("polkit.addRule(function(action) {", "neither MLIR nor HLO"),
        ("// only words", "contains only white space and comments"),
        ("HloModules are ...", "neither MLIR nor HLO"),
        (
            f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12\n",
            "x is a pointer of Git LFS, and not what it points to: `git lfs pull`",
        ),
    ],
)
def test_other_text(text: str, message: str) -> None:
    with pytest.raises(vt.InvalidProgramError, match=message):
        recognise(text.encode(), "x")


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
