"""Programs judged by settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vhlo_tools import api
from vhlo_tools.artifact import programs_at
from vhlo_tools.errors import SettingsError, VhloToolsError
from vhlo_tools.findings import Finding
from vhlo_tools.gate.baseline import Baseline
from vhlo_tools.gate.levels import apply_levels
from vhlo_tools.gate.naming import resolve_named
from vhlo_tools.gate.settings import Settings
from vhlo_tools.report import Answer, Question, Scope, Verdict

if TYPE_CHECKING:
    from vhlo_tools.program import ProgramSource

__all__ = ["Gate"]

_STANDARD: Final = "-"
#: Gives the program at a path, and what to call it in messages.
ReadProgram = Callable[[str], tuple["ProgramSource", str]]


class Gate:
    """What lets programs pass or not.

    Args:
        settings: What is asked, and what is made of the answers.
        baseline: What is known.
        provider: The bindings to use where they are needed.
        trusted: Whether MLIR may parse bytecode in this process at once.
    """

    def __init__(
        self,
        settings: Settings,
        baseline: Baseline | None = None,
        *,
        provider: str | None = None,
        trusted: bool = False,
    ) -> None:
        self.settings = settings
        self.baseline = baseline
        self._provider = provider
        self._trusted = trusted
        self._resolved: dict[tuple[str, bool], Question] = {}

    def files(self, paths: Iterable[str]) -> list[str]:
        """Return the files that are meant, each once, in the order in which they are named.

        Raises:
            SettingsError: If a path means none.
        """
        settings, found = self.settings, dict[str, None]()
        for path in paths:
            members = [path] if path == _STANDARD else list(programs_at(path, settings.pruned))
            if not members:
                raise SettingsError(f"{path}: no file, no folder with programs, and no glob that any file fits")
            # What is named outright is meant, unless that is what every file is.
            outright = members == [path] and not settings.force_exclude
            found.update(dict.fromkeys(each for each in members if outright or not settings.is_excluded(each)))
        return list(found)

    def scope(self, files: Sequence[str]) -> Scope:
        """Return what a report of ``files`` is about.

        Raises:
            UnknownTargetError: If a target is unknown.
            InvalidVersionError: If a target looks like a version and is none.
        """
        questions = dict.fromkeys(question for file in files for question in self.questions(file))
        return Scope(files, list(questions), baseline=str(self.baseline.path) if self.baseline else None)

    def questions(self, path: str) -> list[Question]:
        """Return what is asked of a file."""
        targets, readers, _ = self.settings.for_file(path)
        return [
            self._question(spelling, reading)
            for spellings, reading in ((targets, False), (readers, True))
            for spelling in spellings
        ]

    def answers(self, files: Iterable[str], read: ReadProgram) -> Iterator[Answer]:
        """Yield what becomes of each file, as soon as it is judged."""
        for path in files:
            try:
                program, name = read(path)
                yield Answer(path, self.judge(program, self.questions(path), name=name, path=path))
            except VhloToolsError as error:
                yield Answer(path, error=str(error))
            except OSError as error:
                yield Answer(path, error=f"{path}: {error.strerror or error}")

    def judge(
        self, program: ProgramSource, questions: Sequence[Question], *, name: str | None = None, path: str | None = None
    ) -> tuple[Verdict, ...]:
        """Return what a program answers to ``questions``.

        Args:
            program: Anything that :func:`vhlo_tools.check` takes.
            questions: What is asked of it.
            name: What to call it in messages.
            path: Its file, if it is in one: levels of overrides and the baseline are then those of the file.

        Raises:
            InvalidProgramError: If it is no valid program.
            MalformedArtifactError: If it is a damaged artifact.
        """
        checked = api.prepare_check(
            program,
            allow_other_dialects=self.settings.allow_other_dialects,
            legalize=self.settings.legalize,
            name=name,
            provider=self._provider,
            trusted=self._trusted,
        )
        return tuple(self._verdict(checked, each, path or _STANDARD) for each in questions)

    def _verdict(self, checked: api.Checked, question: Question, path: str) -> Verdict:
        _, _, layers = self.settings.for_file(path)
        left, allowed = apply_levels(_found(checked, question), layers)
        known: list[Finding] = []
        if self.baseline is not None and path != _STANDARD:
            left, known = self.baseline.split(path, question, left)
        return Verdict(question, tuple(left), tuple(known), tuple(allowed))

    def _question(self, spelling: str, reading: bool) -> Question:
        if (spelling, reading) not in self._resolved:
            settings = self.settings
            target = resolve_named(spelling, settings.targets, as_of=settings.as_of, provider=self._provider)
            self._resolved[spelling, reading] = Question(target, reading)
        return self._resolved[spelling, reading]


def _found(checked: api.Checked, question: Question) -> list[Finding]:
    version = question.target.version
    found = checked.reader_findings(version) if question.reading else checked.findings(version)
    return [replace(each, target=version) for each in found]
