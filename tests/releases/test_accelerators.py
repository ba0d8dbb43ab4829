"""The tables of docs/accelerators.md are what was found, and nothing in it is unexplained."""

from __future__ import annotations

import json

import write_accelerators
from write_matrix import restored

FOUND = json.loads(write_accelerators.KEPT.read_text())


def test_what_was_tried_is_what_was_to_be_tried() -> None:
    matrix = restored(FOUND["read"])
    assert [each.name for each in matrix.consumers] == [*write_accelerators.PLUGINS]
    assert len([each for each in matrix.consumers if each.name.startswith("libtpu")]) >= 5
    assert len(matrix.consumers) >= 9
    assert len(matrix.programs) >= 40
    assert len(matrix.cells) == len(matrix.producers) * len(matrix.consumers) * len(matrix.programs)
    assert FOUND["compiled"].keys() == write_accelerators.PLUGINS.keys()
    assert len([each for each in FOUND["aliases"] if "," in each["program"]]) == 20


def test_the_page_is_what_was_found() -> None:
    text = write_accelerators.PAGE.read_text()
    begin = text.index(write_accelerators.BEGIN) + len(write_accelerators.BEGIN)
    held = text[begin : text.index(write_accelerators.END)].strip().splitlines()
    assert held == list(write_accelerators.tables(FOUND))
