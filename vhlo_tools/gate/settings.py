"""Settings of the gate, and what they are for one file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.gate.levels import Levels

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["COMMAND_LINE", "DEFAULT", "Override", "Settings", "fits", "key_of"]

COMMAND_LINE: Final = "command line"
DEFAULT: Final = "default"

#: Folders that hold no programs of the user's own.
_NO_PROGRAMS: Final = (".git", ".hg", ".nox", ".tox", ".venv", "__pycache__", "node_modules")
_QUESTIONS: Final = ("target", "readable_by")


@dataclass(frozen=True, slots=True)
class Override:
    """What is otherwise for some files.

    Attributes:
        paths: Which files: patterns as in ``.gitignore``, from the folder of the settings.
        levels: Levels of features, beside those that hold for all files.
        target: What the files shall be written for, if it is something else.
        readable_by: What shall read them as they are, if it is something else.
        source: Where this comes from.
    """

    paths: tuple[str, ...]
    levels: Levels = field(default_factory=dict)
    target: tuple[str, ...] | None = None
    readable_by: tuple[str, ...] | None = None
    source: str = COMMAND_LINE


@dataclass(frozen=True, slots=True)
class Settings:
    """What the gate asks, of which files, and what it makes of the answers.

    Attributes:
        file: The file the settings come from, if they come from one.
        folder: What paths in it are relative to: its folder, or the working directory.
        paths: The files, folders and globs to check, as they can be opened from the working directory.
        target: What the programs shall be written for: targets, or names of ``targets``.
        readable_by: What shall read the programs as they are.
        targets: Named targets: the oldest of several.
        exclude: Files and folders to leave out, as in ``.gitignore``.
        force_exclude: Whether files that are named one by one are left out as well.
        levels: Levels of features.
        overrides: What is otherwise for some files; later ones win.
        allow_other_dialects: Whether programs may keep ops of dialects beside StableHLO.
        legalize: Whether what no artifact can hold may be rewritten.
        as_of: The day that windows count back from; ``None`` is today.
        baseline: The file of findings that are known.
        output_format: The format of the report.
        sources: Of each setting that is not the default, where it comes from.
    """

    file: Path | None = None
    folder: Path = field(default_factory=Path.cwd)
    paths: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    readable_by: tuple[str, ...] = ()
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    levels: Levels = field(default_factory=dict)
    overrides: tuple[Override, ...] = ()
    allow_other_dialects: bool = False
    legalize: bool = True
    as_of: date | None = None
    baseline: str | None = None
    output_format: str = "text"
    sources: Mapping[str, str] = field(default_factory=dict)

    def with_command_line(self, levels: Levels, **given: Any) -> Settings:
        """Return the settings as the command line changes them, which wins over the file.

        Args:
            levels: Levels of features, for all files.
            **given: Settings; those that are ``None`` or empty were not given. Either question replaces both.
        """
        given = {name: value for name, value in given.items() if value is not None and value != ()}
        overrides = self.overrides
        if given.keys() & set(_QUESTIONS):
            given = dict.fromkeys(_QUESTIONS, ()) | given
            overrides = tuple(replace(each, target=None, readable_by=None) for each in overrides)
        if levels:
            overrides = (*overrides, Override(("*",), levels))
        sources = {**self.sources, **dict.fromkeys(given, COMMAND_LINE)}
        return replace(self, **given, overrides=overrides, sources=sources)

    def source(self, name: str) -> str:
        """Return where the setting of this field comes from."""
        return self.sources.get(name, DEFAULT)

    def values(self) -> dict[str, Any]:
        """Return all settings by the names that they have in a file."""
        inner = ("file", "folder", "sources")
        return {key_of(each.name): getattr(self, each.name) for each in fields(self) if each.name not in inner}

    def for_file(self, path: str) -> tuple[tuple[str, ...], tuple[str, ...], list[Levels]]:
        """Return the targets and the readers of one file, and the levels for it, of which later ones win."""
        target, readable_by, layers = self.target, self.readable_by, [self.levels]
        for override in self.overrides:
            if self._fits(path, override.paths):
                target = target if override.target is None else override.target
                readable_by = readable_by if override.readable_by is None else override.readable_by
                layers.append(override.levels)
        return target, readable_by, layers

    def is_excluded(self, path: str) -> bool:
        """Tell whether a file that was found in a folder is left out."""
        return self._fits(path, self.exclude)

    @property
    def pruned(self) -> tuple[str, ...]:
        """The names of folders that need not be walked through: of patterns, those without signs that mean more."""
        if any(pattern.startswith("!") for pattern in self.exclude):
            return _NO_PROGRAMS
        return (*_NO_PROGRAMS, *(pattern for pattern in self.exclude if not set(pattern) & set("/*?[]!#\\ ")))

    def questions(self) -> Iterable[tuple[Sequence[str], Sequence[str]]]:
        """Yield targets and readers: those for all files, and those of overrides."""
        yield self.target, self.readable_by
        for override in self.overrides:
            yield override.target or (), override.readable_by or ()

    def _fits(self, path: str, patterns: tuple[str, ...]) -> bool:
        return bool(patterns) and fits(os.path.relpath(path, self.folder).replace(os.sep, "/"), patterns)


def key_of(name: str) -> str:
    """Return what the setting of a field is called in a file."""
    return name.replace("_", "-")


def fits(path: str, patterns: tuple[str, ...]) -> bool:
    """Tell whether a path, with forward slashes, is meant by patterns as in ``.gitignore``.

    Raises:
        ValueError: If one of them is no pattern.
    """
    return _spec(patterns).match_file(path)


@cache
def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # which few runs need

    return GitIgnoreSpec.from_lines(patterns)
