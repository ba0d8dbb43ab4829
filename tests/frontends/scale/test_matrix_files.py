"""A matrix of releases as a table and as a picture."""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet
import pytest
from support.corpus import EXAMPLES
from support.vhlo_process import vhlo

import vhlo_tools as vt
from vhlo_tools.releases import Cell, Matrix, ReleaseFacts, draw_matrix

RELEASE = "jaxlib==0.8.3"


def matrix(programs: int, outcome: str = "equal") -> Matrix:
    version = vt.Version("1.9.0")
    names = tuple(f"program {number}" for number in range(programs))
    releases = tuple(ReleaseFacts(f"jaxlib==0.{number}", version, version, {}) for number in range(3))
    cells = tuple(
        Cell(name, producer.name, consumer.name, version, number % 7 > 0, (), outcome, True)  # type: ignore[arg-type]
        for producer in releases
        for number, name in enumerate(names)
        for consumer in releases[:2]
    )
    return Matrix(releases, releases[:2], names, cells)


def test_the_command_writes_a_table_and_a_picture(tmp_path: Path) -> None:
    table, picture = tmp_path / "matrix.parquet", tmp_path / "matrix.png"
    arguments = ["matrix", str(EXAMPLES / "saxpy.mlir"), "--producers", RELEASE, "--consumers", RELEASE]
    done = vhlo(*arguments, "--format", "parquet", "-o", str(table), "--picture", str(picture))
    assert done.returncode == 0, done.stderr.decode()
    (row,) = pyarrow.parquet.read_table(table).to_pylist()
    assert (row["producer"], row["consumer"], row["outcome"]) == (RELEASE, RELEASE, "equal")
    assert (row["predicted"], row["read"], row["confirmed"], row["version"]) == (True, True, True, "1.13.5")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("programs", [1, 2, 40, 101])
def test_a_picture_has_a_field_for_each_pair(programs: int) -> None:
    drawn = draw_matrix(matrix(programs), ".svg")
    assert drawn == draw_matrix(matrix(programs), ".svg")  # the same matrix, the same bytes
    texts = "".join(ElementTree.fromstring(drawn).itertext())
    for text in ("jaxlib 0.0 (1.9.0)", "written by", "read by", "read, and computes the same"):
        assert text in texts
    assert "the specification was wrong" in texts
    assert "refused" not in texts


def test_a_picture_is_drawn_in_every_format() -> None:
    assert draw_matrix(matrix(5), ".pdf").startswith(b"%PDF")
    assert io.BytesIO(draw_matrix(matrix(5), ".png")).read(4) == b"\x89PNG"
