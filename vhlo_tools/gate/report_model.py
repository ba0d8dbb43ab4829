"""Reports: what they hold, where findings are, their JSON, fingerprints and summary."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cache, lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from urllib.parse import quote

from vhlo_tools.files import is_url, said_of_others
from vhlo_tools.findings import Finding, finding_as_json
from vhlo_tools.lazy import pattern
from vhlo_tools.printable import json_document, json_record, json_text
from vhlo_tools.records import dataclass
from vhlo_tools.spec import explanation_of

if TYPE_CHECKING:
    from vhlo_tools.compat import Target
    from vhlo_tools.version import Version

# Data of a report: questions, and the answers of each program

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
        kind: The kind of its file, if it could be.
        version: The version of the artifact in it, if it has one.
    """

    path: str
    verdicts: tuple[Verdict, ...] = ()
    error: str | None = None
    kind: str | None = None
    version: Version | None = None

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
    deleted: Sequence[str] = ()  # programs of the revision that are there no longer
    #: returns the number of files in the folders that are no programs, once all programs have been examined
    others: Callable[[], int] = int
    quiet: bool = False  # text has findings alone: no programs without, no table, no summary
    colour: bool = False  # text has escape sequences of terminals
    width: int | None = None  # columns of the terminal, in which a table has to fit; None for no terminal

    def from_repository(self, path: str) -> str:
        """Return a path relative to the root of the repository, as runners of CI expect it."""
        return path_from(self.folder, path, repository_of(self.folder))

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
        deleted = f", {len(self.deleted)} deleted" if self.deleted else ""
        since = f"; {self.unchanged} unchanged{deleted} since {self.against}" if self.against is not None else ""
        return since + said_of_others(self.others())


def is_refused(findings: Sequence[Finding]) -> bool:
    return any(finding.level == "error" for finding in findings)


# Paths of files in reports: relative to a folder, and as URIs


@lru_cache(maxsize=256)
def path_from(folder: Path, path: str, root: Path | None = None) -> str:
    """Return a path that begins in ``folder`` as relative to ``root``, as absolute if it is not below, a URL unchanged.

    The root is the folder itself by default.
    """
    if is_url(path):
        return path
    root = root or folder
    absolute = Path(os.path.abspath(folder / path))  # noqa: PTH100 - keeps links unresolved, as the user names them
    beneath = absolute.is_relative_to(root)
    return (absolute.relative_to(root) if beneath else absolute).as_posix()


def source_path(path: str, finding: Finding) -> str:
    """Return the file to report ``finding`` in: the user's source, or the program ``path`` if it is unknown."""
    return finding.location.file if finding.location else path


@cache
def repository_of(folder: Path) -> Path:
    """Return the root of the repository that a folder is in, to which runners of CI relate paths; or the folder."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def as_uri(path: str) -> str:
    """Return a relative reference, or a ``file:`` URI if the path is absolute."""
    if is_url(path):
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{quote(rest)}"
    return PurePath(path).as_uri() if PurePath(path).is_absolute() else quote(os.fsencode(path))


#: The variable with the address at which the site of the documentation is served.
SITE: Final = "VHLO_TOOLS_SITE"


def page_of(name: str) -> str:
    """Return the page of a feature or another finding: its address if that of the site is known, or its path there."""
    explanation = explanation_of(name)
    anchor = re.sub(r"[^\w-]", "", explanation.id if explanation else name).lower()
    page = f"specification/features.html#{anchor}"
    site = os.environ.get(SITE, "").rstrip("/")
    return f"{site}/{page}" if re.fullmatch(r"https?://[!-~]{1,2000}", site) else page


# Counts of the programs of a report, by result, and of its findings, by feature

#: The results that the summary names, with their words for one program and for several.
_WORDS: Final[dict[State, tuple[str, str]]] = {
    "unreadable": ("cannot be checked", "cannot be checked"),
    "blocked": ("has errors", "have errors"),
    "warned": ("has warnings", "have warnings"),
}


@dataclass(slots=True)
class Summary:
    states: Counter[State] = field(default_factory=Counter)
    findings: Counter[tuple[str, str]] = field(default_factory=Counter)  # new ones, by level and feature
    samples: dict[str, Finding] = field(default_factory=dict)  # one finding of each feature
    others: int = 0  # files in the folders that are no programs

    def add(self, answer: Answer) -> None:
        self.states[answer.state] += 1
        for _, finding in answer.findings:
            self.findings[finding.level, finding.feature] += finding.count
            self.samples.setdefault(finding.feature, finding)

    def counting(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        for answer in answers:
            self.add(answer)
            yield answer

    def statistics(self) -> list[dict[str, str | int]]:
        """The most frequent findings come first."""
        from vhlo_tools.gate.sarif import title_of  # imported here because few reports need it

        return [
            {"count": count, "level": level, "feature": feature, "title": title_of(self.samples[feature])}
            for (level, feature), count in sorted(self.findings.items(), key=lambda each: (-each[1], each[0]))
        ]

    def as_json(self) -> dict[str, int]:
        return {"programs": self.states.total(), "ok": self.states["ok"]} | {each: self.states[each] for each in _WORDS}

    def __str__(self) -> str:
        counts = ((self.states[state], words) for state, words in _WORDS.items())
        said = ", ".join(f"{count} {words[count > 1]}" for count, words in counts if count)
        number = self.states.total()
        return f"checked {number} program{'' if number == 1 else 's'}: {said or 'no errors'}"


# Answers as JSON records: all in one document, or one per line


def json_report(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    summary = Summary()
    files = (json_text(_record(answer, scope.knows)) for answer in summary.counting(answers))
    return (f"{line}\n" for line in json_document(json_record({}), "files", files, lambda: _end(scope, summary)))


def json_lines(scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    """Yield the record of each program, and what a document has beside them."""
    summary = Summary()
    for answer in summary.counting(answers):
        yield f"{json_text(json_record(_record(answer, scope.knows)))}\n"
    yield f"{json_text(json_record(_end(scope, summary)))}\n"


def _end(scope: Scope, summary: Summary) -> dict[str, Any]:
    counts: dict[str, Any] = summary.as_json() | {"unrecognised": scope.others()}
    if scope.against is None:
        return {"summary": counts}
    counts |= {"against": scope.against, "unchanged": scope.unchanged, "deleted": len(scope.deleted)}
    return {"deleted": list(scope.deleted), "summary": counts}


def _record(answer: Answer, with_baseline: bool) -> dict[str, Any]:
    return {
        "path": answer.path,
        "ok": answer.ok,
        "kind": answer.kind,
        "version": answer.version,
        "reason": answer.error,
        "findings": [
            finding_as_json(finding) | ({"baseline": state} if with_baseline else {})
            for verdict in answer.verdicts
            for state, findings in (("new", verdict.new), ("known", verdict.known))
            for finding in findings
        ],
        "targets": [
            {
                "target": str(verdict.question),
                "version": str(verdict.question.target.version),
                "ok": verdict.ok,
                "known": _count(verdict.known),
                "allowed": _count(verdict.allowed),
            }
            for verdict in answer.verdicts
        ],
    }


def _count(findings: Sequence[Finding]) -> int:
    return sum(finding.count for finding in findings)


# Identities of findings, which are stable from one run to the next

# The position of an op in its block, before its name; and the number of a region between two ops.
_POSITIONS: Final = pattern(r"/\d+(?=/|$)|(?<=/)\d+:|^\d+:")


class Identity(NamedTuple):
    """The identity of a finding, independent of its position in a function.

    Lines, positions of ops and folders of sources are excluded: they change with every edit, or between machines.
    Findings with equal identities are distinguished by their number.
    """

    file: str  # relative to a folder, with forward slashes
    target: str  # in its original spelling
    feature: str
    op: str = ""
    function: str = ""
    path: str = ""  # without positions: ``@main/stablehlo.while/stablehlo.add``
    source: str = ""  # file of the user's source, without its folder

    @property
    def digest(self) -> str:
        import hashlib
        import json

        return hashlib.sha256(json.dumps(self).encode()).hexdigest()[:32]


def identity_of(file: str, question: Question, finding: Finding) -> Identity:
    """``file`` is a relative path with forward slashes."""
    return Identity(
        file,
        question.spelling,
        finding.feature,
        finding.op or "",
        finding.function or "",
        _POSITIONS.sub("", finding.path or ""),
        re.split(r"[/\\]", finding.location.file)[-1] if finding.location else "",
    )


def fingerprints(identities: Iterable[Identity]) -> Iterator[str]:
    """Yield digests, each with the number among equal identities."""
    seen: Counter[Identity] = Counter()
    for identity in identities:
        seen[identity] += 1
        yield f"{identity.digest}:{seen[identity]}"
