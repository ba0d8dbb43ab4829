"""Examination of one program, in any process: the findings on each question, before levels and the baseline.

An examination depends on the bytes, the name, the questions and the :class:`Examiner` alone. That is why it can be kept
(:mod:`vhlo_tools.gate.findings_cache`), and be made in another process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vhlo_tools import api
from vhlo_tools.errors import VhloToolsError
from vhlo_tools.files import FileRange, Source, digest_of, is_saved_model, place, read_bytes, recognise
from vhlo_tools.gate.lfs_pointers import lfs_pointer
from vhlo_tools.gate.program_facts import count_functions, facts_of
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.files import Buffer
    from vhlo_tools.findings import Finding
    from vhlo_tools.gate.program_facts import ProgramFacts
    from vhlo_tools.program import ProgramSource
    from vhlo_tools.reporting import Question


@dataclass(frozen=True, slots=True)
class Task:
    path: str  # relative to the working directory; the name in messages unless ``name`` is set
    questions: tuple[Question, ...]
    data: Buffer | None = None  # if it has been read; otherwise it is read from ``path``
    digest: bytes | None = None  # SHA-256 of ``data``
    name: str | None = None
    detached: bool = False  # ``data`` is not from the file: it comes from standard input, or from git
    with_facts: bool = False
    number: int = 0
    size: int = 0  # in bytes, if known and ``data`` is not
    hashed: bool = True  # whether to return the digest

    @property
    def shown(self) -> str:
        return self.path if self.name is None else self.name


@dataclass(frozen=True, slots=True)
class Examination:
    findings: tuple[tuple[Finding, ...], ...] = ()  # on each question
    facts: ProgramFacts | None = None
    functions: int | None = None  # their number; None without findings, and if no artifact
    error: str | None = None  # the reason why the program could not be examined
    #: SHA-256 as in ``digests.py``; None if unread, a large object behind a URL, or not asked for
    digest: bytes | None = None


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

    def __call__(self, tasks: Sequence[Task]) -> list[Examination]:
        """Examine programs; an error in one does not affect the others."""
        return [self._examined(task) for task in tasks]

    def _examined(self, task: Task) -> Examination:
        digest: bytes | None = None
        try:
            data = task.data
            where = place(task.path)
            if data is None and not (isinstance(where, Path) and is_saved_model(where)):
                data = read_bytes(where)
            if data is not None:
                if task.data is not None and task.digest is not None:
                    digest = task.digest
                elif task.hashed and (isinstance(where, Path) or not isinstance(data, FileRange)):
                    # What was read now may be something else than what was hashed before.
                    digest = digest_of(data)
                if lfs_pointer(data) is not None:
                    return Examination(
                        error=f"{task.shown} is a pointer of Git LFS: `git lfs pull` fetches its content"
                    )
            elif isinstance(where, Path):
                # Imported here because few programs are folders.
                from vhlo_tools.gate.digests import digest_at

                digest = digest_at(where)
            found = self.examine(_program(task, data), task.questions, name=task.shown, facts=task.with_facts)
            if data is None and isinstance(where, Path) and digest != digest_at(where):
                # The framework has read the folder while it changed.
                digest = None
            return replace(found, digest=digest)
        except VhloToolsError as error:
            return Examination(error=str(error), digest=digest)
        except OSError as error:
            return Examination(error=os_message(task.shown, error), digest=digest)

    def examine(
        self, program: ProgramSource, questions: Sequence[Question], *, name: str | None = None, facts: bool = False
    ) -> Examination:
        checked = api.prepare_check(
            program,
            allow_other_dialects=self.allow_other_dialects,
            legalize=self.legalize,
            expand=self.expand,
            allow_relaxed=self.allow_relaxed,
            allow_signature_change=self.allow_signature_change,
            name=name,
            provider=self.provider,
            trusted=self.trusted,
        )
        findings = tuple(tuple(self._found(checked, each)) for each in questions)
        return Examination(
            findings,
            facts_of(checked) if facts else None,
            count_functions(checked) if any(each.level != "note" for found in findings for each in found) else None,
        )

    def _found(self, checked: api.Checked, question: Question) -> list[Finding]:
        version = question.target.version
        found = checked.reader_findings(question.target) if question.reading else checked.findings(version)
        if self.confirm_with and not any(each.level == "error" for each in found):
            if question.reading:
                found += checked.confirmed_reader_findings(question.target, self.confirm_with)
            else:
                found += checked.confirmed_findings(version, self.confirm_with)
        return [replace(each, target=version) for each in found]


def os_message(path: str, error: OSError) -> str:
    return f"{path}: {error.strerror or error}"


def _program(task: Task, data: Buffer | None) -> ProgramSource:
    if data is None:
        return Path(task.path)
    if task.detached:
        return data
    # As identified from the path, without reading the file again.
    return Source(place(task.path), recognise(data, task.shown), task.shown, data)
