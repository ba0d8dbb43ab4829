"""Evaluation of programs by the settings of the gate."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from vhlo_tools.artifact import find_manifest, manifest_finding
from vhlo_tools.compat import expansion_policy
from vhlo_tools.errors import MalformedArtifactError, VhloToolsError
from vhlo_tools.files import Kind, Others, is_url, nobody, open_regular, place, recognise
from vhlo_tools.gate.examination import Content, Examination, Examiner, Task, os_message
from vhlo_tools.gate.keys import bytes_of
from vhlo_tools.gate.listing import STANDARD, Listing
from vhlo_tools.gate.report_model import Answer, Question, Scope, Verdict
from vhlo_tools.gate.settings import Settings, apply_levels
from vhlo_tools.gate.target_names import resolve_named
from vhlo_tools.stores import IN_PLACE, ListedFile, look_at

if TYPE_CHECKING:
    from vhlo_tools.findings import Finding
    from vhlo_tools.gate.baseline import Baseline
    from vhlo_tools.gate.contents import ReadOther
    from vhlo_tools.gate.findings_cache import FindingsCache
    from vhlo_tools.gate.revision import Change, Revision
    from vhlo_tools.program import ProgramSource
    from vhlo_tools.stores import AnyExecutor

_STANDARD_NAME: Final = "<stdin>"
#: A run of no more programs, of no more bytes each, is brief: to know the question of a cache takes as long as to
#: examine a hundred of them.
_FEW: Final = 8
_SMALL: Final = 1 << 16
_HEAD: Final = 64


class Work(TypedDict, total=False):
    """How programs are examined."""

    jobs: int  # the most processes, which are started only where they save time
    cache: FindingsCache | None
    executor: AnyExecutor | None  # its processes must see the same files


class Gate:
    """Checks whether programs pass. ``trusted`` lets MLIR parse bytecode in this process."""

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

    def files(self, paths: Sequence[str], others: Others = nobody) -> list[str]:
        return [each.path for each in self.listing(paths, others)]

    def listing(self, paths: Sequence[str], others: Others = nobody) -> Listing:
        """Return the files that paths match, found as they are taken; ``others`` is told of those that are none."""
        return Listing(paths, self.settings, others)

    def scope(self, files: Sequence[str] | Listing) -> Scope:
        """Return the scope of a report. A listing that goes on after its head has the questions of all overrides."""
        paths = [each.path for each in files.head()] if isinstance(files, Listing) else files
        questions = dict.fromkeys(question for path in paths for question in self.questions(path))
        if isinstance(files, Listing) and not files.is_complete:
            asked = self.settings.questions()
            questions |= dict.fromkeys(each for targets, readers in asked for each in self._asked(targets, readers))
        if self.settings.confirm_with:
            from vhlo_tools.releases import refuse_idle_releases

            refuse_idle_releases(self.settings.confirm_with, [each.target.version for each in questions])
        return Scope(paths, list(questions), baseline=str(self.baseline.path) if self.baseline else None)

    def questions(self, path: str) -> list[Question]:
        targets, readers, _ = self.settings.for_file(path)
        return self._asked(targets, readers)

    def _asked(self, targets: Sequence[str], readers: Sequence[str]) -> list[Question]:
        settings, asked = self.settings, []
        for spelling, reading in (*((each, False) for each in targets), *((each, True) for each in readers)):
            if (spelling, reading) not in self._resolved:
                target = resolve_named(spelling, settings.targets, as_of=settings.as_of, provider=self._provider)
                self._resolved[spelling, reading] = Question(target, reading)
            asked.append(self._resolved[spelling, reading])
        return asked

    def answers(self, files: Iterable[str | ListedFile], read: ReadOther, **work: Unpack[Work]) -> Iterator[Answer]:
        """Yield the answer for each file, in order; ``read`` returns ``None`` for a file."""
        # Imported here because a brief run does without.
        from vhlo_tools.gate.contents import read_ahead, unread
        from vhlo_tools.gate.examinations import Known

        listed = (each if isinstance(each, ListedFile) else ListedFile(each) for each in files)
        if work.get("executor") is None:
            found, known = list(listed), Known(self._examiner, work.get("cache"))

            def is_known(file: ListedFile) -> bool:
                return known.of(self._task(Content(file.path, identity=file.identity))) is not None

            contents, total = read_ahead(found, read, is_known), len(found)
        else:
            contents, total = unread(listed, read), 0
        # Requests are made ahead of their answers, as far as there are processes.
        waiting: deque[str] = deque()

        def requests() -> Iterator[Task]:
            for content in contents:
                waiting.append(content.path)
                yield self._task(content)

        for examination in self._examinations(requests(), total, **work):
            path = waiting.popleft()
            yield self._answer(path, self._with_manifest(examination, path))

    def _task(self, content: Content) -> Task:
        return Task(content, tuple(self.questions(content.path)), _name(content.path))

    def fits_inline(self, files: Sequence[ListedFile]) -> bool:
        """Whether examining is faster than reading the cache: few small artifacts, whose digests nothing needs."""
        settings = self.settings
        rewrites = settings.expand or settings.allow_relaxed
        asks = self.baseline is not None or settings.confirm_with or settings.require_manifest or rewrites
        return not asks and len(files) <= _FEW and all(map(_is_quick, files))

    def check_inline(self, files: Sequence[ListedFile]) -> Iterator[Answer]:
        for file in files:
            task = Task(Content(file.path), tuple(self.questions(file.path)), file.path, hashed=False)
            (examination,) = self._examiner([task])
            yield self._answer(file.path, examination)

    def _answer(self, path: str, examination: Examination) -> Answer:
        if examination.error is not None:
            return Answer(path, error=examination.error)
        return self._answered(path, examination, self._verdicts(examination, self.questions(path), path))

    @staticmethod
    def _answered(path: str, examination: Examination, verdicts: tuple[Verdict, ...]) -> Answer:
        return Answer(path, verdicts, kind=examination.kind, version=examination.version)

    def _examinations(
        self,
        requests: Iterable[Task],
        total: int,
        *,
        jobs: int = 1,
        cache: FindingsCache | None = None,
        executor: AnyExecutor | None = None,
    ) -> Iterator[Examination]:
        # Imported here because a brief run does without.
        from vhlo_tools.gate.examinations import DistributedExaminations, Examinations
        from vhlo_tools.gate.findings_cache import FindingsCache

        with cache or FindingsCache() as found:
            if executor is not None:
                yield from DistributedExaminations(self._examiner, executor, cache).of(requests)
            else:
                yield from Examinations(self._examiner, found, jobs=jobs).of(requests, total)

    def answers_against(
        self, revision: Revision, changes: Sequence[Change], read: ReadOther, **work: Unpack[Work]
    ) -> Iterator[Answer]:
        """Yield the answer for each program that is new or changed since a revision.

        Of a program that was there only what is worse is new (:mod:`vhlo_tools.gate.baseline`); if it could not be
        checked then, all findings are. Old contents are read here, from git, also for an executor.
        """
        # Imported here because most runs compare with nothing.
        from tempfile import TemporaryDirectory

        from vhlo_tools.gate.contents import read_ahead, unread

        with TemporaryDirectory(prefix="vhlo-against-") as scratch:
            paths = [each.path for each in changes]
            here = work.get("executor") is None
            listed = map(ListedFile, paths)
            contents = read_ahead(listed, read, lambda file: False) if here else unread(listed, read)
            requests = self._pairs(revision, changes, contents, Path(scratch))
            total = len(changes) + sum(each.before is not None for each in changes)
            examinations = self._examinations(requests, total, **work)
            for change in changes:
                now = next(examinations)
                before = next(examinations) if change.before is not None else None
                now, path = self._with_manifest(now, change.path), change.path
                if now.error is None and before is not None and before.error is None:
                    questions = self.questions(path)
                    verdicts = self._verdicts(now, questions, path, before, revision.spelling)
                    yield self._answered(path, now, verdicts)
                else:
                    yield self._answer(path, now)
            # Let it end, and so write its cache.
            next(examinations, None)

    def _pairs(
        self, revision: Revision, changes: Sequence[Change], contents: Iterable[Content], scratch: Path
    ) -> Iterator[Task]:
        from vhlo_tools.files import digest_of
        from vhlo_tools.gate.contents import digest_at

        for change, content in zip(changes, contents, strict=True):
            name, questions = _name(change.path), tuple(self.questions(change.path))
            yield Task(content, questions, name, with_facts=change.before is not None)
            if change.before is not None:
                old = change.old(revision, scratch)
                # Under the new name, which locations may have: it is no difference.
                if isinstance(old, Path):
                    held = Content(str(old), digest=digest_at(old))
                else:
                    held = Content(name, old, digest_of(old), detached=True)
                yield Task(held, questions, name, with_facts=True, is_here=isinstance(old, Path))

    def judge(
        self,
        program: ProgramSource,
        questions: Sequence[Question],
        *,
        name: str | None = None,
        path: str | None = None,
    ) -> tuple[Verdict, ...]:
        """Return verdicts; ``path``, if the program is in a file, selects overrides, baseline and manifest."""
        examination = self._examiner.examine(program, questions, name=name)
        if path is not None:
            examination = self._with_manifest(examination, path)
        if path is not None and self.baseline is not None and examination.functions is not None:
            # By what it holds, the baseline finds a program that has moved.
            from vhlo_tools.gate.contents import digest_at

            with suppress(OSError, MalformedArtifactError):
                examination = replace(examination, digest=digest_at(place(path)))
        return self._verdicts(examination, questions, path or STANDARD)

    def with_findings(self, answers: Iterable[Answer], findings: Sequence[Finding]) -> Iterator[Answer]:
        """Add findings, with the levels of the settings, to each answer of a program that could be evaluated."""
        for answer in answers:
            left, allowed = apply_levels(findings, self.settings.for_file(answer.path)[2])
            verdicts = (
                replace(each, new=(*each.new, *left), allowed=(*each.allowed, *allowed)) for each in answer.verdicts
            )
            yield replace(answer, verdicts=tuple(verdicts))

    def _with_manifest(self, examination: Examination, path: str) -> Examination:
        """Add the finding on the manifest, which is no part of what caches keep."""
        if path == STANDARD:
            return examination
        # Only what contains artifacts has one.
        required = self.settings.require_manifest and look_at(path)[0] in IN_PLACE
        try:
            found = manifest_finding(path, examination.digest, required=required)
        except OSError as error:
            return replace(examination, error=os_message(path, error))
        if found is None:
            return examination
        if examination.error is not None:
            return replace(examination, error=f"{examination.error}; {found.message}")
        return replace(examination, findings=tuple((found, *each) for each in examination.findings))

    @property
    def _examiner(self) -> Examiner:
        settings = self.settings
        expansions = expansion_policy(settings.expand, settings.allow_relaxed).without(settings.forbid_expansions)
        return Examiner(
            settings.allow_other_dialects,
            settings.legalize,
            tuple(sorted(expansions.exact)),
            tuple(sorted(expansions.relaxed)),
            settings.allow_signature_change,
            self._provider,
            self._trusted,
            settings.confirm_with,
            settings.read_with,
            None if settings.max_device_memory is None else bytes_of(settings.max_device_memory),
        )

    def _verdicts(
        self,
        now: Examination,
        questions: Sequence[Question],
        path: str,
        before: Examination | None = None,
        revision: str = "",
    ) -> tuple[Verdict, ...]:
        """Apply the levels and the baseline; with ``before``, at a revision, only what is worse is new."""
        _, _, layers = self.settings.for_file(path)
        verdicts = []
        for number, (question, findings) in enumerate(zip(questions, now.findings, strict=True)):
            left, allowed = apply_levels(findings, layers)
            new, known = self._split(path, question, left, now)
            if before is not None:
                from vhlo_tools.gate.baseline import changed_facts, regressions, split_known

                old, _ = apply_levels(before.findings[number], layers)
                new, had = split_known(question, new, old)
                worse = list(regressions(question, revision, new, old))
                if now.facts is not None and before.facts is not None:
                    worse += changed_facts(question, revision, now.facts, before.facts)
                worse, tolerated = apply_levels(worse, layers)
                new = [*worse, *(each for each in new if each.level == "note")]
                known, allowed = [*known, *had], [*allowed, *tolerated]
            verdicts.append(Verdict(question, tuple(new), tuple(known), tuple(allowed)))
        return tuple(verdicts)

    def _split(
        self, path: str, question: Question, findings: list[Finding], examination: Examination
    ) -> tuple[list[Finding], list[Finding]]:
        if self.baseline is None or path == STANDARD:
            return findings, []
        # Imported here because few have one.
        from vhlo_tools.gate.baseline import ProgramMark

        digest = examination.digest
        mark = ProgramMark(digest.hex(), examination.functions or 0) if digest is not None else None
        return self.baseline.split(path, question, findings, mark)


def _is_quick(file: ListedFile) -> bool:
    """Whether a file is a small artifact without a manifest."""
    if not 0 < file.size <= _SMALL or is_url(file.path):
        return False
    try:
        with open_regular(Path(file.path)) as opened:
            head = opened.read(_HEAD)
        return recognise(head, file.path) is Kind.PORTABLE_ARTIFACT and find_manifest(file.path) is None
    except (OSError, VhloToolsError):
        # Whoever examines it says why.
        return False


def _name(path: str) -> str:
    return _STANDARD_NAME if path == STANDARD else path
