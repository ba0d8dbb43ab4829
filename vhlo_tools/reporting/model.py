"""Data of a report: questions, and the answers of each program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.compat import Target
    from vhlo_tools.findings import Finding

#: The result of a program: what is worst of its findings, or that it could not be evaluated.
State = Literal["ok", "warned", "blocked", "unreadable"]
#: The results in the order of a report for people: what matters most comes last, next to the prompt.
STATES: Final[tuple[State, ...]] = ("ok", "warned", "blocked", "unreadable")


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a program.

    Attributes:
        target: The version or consumer.
        reading: Whether the artifact must be readable unchanged; otherwise the program must be writable for the target.
    """

    target: Target
    reading: bool = False

    def __str__(self) -> str:
        return f"read by {self.target}" if self.reading else str(self.target)

    @property
    def spelling(self) -> str:
        """The question as asked, which does not depend on the day, unlike the version that ``12w`` stands for."""
        return f"read by {self.target.spelling}" if self.reading else self.target.spelling


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of one program to one question.

    Attributes:
        question: The question.
        new: The findings that are neither known nor allowed.
        known: The findings in the baseline, and those that the program had at the revision that was compared with.
        allowed: The findings that the settings allow.
    """

    question: Question
    new: tuple[Finding, ...] = ()
    known: tuple[Finding, ...] = ()
    allowed: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there are no new errors."""
        return not is_refused(self.new)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answers of one program.

    Attributes:
        path: The path of the file, relative to the working directory; ``-`` is stdin.
        verdicts: The verdict on each question.
        error: The reason why the program could not be evaluated, if so.
    """

    path: str
    verdicts: tuple[Verdict, ...] = ()
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the program was evaluated, and has no new errors."""
        return self.error is None and all(each.ok for each in self.verdicts)

    @property
    def state(self) -> State:
        """The result."""
        if self.error is not None:
            return "unreadable"
        levels = {finding.level for _, finding in self.findings}
        return "blocked" if "error" in levels else "warned" if "warning" in levels else "ok"

    @property
    def findings(self) -> Iterator[tuple[Verdict, Finding]]:
        """Yield the new findings, each with its verdict."""
        for verdict in self.verdicts:
            for finding in verdict.new:
                yield verdict, finding


@dataclass(frozen=True, slots=True)
class Scope:
    paths: Sequence[str]  # relative to the working directory; of very many, those that were found first
    questions: Sequence[Question]  # about any of the files, in order
    folder: Path = field(default_factory=Path.cwd)  # start of relative paths, including those recorded in programs
    baseline: str | None = None  # file of known findings
    against: str | None = None  # revision that programs are compared with
    unchanged: int = 0  # number of programs that are as at the revision, and are not checked
    quiet: bool = False  # text has findings alone: no programs without, no table, no summary
    colour: bool = False  # text has escape sequences of terminals
    width: int | None = None  # columns of the terminal, in which a table has to fit; None for no terminal

    @property
    def knows(self) -> bool:
        """Whether findings can be known."""
        return self.baseline is not None or self.against is not None

    @property
    def known_by(self) -> str:
        """Reason why findings are known, in words."""
        listed = [f"listed in {self.baseline}"] if self.baseline is not None else []
        return " or ".join([*listed, *([f"there at {self.against}"] if self.against is not None else [])])

    @property
    def left_out(self) -> str:
        """End of a summary about unchecked programs."""
        if self.against is None:
            return ""
        return f"; {self.unchanged} unchanged since {self.against}"


def is_refused(findings: Sequence[Finding]) -> bool:
    return any(finding.level == "error" for finding in findings)
