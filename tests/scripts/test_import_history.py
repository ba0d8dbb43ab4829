"""The past of StableHLO imported step by step, where there is a clone of it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import import_history
import pytest

from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.spec_tools import find_tablegen

STABLEHLO = os.environ.get("VHLO_TOOLS_STABLEHLO", "")


def _is_clone(folder: str) -> bool:
    command = ["git", "-C", folder or "/", "rev-parse", "--verify", "--quiet", "v1.11.0^{commit}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _has_tablegen() -> bool:
    try:
        find_tablegen()
    except InvalidSpecificationError:
        return False
    return True


@pytest.mark.skipif(not _is_clone(STABLEHLO), reason="VHLO_TOOLS_STABLEHLO names no clone of openxla/stablehlo")
@pytest.mark.skipif(not _has_tablegen(), reason="llvm-tblgen with MLIR's files is not installed")
def test_the_past_is_drafted_but_for_what_upstream_does_not_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert import_history.main([STABLEHLO, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["start"], row["end"]) for row in rows] == [
        ("0.14.0", "1.0.0"),
        ("1.0.0", "1.5.0"),
        ("1.5.0", "1.11.0"),
        ("1.11.0", "1.20.0"),
    ]
    for row in rows:
        assert row["unread"] == 0
        assert row["same"] >= 0.7 * row["new"]
        assert row["other"].keys() <= {"op", "type", "default"}
        assert row["absent"].keys() <= {"feature", "constraint"}


def test_what_is_no_clone_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_history.main([str(tmp_path)]) == 2
    assert "import_history: " in capsys.readouterr().err
