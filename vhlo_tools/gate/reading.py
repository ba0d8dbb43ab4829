"""Files of settings: found from a folder upwards, read, and checked whole."""

from __future__ import annotations

import glob
import os
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from vhlo_tools.errors import SettingsError
from vhlo_tools.gate.keys import Place, read_table
from vhlo_tools.gate.naming import Names, check_target
from vhlo_tools.gate.settings import Settings

__all__ = ["find_settings", "load_settings", "read_settings"]

_OWN_FILE: Final = "vhlo-tools.toml"
_PROJECT_FILE: Final = "pyproject.toml"
_TABLE: Final = "vhlo-tools"
#: What the table might be called by mistake, and would be passed over in silence.
_MISTAKES: Final = ("vhlo_tools", "vhlo", "vhlotools")


def load_settings(start: Path | None = None, *, config: Path | None = None, isolated: bool = False) -> Settings:
    """Return the settings for a run.

    Args:
        start: The folder where the search begins, by default the working directory.
        config: The file to read in place of the one that is found.
        isolated: Whether no file shall be read.

    Raises:
        SettingsError: If the file cannot be used.
    """
    if isolated:
        return Settings()
    found = config or find_settings(start or Path.cwd())
    return read_settings(found) if found else Settings()


def find_settings(start: Path) -> Path | None:
    """Return the nearest file of settings from ``start`` upwards: ours, or a ``pyproject.toml`` with our table.

    Raises:
        SettingsError: If there is a ``pyproject.toml`` on the way that cannot be read.
    """
    start = Path(os.path.abspath(start))  # noqa: PTH100 - links stay what the user calls them
    for folder in (start, *start.parents):
        own, project = folder / _OWN_FILE, folder / _PROJECT_FILE
        if own.is_file():
            return own
        if project.is_file() and _table_of(project) is not None:
            return project
    return None


def read_settings(file: Path) -> Settings:
    """Return the settings in a file: all of it, or of a ``pyproject.toml`` its table ``[tool.vhlo-tools]``.

    Raises:
        SettingsError: If it cannot be read, has no such table, or something in it is not as it must be.
    """
    file = Path(os.path.abspath(file))  # noqa: PTH100 - links stay what the user calls them
    shown = _shown(file)
    if file.name == _PROJECT_FILE:
        table, place = _table_of(file), Place(shown, f"tool.{_TABLE}")
        if table is None:
            raise SettingsError(f"{shown}: expected a table [tool.{_TABLE}], found none")
    else:
        table, place = _toml(file), Place(shown)
    values = read_table(table, place)
    sources = dict.fromkeys(values, shown)
    folder = file.parent
    if "paths" in values:
        values["paths"] = tuple(_from_here(folder, path) for path in values["paths"])
    if "baseline" in values:
        values["baseline"] = os.path.relpath(folder / values["baseline"])
    settings = Settings(file=file, folder=folder, sources=sources, **values)
    for where, spelling, names in _spellings(settings, place):
        if problem := check_target(spelling, names, settings.as_of):
            raise SettingsError(f"{where}: {problem}")
    return settings


def _spellings(settings: Settings, place: Place) -> Iterator[tuple[Place, str, Names]]:
    """Yield every target in the settings, with its place and the names that may stand in it."""
    for name, members in settings.targets.items():
        yield from _items(place.key("targets").key(name), members, {})
    tables = [place, *(place.key("overrides").item(index) for index in range(len(settings.overrides)))]
    for table, (targets, readers) in zip(tables, settings.questions(), strict=True):
        yield from _items(table.key("target"), targets, settings.targets)
        yield from _items(table.key("readable-by"), readers, settings.targets)


def _items(place: Place, members: Sequence[str], names: Names) -> Iterator[tuple[Place, str, Names]]:
    return ((place.item(index), member, names) for index, member in enumerate(members))


def _from_here(folder: Path, path: str) -> str:
    """Return a path or a glob of a file in ``folder`` as it can be opened from the working directory."""
    here = os.path.relpath(folder)
    if here == ".":
        return path
    joined = os.path.join(here, path)  # noqa: PTH118 - a glob is no path
    return joined if os.path.lexists(joined) else os.path.join(glob.escape(here), path)  # noqa: PTH118


def _table_of(project: Path) -> dict[str, Any] | None:
    tool = _toml(project).get("tool", {})
    if not isinstance(tool, dict):
        return None
    for mistake in _MISTAKES:
        if mistake in tool and _TABLE not in tool:
            raise SettingsError(f"{_shown(project)}: tool.{mistake} is not read: did you mean [tool.{_TABLE}]?")
    return tool.get(_TABLE)


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{_shown(file)}: {error.strerror or error}") from error
    except ValueError as error:
        # Of the encoding or of TOML, which names the line.
        raise SettingsError(f"{_shown(file)}: expected TOML: {error}") from error


def _shown(file: Path) -> str:
    here = os.path.relpath(file)
    return str(file) if here.startswith(os.pardir) else here
