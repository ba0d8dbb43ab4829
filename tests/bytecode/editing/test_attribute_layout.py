"""Where attributes of ops stand after a move between layouts of the format."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.corpus import EXAMPLES
from support.corpus_files import read_corpus_file
from support.walking import walk

import vhlo_tools as vt
from vhlo_tools.bytecode import Operation


def layout(artifact: vt.Artifact) -> Iterator[tuple[str, bool, bool]]:
    """Yield every op with whether it has properties, and whether it has a dictionary of attributes."""
    for op in walk(artifact.file.ir):
        if isinstance(op, Operation):
            yield artifact.file.op_name(op.name), op.properties is not None, op.attributes is not None


def vhlo_layout(artifact: vt.Artifact) -> list[tuple[str, bool, bool]]:
    return [each for each in layout(artifact) if each[0].startswith("vhlo.")]


@pytest.mark.parametrize("target", ["0.9.0", "0.14.0", "0.15.0", "1.0.0"])
@pytest.mark.parametrize("source", ["0.9.0", "1.0.0"])
def test_attributes_stand_where_the_library_writes_them(source: str, target: str) -> None:
    program = EXAMPLES / "convnet.bc"
    moved = vt.retarget(vt.serialize(program, source), target, engine="bytes")
    assert vhlo_layout(moved) == vhlo_layout(vt.serialize(program, target))


def test_attributes_of_other_dialects_stay_in_dictionaries() -> None:
    """Releases differ in the properties of their ops."""
    older = vt.open_artifact(read_corpus_file("jaxlib-0.6.2/mixed_chlo@0.10.0.mlirbc"))
    foreign = [each for each in layout(vt.retarget(older, "1.0.0", engine="bytes")) if not each[0].startswith("vhlo.")]
    assert any(has_dictionary for _, _, has_dictionary in foreign)
    assert not any(has_properties for _, has_properties, _ in foreign)
