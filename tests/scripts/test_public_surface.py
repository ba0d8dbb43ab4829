"""The public surface is that recorded for this version, and changes of it are told by what they ask of the next."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
from public_surface import (
    ROOT,
    Kind,
    Surface,
    change_between,
    compare,
    is_allowed,
    recorded_versions,
    surface_today,
    undocumented,
)

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

OLD = Surface(
    """\
@dataclass(frozen=True)
class Alias:
    number: int
    kind: str = 'may'

def check(program: str, *, trusted: bool = False) -> list[str]: ...
""",
    ("vhlo check", "vhlo check --format = json", "vhlo check --format = text", "vhlo check PATH (required)"),
)


def changed(old: str, new: str, *names: str) -> Surface:
    assert old in OLD.python
    return Surface(OLD.python.replace(old, new), names or OLD.names)


def test_the_surface_is_the_recorded_one() -> None:
    problems = compare(surface_today(), VERSION)
    assert not problems, "\n".join(problems)


def test_the_version_has_a_record() -> None:
    assert recorded_versions()[-1] == VERSION


def test_what_is_public_is_in_the_record() -> None:
    recorded = Surface.read(VERSION)
    assert "vhlo_tools.Artifact" in recorded.names
    assert "vhlo check --output-format = sarif" in recorded.names
    assert "settings: baseline" in recorded.names
    assert "pytest: fixture vhlo_check" in recorded.names
    # A name that cannot be imported from the package, but that a signature names.
    assert "class Requirements" in recorded.python
    assert "def serialize(program: ProgramSource" in recorded.python


def test_what_is_public_has_its_docstring(tmp_path: Path) -> None:
    assert not undocumented()
    shutil.copytree(ROOT / "vhlo_tools", tmp_path / "vhlo_tools", ignore=shutil.ignore_patterns("__pycache__"))
    conversion = tmp_path / "vhlo_tools" / "api" / "conversion.py"
    text = conversion.read_text(encoding="utf-8")
    before, function, after = text.partition("def strip(")
    said = "        artifact: The artifact, its path or its bytes.\n"
    assert said in after
    conversion.write_text(before + function + after.replace(said, "", 1), encoding="utf-8")
    assert undocumented(tmp_path) == ["vhlo_tools.api.conversion.strip does not describe artifact"]


@pytest.mark.parametrize(
    ("new", "kind", "said"),
    [
        (OLD, Kind.NONE, ""),
        (changed("trusted: bool = False", "trusted: bool = False, name: str = ''"), Kind.ADDITION, "name: str"),
        (changed("kind: str = 'may'", "kind: str = 'may'\n    donor: int = 0"), Kind.ADDITION, "donor: int = 0"),
        (changed("def check", "def diff() -> None: ...\n\ndef check"), Kind.ADDITION, "def diff"),
        (Surface(OLD.python, (*OLD.names, "vhlo check --jobs INTEGER")), Kind.ADDITION, "vhlo check --jobs INTEGER"),
        (Surface(OLD.python, (*OLD.names, "vhlo x", "vhlo x A (required)")), Kind.ADDITION, "vhlo x"),
        (changed("def check", "def checked"), Kind.BREAKING, "check"),
        (changed("program: str,", "program: str, target: str,"), Kind.BREAKING, "target"),
        (changed("trusted: bool = False", "trusted: bool = True"), Kind.BREAKING, "trusted"),
        (changed("    number: int\n", "    number: int\n    more: int\n"), Kind.BREAKING, "more"),
        (changed("    number: int\n", ""), Kind.BREAKING, "number"),
        (Surface(OLD.python, OLD.names[1:]), Kind.BREAKING, "vhlo check is gone"),
        (Surface(OLD.python, (OLD.names[0], *OLD.names[2:])), Kind.BREAKING, "--format = json is gone"),
        (
            Surface(OLD.python, (*OLD.names, "vhlo check --by NAME (required)")),
            Kind.BREAKING,
            "--by NAME (required) is new",
        ),
    ],
)
def test_a_change_is_told_by_what_it_asks_for(new: Surface, kind: Kind, said: str) -> None:
    change = change_between(OLD, new)
    assert change.kind is kind
    assert said in "\n".join((*change.breaking, *change.added))
    assert bool(change.breaking) == (kind is Kind.BREAKING)


@pytest.mark.parametrize(
    ("kind", "old", "new", "allowed"),
    [
        (Kind.NONE, "0.2.0", "0.2.1", True),
        (Kind.ADDITION, "0.2.0", "0.2.1", False),
        (Kind.ADDITION, "0.2.0", "0.3.0", True),
        (Kind.BREAKING, "0.2.0", "0.2.1", False),
        (Kind.BREAKING, "0.2.0", "0.3.0", True),
        (Kind.ADDITION, "1.2.0", "1.3.0", True),
        (Kind.BREAKING, "1.2.0", "1.3.0", False),
        (Kind.BREAKING, "1.2.0", "2.0.0", True),
    ],
)
def test_versions_allow_what_semantic_versioning_says(kind: Kind, old: str, new: str, allowed: bool) -> None:
    assert is_allowed(kind, old, new) is allowed


def test_a_difference_says_what_to_do(tmp_path: Path) -> None:
    assert compare(OLD, "0.2.0", tmp_path) == ["no surface is recorded: run scripts/public_surface.py --record"]
    OLD.write("0.2.0", tmp_path)
    assert Surface.read("0.2.0", tmp_path) == OLD
    assert compare(OLD, "0.2.0", tmp_path) == []
    assert compare(OLD, "0.2.1", tmp_path) == [
        "no surface is recorded for 0.2.1: run scripts/public_surface.py --record"
    ]

    more = changed("def check", "def diff() -> None: ...\n\ndef check")
    assert "this needs another minor version" in compare(more, "0.2.0", tmp_path)[-1]
    assert "choose another version" in compare(more, "0.2.1", tmp_path)[-1]
    assert compare(more, "0.3.0", tmp_path)[-1].startswith("Run scripts/public_surface.py --record")

    gone = Surface(OLD.python, OLD.names[1:])
    assert "this needs a version that may break" in compare(gone, "0.2.0", tmp_path)[-1]

    gone.write("0.2.1", tmp_path)
    assert compare(gone, "0.2.1", tmp_path) == [
        "0.2.1 differs from 0.2.0 by a change of kind BREAKING, which its version does not allow"
    ]
