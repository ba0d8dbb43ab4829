"""Declared tables: names for queries, descriptions, and values. Files of them are tested in tests/frontends/scale."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from vhlo_tools.findings import Finding
from vhlo_tools.stores import FINDINGS, MIGRATION_TABLE, STATUS_TABLE, CellKind, Column, ListOf, StructOf, Table


def columns_in(kind: CellKind) -> Iterator[Column[Any]]:
    match kind:
        case ListOf():
            yield from columns_in(kind.item)
        case StructOf():
            for each in kind.columns:
                yield from [each, *columns_in(each.kind)]


@pytest.mark.parametrize("table", [STATUS_TABLE, MIGRATION_TABLE], ids=lambda table: str(table.name))
def test_columns_can_be_asked_for_without_quotes(table: Table[Any]) -> None:
    columns = list(columns_in(StructOf(table.columns)))
    assert len({each.name for each in table.columns}) == len(table.columns)
    for each in columns:
        assert re.fullmatch(r"[a-z][a-z_]*", each.name)
        assert re.fullmatch(r"\S.*[^.]", each.description)


def test_a_finding_has_a_column_for_each_field() -> None:
    assert [each.name for each in columns_in(FINDINGS)] == list(Finding.__slots__)
