"""Whatever settings a test of the gate reads, their JSON schema must say of them what the reader says."""

from __future__ import annotations

from typing import Any

import pytest
from support.settings_files import has_schema

from vhlo_tools.errors import SettingsError
from vhlo_tools.gate import examination as reading, keys

#: What no schema can say: the syntax of patterns, and whether a glob matches a feature.
BEYOND = ("a pattern as in .gitignore", "matches no feature")


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
