"""Settings of the gate, and levels of findings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from vhlo_tools.files import is_url
from vhlo_tools.findings import Finding, FindingKind, Level
from vhlo_tools.records import dataclass
from vhlo_tools.spec import known_explanations, known_features

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


# Levels of features: denied, warned of, or allowed

LevelSetting = Literal["deny", "warn", "allow"]
LEVELS: Final[tuple[LevelSetting, ...]] = get_args(LevelSetting)

#: Levels by ids of features, globs of ids, or kinds. An id takes precedence over a glob, a longer glob over a shorter
#: one, and all of these over a kind; of two globs of the same length, the stricter level applies.
Levels = Mapping[str, LevelSetting]

#: The kinds of findings, which are names of levels too.
KINDS: Final = get_args(FindingKind)
_AS_LEVEL: Final[Mapping[LevelSetting, Level]] = {"deny": "error", "warn": "warning"}
#: The characters that make a name a glob.
WILD: Final = "*?["


def level_of(finding: Finding, layers: Sequence[Levels]) -> LevelSetting | None:
    """Later layers win; ``None`` if no layer sets a level."""
    for levels in reversed(layers):
        globs = [name for name in levels if _is_glob(name) and fnmatchcase(finding.feature, name)]
        globs.sort(key=lambda name: (-len(name), LEVELS.index(levels[name])))
        for name in (finding.feature, *globs, finding.kind):
            if name in levels:
                return levels[name]
    return None


def apply_levels(findings: Sequence[Finding], layers: Sequence[Levels]) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that are not allowed, with their levels, and those that are allowed."""
    left, allowed = [], []
    for finding in findings:
        setting = level_of(finding, layers)
        if setting == "allow":
            allowed.append(finding)
        else:
            left.append(replace(finding, level=_AS_LEVEL[setting]) if setting else finding)
    return left, allowed


def problem_with(name: str) -> str | None:
    """Return the error in ``name`` as the key of a level; ``None`` if it is valid."""
    if name in KINDS:
        return None
    ids = [feature.id for feature in known_features()] + [explanation.id for explanation in known_explanations()]
    if _is_glob(name):
        # An id such as ``withdrawn_*`` stands for many, of which the glob may match some.
        if any(
            fnmatchcase(each.rstrip("*"), name) or (each.endswith("*") and name.startswith(each[:-1])) for each in ids
        ):
            return None
        return f"{name!r} matches no feature: `vhlo spec list` shows them"
    if any(name == each or (each.endswith("*") and name.startswith(each[:-1])) for each in ids):
        return None
    # Imported here because few names are misspelt.
    from difflib import get_close_matches

    near = get_close_matches(name, [*ids, *KINDS], n=3) or [each for each in ids if name.lower() in each.lower()]
    hint = f"did you mean {' or '.join(near)}?" if near else "`vhlo spec list` shows them"
    return f"{name!r} is not a feature, a glob of features or a kind ({', '.join(KINDS)}): {hint}"


def _is_glob(name: str) -> bool:
    return any(sign in name for sign in WILD)


# Settings of the gate, and their values for a file

COMMAND_LINE: Final = "command line"
DEFAULT: Final = "default"

_QUESTIONS: Final = ("target", "readable_by")


@dataclass(frozen=True, slots=True)
class Override:
    """Settings that differ for some files.

    Attributes:
        paths: The files: patterns as in ``.gitignore``, relative to the folder of the settings.
        levels: Levels of features, in addition to those for all files.
        target: The targets of the files, if they differ.
        readable_by: The consumers that must be able to read the files unchanged, if they differ.
        source: The origin of the override.
    """

    paths: tuple[str, ...]
    levels: Levels = field(default_factory=dict)
    target: tuple[str, ...] | None = None
    readable_by: tuple[str, ...] | None = None
    source: str = COMMAND_LINE


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the gate: the questions, the files, and the treatment of findings.

    Attributes:
        file: The file of the settings, if they come from one.
        folder: The folder that paths in the file are relative to: its folder, or the working directory.
        paths: The files, folders and globs to check. They are relative to the folder of the file that has them, and to
            the working directory once they are read.
        target: The targets of the programs: targets, or names of ``targets``.
        readable_by: The consumers that must be able to read the programs unchanged.
        targets: Named targets: the oldest of several.
        exclude: Files and folders to leave out, as in ``.gitignore``.
        force_exclude: Whether explicitly named files are left out as well.
        levels: Levels of features.
        overrides: Settings that differ for some files; later ones win.
        allow_other_dialects: Whether programs may keep ops of dialects other than StableHLO.
        legalize: Whether constructs that no artifact can contain may be rewritten.
        expand: Whether features newer than a target may be rewritten with the same results, or for which features.
        allow_relaxed: The features that may be rewritten with something given up; ``all`` for all of them.
        allow_signature_change: Whether that may change the types of arguments and results of public functions.
        forbid_expansions: The features that may not be rewritten.
        confirm_with: The real releases that must read what is written for a target, or found readable.
        max_device_memory: The most memory that a program may need on each device of ``confirm_with``, such as 16GiB.
        read_with: The release that reads MLIR text that is too old for the library.
        require_manifest: Whether every artifact and jax.export file must have a manifest beside it.
        as_of: The day from which windows count back; ``None`` is today.
        baseline: The file of known findings.
        against: The revision of git that programs are compared with.
        output_format: The format of the report.
        sources: The origin of each setting that is not the default.
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
    expand: bool | tuple[str, ...] = False
    allow_relaxed: tuple[str, ...] = ()
    allow_signature_change: bool = False
    forbid_expansions: tuple[str, ...] = ()
    confirm_with: tuple[str, ...] = ()
    max_device_memory: str | None = None
    read_with: str | None = None
    require_manifest: bool = False
    as_of: date | None = None
    baseline: str | None = None
    against: str | None = None
    output_format: str = "text"
    sources: Mapping[str, str] = field(default_factory=dict)

    def with_command_line(self, levels: Levels, **given: Any) -> Settings:
        """Apply the command line, which wins. ``None`` and empty values are ignored; either question replaces both."""
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
        return self.sources.get(name, DEFAULT)

    def values(self) -> dict[str, Any]:
        inner = ("file", "folder", "sources")
        return {key_of(each.name): getattr(self, each.name) for each in fields(self) if each.name not in inner}

    def for_file(self, path: str) -> tuple[tuple[str, ...], tuple[str, ...], list[Levels]]:
        """Return the targets, the readers and the levels for a file; later levels win."""
        target, readable_by, layers = self.target, self.readable_by, [self.levels]
        for override in self.overrides:
            if self._fits(path, override.paths):
                target = target if override.target is None else override.target
                readable_by = readable_by if override.readable_by is None else override.readable_by
                layers.append(override.levels)
        return target, readable_by, layers

    def is_excluded(self, path: str) -> bool:
        """Only for files found in a folder, not for those named explicitly."""
        return self._fits(path, self.exclude)

    @property
    def pruned(self) -> tuple[str, ...]:
        """Names of folders that are not searched: patterns without special characters."""
        if any(pattern.startswith("!") for pattern in self.exclude):
            return ()
        return tuple(pattern for pattern in self.exclude if not set(pattern) & set("/*?[]!#\\ "))

    def questions(self) -> Iterable[tuple[Sequence[str], Sequence[str]]]:
        """Yield targets and readers: those for all files, and those of overrides."""
        yield self.target, self.readable_by
        for override in self.overrides:
            yield override.target or (), override.readable_by or ()

    def _fits(self, path: str, patterns: tuple[str, ...]) -> bool:
        if not patterns:
            return False
        if is_url(path):
            return fits(path.partition("://")[2], patterns)
        return fits(os.path.relpath(path, self.folder).replace(os.sep, "/"), patterns)


def key_of(name: str) -> str:
    return name.replace("_", "-")


def fits(path: str, patterns: tuple[str, ...]) -> bool:
    """``path`` has forward slashes; ``ValueError`` for an invalid pattern."""
    return _spec(patterns).match_file(path)


@cache
def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # imported here because few runs need it

    return GitIgnoreSpec.from_lines(patterns)
