"""Baselines: findings that are known, and what became worse since."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.documents import read_json
from vhlo_tools.errors import MalformedArtifactError, SettingsError
from vhlo_tools.files import is_url, open_regular, write_atomically
from vhlo_tools.findings import Finding
from vhlo_tools.gate.contents import digest_at
from vhlo_tools.gate.report_model import Identity, Question, identity_of, is_refused
from vhlo_tools.lazy import pattern
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.gate.examination import ProgramFacts

# Baseline of known findings, so that only new ones fail
#
# Findings are compared by :class:`Identity`, which excludes lines and positions, and by their number. If there are more
# findings than known ones, the last of them are considered new.
#
# The file in an identity is that of the program when the baseline was written. A program that has moved is found by its
# :class:`ProgramMark`: see :meth:`Baseline._owner`.

_FORMAT: Final = 2
#: Without marks of programs: they are found by their paths alone.
_OLD_FORMAT: Final = 1
_CONTENT: Final = pattern(r"[0-9a-f]{64}", re.ASCII)
_OF_PROGRAMS: Final = ("file", "content", "functions")
_REQUIRED: Final = ("file", "target", "feature")


@dataclass(frozen=True, slots=True)
class ProgramMark:
    """Identification of a program that has moved."""

    content: str  # SHA-256 of its file, in hexadecimal digits
    functions: int


class Baseline:
    """Known findings of a file, and the findings seen in this run. Paths are relative to the folder of the file."""

    def __init__(
        self, path: Path, known: Counter[Identity] | None = None, programs: Mapping[str, ProgramMark] | None = None
    ) -> None:
        self.path = path
        self._known = known or Counter[Identity]()
        self._programs = dict(programs or {})
        self._files = {identity.file for identity in self._known}
        # By the files of the baseline, and by those of this run.
        self._seen: Counter[Identity] = Counter()
        self._found: Counter[Identity] = Counter()
        self._marks: dict[str, ProgramMark] = {}
        self._asked: set[tuple[str, str]] = set()
        self._digests: dict[str, str | None] = {}

    @classmethod
    def read(cls, path: Path) -> Baseline:
        try:
            with open_regular(path) as file:
                document = read_json(file.read())
        except FileNotFoundError as error:
            raise SettingsError(f"{path}: the baseline does not exist: --update-baseline writes it") from error
        except OSError as error:
            raise SettingsError(f"{path}: {error.strerror or error}") from error
        except ValueError as error:
            raise SettingsError(f"{path} is not a baseline: expected JSON: {error}") from error
        return cls(path, _entries(document, path), _marks(document, path))

    def split(
        self, file: str, question: Question, findings: Sequence[Finding], mark: ProgramMark | None = None
    ) -> tuple[list[Finding], list[Finding]]:
        """Return the new and the known findings of a program; notes are always new."""
        name = file if is_url(file) else os.path.relpath(file, self.path.parent).replace(os.sep, "/")
        owner = self._owner(name, mark)
        # Of the programs without known findings, of which there may be very many, nobody asks.
        self._asked |= {(each, question.spelling) for each in (name, owner) if each in self._files}

        def free(finding: Finding) -> int:
            identity = identity_of(owner, question, finding)
            left = self._known[identity] - self._seen[identity]
            self._seen[identity] += finding.count
            self._found[identity._replace(file=name)] += finding.count
            if mark is not None:
                self._marks[name] = mark
            return left

        return _divided(findings, free)

    def stale(self) -> list[tuple[Identity, int]]:
        """Return known findings, with numbers, that were not seen: of evaluated files and of deleted files."""
        return [
            (identity, count - self._seen[identity])
            for identity, count in sorted(self._known.items())
            if count > self._seen[identity] and not self._is_kept(identity)
        ]

    def write(self) -> None:
        """Write the findings of this run, and known ones of files and targets that were not evaluated."""
        kept = {identity: count for identity, count in self._known.items() if self._is_kept(identity)}
        findings = {**kept, **self._found}
        marks = self._programs | self._marks
        programs = [
            {"file": file, **asdict(marks[file])}
            for file in sorted({identity.file for identity in findings})
            if file in marks
        ]
        rows = [
            {**{key: value for key, value in identity._asdict().items() if value}, "count": count}
            for identity, count in sorted(findings.items())
        ]
        text = f'{{\n  "format": {_FORMAT},\n  "programs": {_listed(programs)},\n  "findings": {_listed(rows)}\n}}\n'
        write_atomically(self.path, [text.encode()], force=True)

    def _owner(self, name: str, mark: ProgramMark | None) -> str:
        """Return the file of the baseline that a program is; its contents count before its path.

        The same contents, at the same path or at one where they are no longer; else the same path; else, if it moved
        and changed, the only vanished one of equal name and number of functions. A copy of a program that stays is
        another one.
        """
        old = self._programs.get(name)
        if mark is None or (old is not None and old.content == mark.content):
            return name
        moved = [
            file
            for file, each in self._programs.items()
            if each.content == mark.content and not self._holds(file, mark)
        ]
        if moved:
            return min(moved, key=lambda file: (PurePath(file).name != PurePath(name).name, file))
        if name in self._files:
            return name
        like = [
            file
            for file, each in self._programs.items()
            if each.functions == mark.functions
            and PurePath(file).name == PurePath(name).name
            and not (self.path.parent / file).exists()
        ]
        return like[0] if len(like) == 1 else name

    def _holds(self, file: str, mark: ProgramMark) -> bool:
        if file not in self._digests:
            try:
                self._digests[file] = digest_at(self.path.parent / file).hex()
            except (OSError, MalformedArtifactError):
                self._digests[file] = None
        return self._digests[file] == mark.content

    def _is_kept(self, identity: Identity) -> bool:
        if (identity.file, identity.target) in self._asked:
            return False
        # Of objects that were not asked about, nothing is known.
        return is_url(identity.file) or (self.path.parent / identity.file).exists()


def _listed(rows: Sequence[Mapping[str, object]]) -> str:
    # One program or finding per line, so that line-based differences of baselines show them.
    return "[\n" + ",\n".join(f"    {json.dumps(row)}" for row in rows) + "\n  ]" if rows else "[]"


def _entries(document: Any, path: Path) -> Counter[Identity]:
    if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
        raise SettingsError(f'{path} is not a baseline: expected an object with "format" and "findings"')
    if document.get("format") not in (_OLD_FORMAT, _FORMAT):
        raise SettingsError(
            f"{path}: expected a baseline of format {_OLD_FORMAT} or {_FORMAT}, found {document.get('format')!r:.40}"
        )
    known: Counter[Identity] = Counter()
    for index, entry in enumerate(document["findings"]):
        if problem := next(_problems(entry), None):
            raise SettingsError(
                f"{path}: findings[{index}]: {problem}; move it away, and write it again with --update-baseline"
            )
        count = entry.pop("count")
        # A merge of two branches may leave an entry twice.
        known[Identity(**entry)] = max(known[Identity(**entry)], count)
    return known


def _marks(document: Mapping[str, Any], path: Path) -> dict[str, ProgramMark]:
    rows = document.get("programs", [])
    if not isinstance(rows, list):
        raise SettingsError(f"{path}: expected a list of programs, found {rows!r:.40}")
    marks = {}
    for index, row in enumerate(rows):
        file, content, functions = (row.get(key) if isinstance(row, dict) else None for key in _OF_PROGRAMS)
        if (
            not isinstance(file, str)
            or not isinstance(content, str)
            or not _CONTENT.fullmatch(content)
            or type(functions) is not int
            or functions < 0
            or row.keys() != set(_OF_PROGRAMS)
        ):
            raise SettingsError(
                f"{path}: programs[{index}]: expected a file, its content as SHA-256 and its number of functions, "
                f"found {row!r:.80}; move it away, and write it again with --update-baseline"
            )
        # A merge of two branches may leave a program twice; it is as one of them has it.
        marks[file] = ProgramMark(content, functions)
    return marks


def _problems(entry: Any) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield "expected an object"
        return
    yield from (f"{key} is missing" for key in (*_REQUIRED, "count") if key not in entry)
    for key, value in entry.items():
        if key == "count":
            if type(value) is not int or value < 1:
                yield f"expected a count of 1 or more, found {value!r:.40}"
        elif key not in Identity._fields:
            yield f"{key} is unknown: expected {', '.join(Identity._fields)} and count"
        elif not isinstance(value, str):
            yield f"expected a string as {key}, found {value!r:.40}"


# Comparison of a program with its old revision: whatever is worse becomes a finding of its own


def split_known(
    question: Question, findings: Sequence[Finding], before: Sequence[Finding]
) -> tuple[list[Finding], list[Finding]]:
    """Return new and old findings, compared as with a baseline (no lines, but numbers); notes are always new."""
    had: Counter[Identity] = Counter()
    for finding in before:
        had[identity_of("", question, finding)] += finding.count

    def free(finding: Finding) -> int:
        identity = identity_of("", question, finding)
        left = had[identity]
        had[identity] -= finding.count
        return left

    return _divided(findings, free)


def _divided(findings: Sequence[Finding], free: Callable[[Finding], int]) -> tuple[list[Finding], list[Finding]]:
    """Return new and known findings; ``free`` counts one, and returns how many like it are still known."""
    new, known = [], []
    for finding in findings:
        number = 0 if finding.level == "note" else max(free(finding), 0)
        if number:
            known.append(replace(finding, count=min(finding.count, number)))
        if finding.level == "note":
            new.append(finding)
        elif finding.count > number:
            new.append(replace(finding, count=finding.count - number))
    return new, known


def regressions(
    question: Question, revision: str, new: Sequence[Finding], before: Sequence[Finding]
) -> Iterator[Finding]:
    """Yield what is worse for one question.

    ``new`` and ``before`` have their levels; ``before`` are the old findings.
    """
    for finding in new:
        if finding.level != "note":
            message = f"new since {revision}: {finding.feature}: {finding.message}"
            yield replace(finding, feature="regression_finding", kind="regression", level="error", message=message)
    if is_refused(new) and not is_refused(before):
        done = "be read by" if question.reading else "be written for"
        yield _regression(
            question,
            f"at {revision} the program could {done} {question.target}, and now it cannot",
            "remove what is new, or drop the target",
            feature="regression_target",
        )


def changed_facts(question: Question, revision: str, now: ProgramFacts, before: ProgramFacts) -> Iterator[Finding]:
    """Yield changes for callers of a program: its public functions, its aliases and its donors."""
    for name, kind in before.functions.items():
        found = now.functions.get(name)
        if found != kind:
            what = f"is {found}" if found is not None else "is no public function"
            yield _regression(
                question,
                f"@{name} was {kind} at {revision}, and now {what}",
                "keep the function as it was for its callers, and add another one for what is new",
                feature="regression_signature",
                function=name,
            )
    for place in sorted({*before.buffers, *now.buffers}):
        was, found = (each.buffers.get(place, "neither aliased nor donated") for each in (before, now))
        if found != was:
            yield _regression(
                question,
                f"{place} of @main was {was} at {revision}, and now is {found}",
                "restore it with `vhlo alias set`, or change the callers too",
                feature="regression_alias",
            )


def _regression(question: Question, message: str, remedy: str, *, feature: str, function: str | None = None) -> Finding:
    version = question.target.version
    return Finding(feature, "error", "regression", message, target=version, remedy=remedy, function=function)
