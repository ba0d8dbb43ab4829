"""Arguments and options that commands share, and how they read and write."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, datetime
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from vhlo_tools.artifact import Artifact, Buffer, JaxContainer, Kind, read_bytes, recognise
from vhlo_tools.errors import (
    AliasError,
    DowngradeError,
    EngineError,
    InvalidInputError,
    InvalidProgramError,
    UnsupportedFeatureError,
    VerificationError,
    VhloToolsError,
)
from vhlo_tools.files import write_atomically
from vhlo_tools.findings import Finding, finding_as_json, findings_lines, group_findings

if TYPE_CHECKING:
    from vhlo_tools.program import ProgramSource

__all__ = [
    "artifact_report",
    "as_of_option",
    "check_output",
    "echo_json",
    "engine_option",
    "exit_code_of",
    "finding_as_json",
    "force_option",
    "format_option",
    "input_argument",
    "no_legalize_option",
    "output_option",
    "provider_option",
    "read_artifact",
    "read_input",
    "read_program",
    "report_findings",
    "reporting",
    "target_option",
    "trusted_option",
    "write_output",
]

_F = TypeVar("_F", bound=Callable[..., Any])

STANDARD = "-"


def input_argument(metavar: str) -> Callable[[_F], _F]:
    """Return the argument for the file to read."""
    return click.argument("source", metavar=metavar, type=str)


def output_option(*, required: bool) -> Callable[[_F], _F]:
    """Return the option for the file to write."""
    shown = "The file to write; - is stdout." + ("" if required else " By default stdout.")
    option = partial(click.option, "-o", "--output", help=shown)
    return option(required=True) if required else option(default=STANDARD)


def target_option(default: str | None) -> Callable[[_F], _F]:
    """Return the option for the target."""
    option = partial(
        click.option,
        "--target",
        help="What shall read it: a version (1.9.0), current, minimum, WEEK_4, WEEK_12, MAX, NONE, a window (12w), "
        "a date (2025-06-01), a release (jaxlib==0.4.31), or a comma list of these.",
    )
    return option(required=True) if default is None else option(default=default, show_default=True)


def _to_date(context: click.Context, parameter: click.Parameter, value: datetime | None) -> date | None:
    return value.date() if value else None


def as_of_option(function: _F) -> _F:
    """Add the option for the day that windows count back from."""
    return click.option(
        "--as-of",
        type=click.DateTime(["%Y-%m-%d"]),
        callback=_to_date,
        metavar="DATE",
        help="The day that windows count back from, by default today.",
    )(function)


def engine_option(engines: tuple[str, ...], what: str) -> Callable[[_F], _F]:
    """Return the option for the engine."""
    return click.option("--engine", type=click.Choice(engines), default="auto", show_default=True, help=what)


no_legalize_option = click.option(
    "--no-legalize",
    "legalize",
    flag_value=False,
    default=True,
    help="Refuse what no artifact can hold, and rewrite nothing into plain StableHLO.",
)


def provider_option(function: _F) -> _F:
    """Add the option for the bindings."""
    return click.option(
        "--provider", metavar="PREFIX", help="The MLIR bindings to use: jaxlib.mlir, torch_mlir or mlir."
    )(function)


trusted_option = click.option(
    "--trusted",
    is_flag=True,
    help="Let MLIR parse artifacts and bytecode at once, and not in a child process first, where damage does no harm.",
)


def force_option(function: _F) -> _F:
    """Add the option to replace an existing output."""
    return click.option("-f", "--force", is_flag=True, help="Replace the output if it exists.")(function)


def format_option(function: _F) -> _F:
    """Add the option for the format of what is printed."""
    return click.option(
        "--output-format", "--format", type=click.Choice(["text", "json"]), default="text", show_default=True
    )(function)


def exit_code_of(error: VhloToolsError) -> int:
    """Return 1 where the answer is no, 2 where usage or an input is at fault."""
    no = (DowngradeError, EngineError, UnsupportedFeatureError, VerificationError)
    if isinstance(error, AliasError):
        # Of a program, and not of what was asked for on the command line.
        return 1 if error.findings else 2
    return 1 if isinstance(error, no) and not isinstance(error, InvalidInputError) else 2


def reporting(command: Callable[..., dict[str, Any]]) -> Callable[..., None]:
    """Give a command that writes a file the option `--output-format`.

    The command returns what there is to say of what it did. As text only warnings are said, on stderr; as JSON all of
    it goes to stdout, and an error with its findings likewise.
    """

    @format_option
    @wraps(command)
    def run(output_format: str, **arguments: Any) -> None:
        if output_format == "text":
            report_findings(command(**arguments)["findings"])
            return
        if arguments["output"] == STANDARD:
            raise click.UsageError("the report as JSON goes to stdout: give -o FILE for the output")
        try:
            report = {"ok": True, **command(**arguments)}
        except VhloToolsError as error:
            findings = getattr(error, "findings", ())
            message = getattr(error, "summary", str(error))
            echo_json({"ok": False, "message": message, "findings": [finding_as_json(finding) for finding in findings]})
            click.get_current_context().exit(exit_code_of(error))
        report["findings"] = [finding_as_json(finding) for finding in report["findings"]]
        echo_json(report)

    return run


def artifact_report(artifact: Artifact | JaxContainer, output: str) -> dict[str, Any]:
    """Return what there is to say of an artifact that was written, or of a file with artifacts inside."""
    return {
        "output": output,
        "kind": str(Kind.PORTABLE_ARTIFACT if isinstance(artifact, Artifact) else Kind.JAX_EXPORT),
        "version": str(artifact.version),
        "bytecode_version": artifact.bytecode_version,
        "size": len(artifact),
        "findings": artifact.findings,
    }


def read_input(source: str) -> tuple[Buffer, str]:
    """Return the contents of a file or of stdin, and what to call them in messages."""
    if source == STANDARD:
        if sys.stdin is None:
            raise click.UsageError("stdin is closed: there is nothing to read")
        return sys.stdin.buffer.read(), "<stdin>"
    return read_bytes(Path(source)), source


def read_program(source: str) -> tuple[ProgramSource, str]:
    """Return a program, its path or the bytes on stdin, and what to call it in messages."""
    return read_input(source) if source == STANDARD else (Path(source), source)


def read_artifact(source: str) -> Artifact | JaxContainer:
    """Return the artifact in a file, or the file if it is one that holds artifacts and remains what it is."""
    data, name = read_input(source)
    with suppress(InvalidProgramError):
        if recognise(data, name) is Kind.JAX_EXPORT:
            return JaxContainer(data, name=name)
    # Which says what is wrong.
    return Artifact(data, name=name)


def write_output(output: str, chunks: Iterable[bytes | memoryview], *, force: bool, binary: bool) -> None:
    """Write to a file, whole or not at all, or to stdout; bytes never go to a terminal."""
    if output != STANDARD:
        write_atomically(Path(output), chunks, force=force)
        return
    if sys.stdout is None:
        raise click.UsageError("stdout is closed: give -o FILE")
    if binary and sys.stdout.isatty():
        raise click.UsageError("refusing to write bytes to a terminal: give -o FILE, or redirect the output")
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def check_output(output: str, *, force: bool, binary: bool) -> None:
    """Refuse, before any work, an output that :func:`write_output` would refuse after it."""
    if output == STANDARD:
        write_output(output, (), force=force, binary=binary)
    elif not output:
        raise click.UsageError("the name of the output is empty")
    elif Path(output).is_dir():
        raise click.UsageError(f"{output} is a folder: expected a file to write")
    elif Path(output).is_file() and not force:
        raise click.UsageError(f"{output} exists: --force replaces it")


def echo_json(value: object) -> None:
    """Print ``value`` as JSON on stdout."""
    click.echo(json.dumps(value, indent=2, default=str, allow_nan=False))


def report_findings(findings: Iterable[Finding]) -> None:
    """Print findings on stderr, by feature."""
    for group in group_findings(findings):
        first, *others = findings_lines(group)
        click.echo(f"vhlo: {group[0].level}: {first.strip()}", err=True)
        for line in others:
            click.echo(line, err=True)
