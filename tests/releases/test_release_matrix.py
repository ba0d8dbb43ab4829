"""The matrix of docs/confirming.md: its page is what was found, and all that was unexpected is explained."""

from __future__ import annotations

import json

import write_matrix

FOUND = json.loads(write_matrix.KEPT.read_text())


def test_the_matrix_is_as_large_as_it_is_to_be() -> None:
    matrix = write_matrix.restored(FOUND)
    assert len(matrix.producers) >= 20
    assert len(matrix.consumers) >= 10
    assert len(matrix.programs) >= 40
    assert len(matrix.cells) == len(matrix.producers) * len(matrix.consumers) * len(matrix.programs)
    assert sorted(matrix.programs) == sorted(write_matrix.programs())


def test_what_was_kept_is_the_matrix() -> None:
    matrix = write_matrix.restored(FOUND)
    again = write_matrix.kept(matrix)
    assert {**again, "date": FOUND["date"]} == FOUND


def test_the_page_is_what_was_found() -> None:
    text = write_matrix.PAGE.read_text()
    begin = text.index(write_matrix.BEGIN) + len(write_matrix.BEGIN)
    assert text[begin : text.index(write_matrix.END)].strip().splitlines() == list(write_matrix.tables(FOUND))


def test_every_explanation_explains_something() -> None:
    matrix = write_matrix.restored(FOUND)
    used = {write_matrix.explanation_of(cell) for cell in (*matrix.disagreements, *matrix.differing)}
    assert used == set(write_matrix.EXPLANATIONS)
