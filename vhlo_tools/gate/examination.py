"""Examination of one file: reading, facts and findings."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools import api
from vhlo_tools.aliasing import format_index
from vhlo_tools.errors import SettingsError, VhloToolsError
from vhlo_tools.files import (
    Buffer,
    FileRange,
    Kind,
    Source,
    digest_of,
    identify,
    is_saved_model,
    is_url,
    open_regular,
    place,
    recognise,
)
from vhlo_tools.gate.keys import KeyPlace, read_table
from vhlo_tools.gate.settings import Settings
from vhlo_tools.gate.target_names import Names, check_target
from vhlo_tools.records import dataclass
from vhlo_tools.stores import identity_of, read_identified

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Alias, Donor
    from vhlo_tools.api import Checked
    from vhlo_tools.findings import Finding
    from vhlo_tools.gate.report_model import Question
    from vhlo_tools.program import ProgramSource
    from vhlo_tools.version import Version

# Reading of settings files: search from a folder upwards, parsing, and validation

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
    lists: list[tuple[KeyPlace, Sequence[str], Names]] = [
        (place.key("targets").key(name), members, {}) for name, members in settings.targets.items()
    ]
    tables = [place, *(place.key("overrides").item(index) for index in range(len(settings.overrides)))]
    for table, (targets, readers) in zip(tables, settings.questions(), strict=True):
        lists.append((table.key("target"), targets, settings.targets))
        lists.append((table.key("readable-by"), readers, settings.targets))
    for where, members, names in lists:
        yield from ((where.item(index), member, names) for index, member in enumerate(members))


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
        with open_regular(file) as opened:
            return read_toml(opened.read())
    except OSError as error:
        raise SettingsError(f"{_shown(file)}: {error.strerror or error}") from error
    except ValueError as error:
        # An error of the encoding or of the TOML syntax, with the line.
        raise SettingsError(f"{_shown(file)}: expected TOML: {error}") from error


def _shown(file: Path) -> str:
    here = os.path.relpath(file)
    return str(file) if here.startswith(os.pardir) else here


# Facts about a program that the gate compares between two revisions: its public functions and its aliases


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    functions: Mapping[str, str] = field(default_factory=dict)  # types by name: ``(tensor<4xf32>) -> (tensor<4xf32>)``
    #: the use of each aliased or donated input of ``main``, in words
    buffers: Mapping[str, str] = field(default_factory=dict)


def facts_of(checked: Checked) -> ProgramFacts | None:
    """``None`` if no artifact can represent the program."""
    artifact = checked.artifact
    if artifact is None:
        return None
    from vhlo_tools.artifact import functions_in

    inventory, file = artifact.inventory(), artifact.file
    private = {
        each.name
        for each in functions_in(file, bodies=False)
        if file.text(each.attributes.get("sym_visibility")) == "private"
    }
    functions = {
        each.name: f"({', '.join(each.arguments)}) -> ({', '.join(each.results)})"
        for each in inventory.functions
        if each.name not in private
    }
    buffers = {_input(each): f"{each.kind} with output {format_index(each.output_index)}" for each in inventory.aliases}
    buffers.update((_input(each), "a donor") for each in inventory.donors)
    return ProgramFacts(functions, buffers)


def _input(entry: Alias | Donor) -> str:
    inside = f" at {format_index(entry.parameter_index)}" if entry.parameter_index else ""
    return f"input {entry.parameter_number}{inside}"


# Examination of one program, in any process: the findings on each question, before levels and the baseline
#
# An examination depends on the bytes, the name, the questions and the :class:`Examiner` alone. That is why it can be
# kept (:mod:`vhlo_tools.gate.findings_cache`), and be made in another process.


@dataclass(frozen=True, slots=True)
class Content:
    path: str  # relative to the working directory
    data: Buffer | None = None  # None if it is large, a folder, cannot be read, or is read where it is examined
    digest: bytes | None = None  # SHA-256; None for a large object behind a URL, and if the file cannot be read
    error: str | None = None  # the reason why it cannot be read
    detached: bool = False  # the data is not from the file ``path``: it comes from standard input, or from git
    size: int = 0  # in bytes, if it has not been read
    identity: str | None = None  # of the version that was read, or was listed; None to go by the content alone


@dataclass(frozen=True, slots=True)
class Task:
    content: Content
    questions: tuple[Question, ...]
    name: str  # in messages
    with_facts: bool = False
    is_here: bool = False  # only this machine has the file
    hashed: bool = True  # whether to return the digest
    number: int = 0


@dataclass(frozen=True, slots=True)
class Examination:
    findings: tuple[tuple[Finding, ...], ...] = ()  # on each question
    facts: ProgramFacts | None = None
    functions: int | None = None  # their number; None without findings, and if no artifact
    kind: str | None = None  # of the file; None if it is not known
    version: Version | None = None  # of the artifact in it; None if it has none
    error: str | None = None  # the reason why the program could not be examined
    #: SHA-256 as in ``digests.py``; None if unread, a large object behind a URL, or not asked for
    digest: bytes | None = None
    identity: str | None = None  # of the version that was examined; None if that could be another by now


@dataclass(frozen=True, slots=True)
class Examiner:
    """Examines programs; the options are those of :func:`vhlo_tools.check`."""

    allow_other_dialects: bool = False
    legalize: bool = True
    expand: tuple[str, ...] = ()
    allow_relaxed: tuple[str, ...] = ()
    allow_signature_change: bool = False
    provider: str | None = None
    trusted: bool = False  # whether MLIR may parse bytecode directly in this process
    confirm_with: tuple[str, ...] = ()  # real releases that must read what is written, or found, without errors
    read_with: str | None = None  # the release that reads MLIR text
    most_memory: int | None = None  # the bytes that a program may need on a device of `confirm_with`

    def __call__(self, tasks: Sequence[Task]) -> list[Examination]:
        """Examine programs; an error in one does not affect the others."""
        return [self._examined(task) for task in tasks]

    def _examined(self, task: Task) -> Examination:
        content = task.content
        digest: bytes | None = None
        identity = content.identity
        try:
            data = content.data
            where = place(content.path)
            if data is None and not (isinstance(where, Path) and is_saved_model(where)):
                data, of_object = read_identified(where)
                identity = of_object or identity
            if data is not None:
                if content.data is not None and content.digest is not None:
                    digest = content.digest
                elif task.hashed and (isinstance(where, Path) or not isinstance(data, FileRange)):
                    # What was read now may be something else than what was hashed before.
                    digest = digest_of(data)
            elif isinstance(where, Path):
                # Imported here because few programs are folders.
                from vhlo_tools.gate.contents import digest_at

                digest = digest_at(where)
            program: ProgramSource = Path(content.path) if data is None else data
            if data is not None and not content.detached:
                # As identified from the path, without reading the file again.
                program = Source(where, recognise(data, task.name), task.name, data)
            found = self.examine(program, task.questions, name=task.name, facts=task.with_facts)
            if data is None and isinstance(where, Path) and digest != digest_at(where):
                # The framework has read the folder while it changed.
                digest = None
            if identity is not None and isinstance(where, Path) and identity_of(where.stat()) != identity:
                identity = None
            return replace(found, digest=digest, identity=identity)
        except VhloToolsError as error:
            return Examination(error=str(error), digest=digest)
        except OSError as error:
            return Examination(error=os_message(task.name, error), digest=digest)
        except MemoryError:
            return Examination(error=f"{task.name}: there is not enough memory for it", digest=digest)

    def examine(
        self, program: ProgramSource, questions: Sequence[Question], *, name: str | None = None, facts: bool = False
    ) -> Examination:
        source = identify(program, name)
        checked = api.prepare_check(
            source,
            allow_other_dialects=self.allow_other_dialects,
            legalize=self.legalize,
            expand=self.expand,
            allow_relaxed=self.allow_relaxed,
            allow_signature_change=self.allow_signature_change,
            read_with=self.read_with,
            name=name,
            provider=self.provider,
            trusted=self.trusted,
        )
        findings = tuple(tuple(self._found(checked, each)) for each in questions)
        number = None
        if checked.artifact is not None and any(each.level != "note" for found in findings for each in found):
            from vhlo_tools.artifact import functions_in

            number = sum(1 for _ in functions_in(checked.artifact.file, bodies=False))
        kind = None if source.kind is None else str(source.kind)
        has_artifact = checked.artifact is not None and source.kind in (Kind.PORTABLE_ARTIFACT, Kind.JAX_EXPORT)
        version = checked.artifact.version if checked.artifact is not None and has_artifact else None
        return Examination(findings, facts_of(checked) if facts else None, number, kind, version)

    def _found(self, checked: api.Checked, question: Question) -> list[Finding]:
        target, version = question.target, question.target.version
        found = checked.reader_findings(target) if question.reading else checked.findings(version, target.consumers)
        if self.confirm_with and not any(each.level == "error" for each in found):
            if question.reading:
                found += checked.confirmed_reader_findings(question.target, self.confirm_with, self.most_memory)
            else:
                found += checked.confirmed_findings(version, self.confirm_with, self.most_memory)
        return [replace(each, target=version) for each in found]


def os_message(path: str, error: OSError) -> str:
    return f"{path}: {error.strerror or error}"
