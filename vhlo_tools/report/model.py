"""What there is to report: questions, and what each program answers to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vhlo_tools.compat import Target
from vhlo_tools.findings import Finding

__all__ = ["Answer", "Question", "Scope", "Verdict", "is_refused"]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a program.

    Attributes:
        target: The version or consumer.
        reading: Whether the bytes are to be read as they are; otherwise the program is to be written for it.
    """

    target: Target
    reading: bool = False

    def __str__(self) -> str:
        return f"read by {self.target}" if self.reading else str(self.target)

    @property
    def spelling(self) -> str:
        """What was asked for, which stays the same from day to day: the version that ``12w`` means does not."""
        return f"read by {self.target.spelling}" if self.reading else self.target.spelling


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one program answers to one question.

    Attributes:
        question: The question.
        new: What was found and is not known.
        known: What was found, and stands in the baseline.
        allowed: What was found, and the settings allow.
    """

    question: Question
    new: tuple[Finding, ...] = ()
    known: tuple[Finding, ...] = ()
    allowed: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing stands in the way that is not known or allowed."""
        return not is_refused(self.new)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one program.

    Attributes:
        path: The file, as it can be opened from here; ``-`` is stdin.
        verdicts: One for each question that was asked of it.
        error: Why it could not be judged, if so.
    """

    path: str
    verdicts: tuple[Verdict, ...] = ()
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it was judged, and nothing stands in the way."""
        return self.error is None and all(each.ok for each in self.verdicts)

    @property
    def findings(self) -> Iterator[tuple[Verdict, Finding]]:
        """Yield what is not known, each with the verdict it belongs to."""
        for verdict in self.verdicts:
            for finding in verdict.new:
                yield verdict, finding


@dataclass(frozen=True, slots=True)
class Scope:
    """What a report is about.

    Attributes:
        paths: The files, as they can be opened from here.
        questions: All questions that are asked of any of them, in order.
        folder: The folder that relative paths begin at, those in programs included.
        baseline: The file of what is known, if there is one.
    """

    paths: Sequence[str]
    questions: Sequence[Question]
    folder: Path = field(default_factory=Path.cwd)
    baseline: str | None = None


def is_refused(findings: Sequence[Finding]) -> bool:
    """Tell whether any of ``findings`` is an error."""
    return any(finding.level == "error" for finding in findings)
