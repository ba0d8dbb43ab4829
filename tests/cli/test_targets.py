"""``vhlo targets``: what a target means."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.json_records import body
from support.terminals import plain, shown_on_terminal

from vhlo_tools.cli.main import main
from vhlo_tools.spec import known_releases


def test_targets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "--output-format", "json"]) == 0
    rows = body(capsys.readouterr().out)["targets"]
    assert [row["stablehlo"] for row in rows][:2] == ["0.9.0", "0.10.0"]
    assert "jaxlib==0.4.31" in next(row for row in rows if row["stablehlo"] == "1.4.0")["releases"]
    assert main(["targets", "jaxlib==0.4.31", "--format", "json"]) == 0
    (row,) = body(capsys.readouterr().out)["targets"]
    assert (row["target"], row["stablehlo"], row["bytecode_version"]) == ("jaxlib==0.4.31", "1.4.2", 6)
    assert main(["targets", "--as-of", "2025-06-01", "--format", "json"]) == 0
    rows = body(capsys.readouterr().out)["targets"]
    assert [(row["target"], row["stablehlo"]) for row in rows[:3]] == [
        ("0d", "1.10.9"),
        ("4w", "1.10.4"),
        ("12w", "1.9.3"),
    ]
    assert main(["targets"]) == 0
    assert str(max(known_releases(), key=lambda each: each.stablehlo)) in capsys.readouterr().out


LISTED = ",".join(map(str, known_releases()[:12]))


@pytest.mark.parametrize(
    "arguments", [[], ["--as-of", "2025-06-01"], ["jaxlib==0.4.31", "12w", "99.0.0"], [LISTED, "1.9.0"], ["0.9.0"]]
)
@pytest.mark.parametrize("columns", [100, None])
def test_every_table_fits_a_hundred_columns_and_loses_nothing(
    arguments: list[str], columns: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["targets", *arguments, "--output-format", "json"]) == 0
    rows = body(capsys.readouterr().out)["targets"]
    if columns is not None:
        lines = [plain(each) for each in shown_on_terminal(["targets", *arguments], columns=columns, folder=tmp_path)]
    else:
        assert main(["targets", *arguments]) == 0
        lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    # Columns begin where their titles do, and hold what JSON has, however cells were broken.
    starts = [each.start() for each in re.finditer(r"\S+", lines[0])]
    ends = [*starts[1:], None]
    printed = ["".join(line[start:end] for line in lines[1:]) for start, end in zip(starts, ends, strict=True)]
    for column, values in zip(printed, zip(*(row.values() for row in rows), strict=True), strict=True):
        texts = (",".join(each) if isinstance(each, list) else "" if each is None else str(each) for each in values)
        assert "".join(column.split()) == "".join("".join(texts).split())
