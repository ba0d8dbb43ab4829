"""The page of terms has the words that findings, statuses and choices of options are made of, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

import click
import pytest
from support.corpus import ROOT

from vhlo_tools.aliasing import AliasKind
from vhlo_tools.cli.main import cli
from vhlo_tools.findings import FindingKind, Level
from vhlo_tools.gate.report_model import STATES
from vhlo_tools.gate.settings import LevelSetting
from vhlo_tools.releases.matrix import OUTCOMES
from vhlo_tools.spec import Effect
from vhlo_tools.spec.releases import WindowName
from vhlo_tools.stores.comparison import PairStatus
from vhlo_tools.stores.migration_records import Status
from vhlo_tools.stores.watch import StatusName

PAGE = (ROOT / "docs" / "terms.md").read_text(encoding="utf-8")
CELLS = re.findall(r"^\| (?!word |---)(.+?) \|", PAGE, re.MULTILINE)
TERMS = [term.strip("`") for cell in CELLS for term in cell.split(", ")]
KINDS = (FindingKind, Level, LevelSetting, Effect, WindowName, Status, PairStatus, StatusName, AliasKind)
#: Names of files and of shells.
NO_TERMS = {"vhlo-tools.toml", "pyproject.toml", "bash", "zsh", "fish"}


def choices(command: click.Command) -> Iterator[str]:
    """Yield what the options of a command, and of those below it, may be."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from choices(below)
    for parameter in command.params:
        if isinstance(parameter.type, click.Choice):
            yield from map(str, parameter.type.choices)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_words_of_results_are_terms(kind: object) -> None:
    assert set(get_args(kind)) - set(TERMS) == set()


def test_states_outcomes_and_choices_are_terms() -> None:
    assert {*STATES, *OUTCOMES, *choices(cli)} - NO_TERMS - set(TERMS) == set()


def test_terms_are_used() -> None:
    sources = [*(ROOT / "vhlo_tools").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    text = " ".join(path.read_text(encoding="utf-8") for path in sources if path.name != "terms.md").lower()
    assert [term for term in TERMS if term.lower() not in text] == []
