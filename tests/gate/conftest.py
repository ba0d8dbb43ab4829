"""Whatever settings a test of the gate reads, their JSON schema must say of them what the reader says."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.gate_programs import fill_with_kinds
from support.settings_files import has_schema

from vhlo_tools.errors import SettingsError
from vhlo_tools.gate import examination as reading, keys

#: What no schema can say: the syntax of patterns, and whether a glob matches a feature.
BEYOND = ("a pattern as in .gitignore", "matches no feature")


@pytest.fixture(scope="session")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    fill_with_kinds(folder)
    return folder


@pytest.fixture
def folder(kinds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with programs of many kinds, some of them equal, some damaged."""
    shutil.copytree(kinds, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def schema_that_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    read = keys.read_table

    def compared(table: Any, place: keys.KeyPlace) -> dict[str, Any]:
        try:
            values = read(table, place)
        except SettingsError as error:
            assert not has_schema(table) or any(each in str(error) for each in BEYOND), f"{error}: {table}"
            raise
        assert has_schema(table), table
        return values

    monkeypatch.setattr(reading, "read_table", compared)
