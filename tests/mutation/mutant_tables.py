"""The tables of mutation testing in tests/mutation: the rooms with their tests, and the equivalent mutants."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FOLDER = Path(__file__).resolve().parent


def _files(root: Path, places: tuple[str, ...], pattern: str) -> Iterator[str]:
    for place in places:
        path = root / place
        found = sorted(path.rglob(pattern)) if path.is_dir() else [path]
        yield from (file.relative_to(root).as_posix() for file in found)


@dataclass(frozen=True, slots=True)
class Part:
    """A room or a part of one, with its tests."""

    room: str  # the name of the room
    sources: tuple[str, ...]  # folders and files of the package
    tests: tuple[str, ...]  # folders and files of tests
    without: tuple[str, ...] = ()  # files in `sources` of which no mutants are made

    def source_files(self, root: Path = ROOT) -> list[str]:
        """Return the modules, as paths from the root of the checkout."""
        return [file for file in _files(root, self.sources, "*.py") if file not in self.without]

    def test_files(self, root: Path = ROOT) -> list[str]:
        return list(_files(root, self.tests, "test_*.py"))


@dataclass(frozen=True, slots=True)
class Plan:
    """The number of mutants, the seed of the draw, and the rooms."""

    drawn: int
    seed: int
    parts: tuple[Part, ...]

    def rooms(self) -> dict[str, list[Part]]:
        rooms: dict[str, list[Part]] = {}
        for part in self.parts:
            rooms.setdefault(part.room, []).append(part)
        return rooms


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A mutant that behaves like the original."""

    file: str  # the module
    line: str  # the line, stripped
    mutant: str  # the line of the mutant, stripped
    reason: str  # why nobody can tell them apart
    above: str = ""  # the line above, stripped; empty where ``line`` occurs once in the module


def load_plan() -> Plan:
    """Read ``tests/mutation/rooms.toml``."""
    data = tomllib.loads((_FOLDER / "rooms.toml").read_text())
    keys = ("sources", "tests", "without")
    parts = (Part(entry["name"], *(tuple(entry.get(key, ())) for key in keys)) for entry in data["room"])
    return Plan(data["drawn"], data["seed"], tuple(parts))


def load_equivalents() -> list[Equivalent]:
    """Read ``tests/mutation/equivalent.toml``."""
    data = tomllib.loads((_FOLDER / "equivalent.toml").read_text())
    return [Equivalent(**entry) for entry in data.get("equivalent", [])]
