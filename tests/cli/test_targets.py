"""``vhlo targets``: what a target means."""

from __future__ import annotations

import pytest
from support.json_records import body

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
