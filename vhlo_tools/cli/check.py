"""``vhlo check``: the gate that says which programs a consumer cannot have, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from typing import Any

import click

from vhlo_tools import api
from vhlo_tools.artifact import programs_at
from vhlo_tools.cli import check_text, options
from vhlo_tools.compat import Target
from vhlo_tools.dialect import Feature, explanation_of, known_explanations, known_features
from vhlo_tools.errors import VhloToolsError
from vhlo_tools.findings import Finding


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every program.

    Attributes:
        target: The version or consumer.
        reading: Whether the bytes are to be read as they are; otherwise the program is to be written for it.
    """

    target: Target
    reading: bool

    def __str__(self) -> str:
        return f"read by {self.target}" if self.reading else str(self.target)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one program.

    Attributes:
        path: The file.
        findings: What was found, by question.
        error: Why it could not be judged, if so.
    """

    path: str
    findings: tuple[tuple[Question, tuple[Finding, ...]], ...] = ()
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it was judged, and nothing stands in the way."""
        return self.error is None and not any(refused(found) for _, found in self.findings)


def refused(findings: Sequence[Finding]) -> bool:
    """Tell whether any of ``findings`` is an error."""
    return any(finding.level == "error" for finding in findings)


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    help="A version (1.9.0), a consumer (jaxlib==0.4.31), a window (12w) or a comma list. May be repeated.",
)
@click.option(
    "--readable-by",
    "readers",
    multiple=True,
    metavar="READER",
    help="A consumer that shall read the bytes as they are. May be repeated.",
)
@click.option("--explain", metavar="FEATURE", help="Say what a feature is, since when, and what to do.")
@click.option("--allow-other-dialects", is_flag=True, help="Let programs keep ops of dialects beside StableHLO.")
@options.no_legalize_option
@options.as_of_option
@options.provider_option
@options.trusted_option
@options.format_option
def check(
    paths: tuple[str, ...],
    targets: tuple[str, ...],
    readers: tuple[str, ...],
    explain: str | None,
    allow_other_dialects: bool,
    legalize: bool,
    as_of: date | None,
    provider: str | None,
    trusted: bool,
    output_format: str,
) -> int:
    """Check that programs can be written for every TARGET, or read by every READER.

    A PATH is a file, a folder, or a glob. Exit code 0: all is well; 1: something stands in the way; 2: a bad target, or
    a file that cannot be read.
    """
    if explain is not None:
        _explain(explain, output_format)
        return 0
    if not paths or not (targets or readers):
        raise click.UsageError("expected a PATH, and --target or --readable-by; or --explain FEATURE")
    questions = [
        Question(api.resolve_target(spelling, as_of=as_of, provider=provider), reading)
        for spellings, reading in ((targets, False), (readers, True))
        for spelling in spellings
    ]
    prepare = partial(
        api.prepare_check,
        allow_other_dialects=allow_other_dialects,
        legalize=legalize,
        provider=provider,
        trusted=trusted,
    )
    answers = [_answer(path, questions, prepare) for path in _files(paths)]
    if output_format == "json":
        options.echo_json({"files": [_as_json(answer) for answer in answers]})
    else:
        for line in check_text.lines([(a.path, a.findings, a.error) for a in answers], questions):
            click.echo(line)
    if any(answer.error for answer in answers):
        return 2
    return 0 if all(answer.ok for answer in answers) else 1


def _answer(path: str, questions: Sequence[Question], prepare: Callable[..., api.Checked]) -> Answer:
    try:
        program, name = options.read_program(path)
        checked = prepare(program, name=name)
        return Answer(path, tuple((each, tuple(_findings(checked, each))) for each in questions))
    except VhloToolsError as error:
        return Answer(path, error=str(error))
    except OSError as error:
        return Answer(path, error=f"{path}: {error.strerror or error}")


def _findings(checked: api.Checked, question: Question) -> list[Finding]:
    version = question.target.version
    found = checked.reader_findings(version) if question.reading else checked.findings(version)
    return [replace(each, target=version) for each in found]


def _as_json(answer: Answer) -> dict[str, Any]:
    return {
        "path": answer.path,
        "ok": answer.ok,
        **({"error": answer.error} if answer.error else {}),
        "findings": [options.finding_as_json(each) for _, found in answer.findings for each in found],
        "targets": [
            {"target": str(question), "version": str(question.target.version), "ok": not refused(found)}
            for question, found in answer.findings
        ],
    }


def _files(paths: Sequence[str]) -> list[str]:
    """Return the files that are meant, each once, in the order in which they are named."""
    found: dict[str, None] = {}
    for path in paths:
        members = [path] if path == options.STANDARD else list(programs_at(path))
        if not members:
            raise click.UsageError(f"{path}: no file, no folder with programs, and no glob that any file fits")
        found.update(dict.fromkeys(members))
    return list(found)


def _explain(name: str, output_format: str) -> None:
    if (explanation := explanation_of(name)) is not None:
        if output_format == "json":
            options.echo_json({**asdict(explanation), "id": name})
        else:
            click.echo("\n".join(check_text.general(name, explanation)))
        return
    feature = next((each for each in known_features() if each.id == name), None)
    if feature is None:
        near = [each.id for each in known_features() if name.lower() in f"{each.id} {each.title}".lower()]
        near += [each.id for each in known_explanations() if name.lower() in each.id]
        hint = f"did you mean {', '.join(near)}?" if near else "`vhlo spec list` shows all features"
        raise click.UsageError(f"{name!r} is no feature: {hint}")
    if output_format == "json":
        options.echo_json(_feature(feature))
        return
    for line in check_text.explanation(feature):
        click.echo(line)


def _feature(feature: Feature) -> dict[str, Any]:
    return {
        "id": feature.id,
        "title": feature.title,
        "kind": feature.kind,
        "introduced": str(feature.introduced),
        "ops": list(feature.ops),
        "names": list(feature.names),
        "remedy": feature.remedy,
        "expansion": feature.expansion,
    }
