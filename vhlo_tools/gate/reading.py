"""Reading of settings files: search from a folder upwards, parsing, and validation."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.errors import SettingsError
from vhlo_tools.files import is_url, open_regular
from vhlo_tools.gate.keys import KeyPlace, read_table
from vhlo_tools.gate.settings import Settings
from vhlo_tools.gate.target_names import check_target

if TYPE_CHECKING:
    from vhlo_tools.gate.target_names import Names

_OWN_FILE: Final = "vhlo-tools.toml"
_PROJECT_FILE: Final = "pyproject.toml"
_TABLE: Final = "vhlo-tools"
#: Likely misspellings of the table's name, which would otherwise be ignored silently.
_MISTAKES: Final = ("vhlo_tools", "vhlo", "vhlotools")


def load_settings(start: Path | None = None, *, config: Path | None = None, isolated: bool = False) -> Settings:
    """Search from ``start`` upwards, unless ``config`` is given; ``isolated`` reads no file."""
    if isolated:
        return Settings()
    found = config or find_settings(start or Path.cwd())
    return read_settings(found) if found else Settings()


def find_settings(start: Path) -> Path | None:
    """Return the nearest settings file from ``start`` upwards: our own, or a ``pyproject.toml`` with our table."""
    start = Path(os.path.abspath(start))  # noqa: PTH100 - keeps links unresolved, as the user names them
    for folder in (start, *start.parents):
        own, project = folder / _OWN_FILE, folder / _PROJECT_FILE
        if own.is_file():
            return own
        if project.is_file() and _table_of(project) is not None:
            return project
    return None


def read_settings(file: Path) -> Settings:
    file = Path(os.path.abspath(file))  # noqa: PTH100 - keeps links unresolved, as the user names them
    shown = _shown(file)
    if file.name == _PROJECT_FILE:
        table, place = _table_of(file), KeyPlace(shown, f"tool.{_TABLE}")
        if table is None:
            raise SettingsError(f"{shown}: expected a table [tool.{_TABLE}], found none")
    else:
        table, place = _toml(file), KeyPlace(shown)
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


def _spellings(settings: Settings, place: KeyPlace) -> Iterator[tuple[KeyPlace, str, Names]]:
    """Yield every target in the settings, with its place and the names that it may contain."""
    for name, members in settings.targets.items():
        yield from _items(place.key("targets").key(name), members, {})
    tables = [place, *(place.key("overrides").item(index) for index in range(len(settings.overrides)))]
    for table, (targets, readers) in zip(tables, settings.questions(), strict=True):
        yield from _items(table.key("target"), targets, settings.targets)
        yield from _items(table.key("readable-by"), readers, settings.targets)


def _items(place: KeyPlace, members: Sequence[str], names: Names) -> Iterator[tuple[KeyPlace, str, Names]]:
    return ((place.item(index), member, names) for index, member in enumerate(members))


def _from_here(folder: Path, path: str) -> str:
    """Return a path or a glob relative to ``folder`` as relative to the working directory."""
    here = os.path.relpath(folder)
    if here == "." or is_url(path):
        return path
    joined = os.path.join(here, path)  # noqa: PTH118 - may be a glob, which is not a path
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
    # Imported here because a run without settings reads none.
    from vhlo_tools.documents import read_toml

    try:
        return read_toml(_content(file))
    except OSError as error:
        raise SettingsError(f"{_shown(file)}: {error.strerror or error}") from error
    except ValueError as error:
        # An error of the encoding or of the TOML syntax, with the line.
        raise SettingsError(f"{_shown(file)}: expected TOML: {error}") from error


def _content(file: Path) -> bytes:
    with open_regular(file) as opened:
        return opened.read()


def _shown(file: Path) -> str:
    here = os.path.relpath(file)
    return str(file) if here.startswith(os.pardir) else here
