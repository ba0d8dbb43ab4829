"""Decoding every part and encoding it again gives the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_identity import KINDS, check
from support.corpus import EXAMPLES, FEATURES, around, example_programs, features_of_library, some_versions
from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.bytecode import decode, encode
from vhlo_tools.spec import Feature

pytestmark = pytest.mark.every_python


def assert_identity(data: bytes) -> None:
    """See that only what no specification describes stays bytes, and that all is itself again."""
    check(data)
    file = decode(data)
    for kind, table in zip(KINDS, (file.attributes, file.types), strict=True):
        for index, entry in enumerate(table):
            known = not entry.custom or file.dialect(entry.dialect) not in ("builtin", "vhlo")
            assert known or file.decode(kind, index) is not None


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", example_programs(), ids=lambda path: path.name)
def test_examples_at_every_version(path: Path) -> None:
    for version in some_versions(path.name):
        try:
            artifact = vt.serialize(path, version, allow_other_dialects=True)
        except vt.DowngradeError:
            continue
        assert_identity(bytes(artifact))


@pytest.mark.sample(6)
@pytest.mark.parametrize("feature", features_of_library(), ids=lambda feature: feature.id)
def test_features_at_every_version(feature: Feature) -> None:
    for version in some_versions(feature.id, *around(feature)):
        if version >= feature.introduced:
            assert_identity(bytes(vt.serialize(FEATURES / f"{feature.id}.mlir", version)))


def test_ordinary_bytecode_of_every_format_version(raw: RawLibrary) -> None:
    assert_identity((EXAMPLES / "convnet.bc").read_bytes())
    module = raw.parse((EXAMPLES / "transformer_step.mlir").read_text())
    for version in range(7):
        pieces: list[bytes] = []
        sink = type("Sink", (), {"write": lambda _, data, pieces=pieces: pieces.append(bytes(data))})()
        module.operation.write_bytecode(sink, desired_version=version)
        assert decode(b"".join(pieces)).version == version
        assert_identity(b"".join(pieces))


def test_what_is_not_looked_at_is_passed_on() -> None:
    data = bytes(vt.serialize(EXAMPLES / "transformer_step.mlir"))
    file = decode(data)
    file.strings.append(b"new")
    again = decode(encode(file))
    assert again.strings[-1] == b"new"
    assert [(s.name, s.size) for s in again.sections if s.name != "string"] == [
        (s.name, s.size) for s in file.sections if s.name != "string"
    ]
