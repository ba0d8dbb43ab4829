"""Arguments and options that commands share, and their input and output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from vhlo_tools.artifact import Artifact, find_manifest, manifest_place, require_manifest
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import OptionDecorator
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
from vhlo_tools.files import Kind, Url, place, read_bytes, recognise, slices
from vhlo_tools.findings import finding_as_json, findings_lines, group_findings

if TYPE_CHECKING:
    from vhlo_tools.artifact import JaxContainer, Making, ManifestChoice
    from vhlo_tools.files import Buffer, Chunk, Place
    from vhlo_tools.findings import Finding
    from vhlo_tools.program import ProgramSource

__all__ = [
    "SIGNATURE_CHANGE_HELP",
    "allow_relaxed_option",
    "artifact_report",
    "as_of_option",
    "check_manifest_output",
    "check_output",
    "choose_manifest",
    "cluster",
    "dask_option",
    "echo_json",
    "engine_option",
    "exit_code_of",
    "expand_options",
    "finding_as_json",
    "force_option",
    "format_option",
    "input_argument",
    "input_manifest_options",
    "manifest_option",
    "no_legalize_option",
    "output_option",
    "processes",
    "provider_option",
    "read_artifact",
    "read_input",
    "read_program",
    "report_findings",
    "reporting",
    "target_option",
    "trusted_option",
    "write_artifact",
    "write_output",
]

_F = TypeVar("_F", bound=Callable[..., Any])

STANDARD = "-"


def input_argument(metavar: str) -> Callable[[_F], _F]:
    return click.argument("source", metavar=metavar, type=str)


def output_option(*, required: bool) -> Callable[[_F], _F]:
    shown = "The file to write, or a URL; - is stdout." + ("" if required else " By default stdout.")
    option = partial(click.option, "-o", "--output", help=shown)
    return option(required=True) if required else option(default=STANDARD)


def target_option(default: str | None) -> Callable[[_F], _F]:
    option = partial(
        click.option,
        "--target",
        help="The consumer: a version (1.9.0), current, minimum, WEEK_4, WEEK_12, MAX, NONE, a window (12w), "
        "a date (2025-06-01), a release (jaxlib==0.4.31), or a comma list of these.",
    )
    return option(required=True) if default is None else option(default=default, show_default=True)


def _to_date(context: click.Context, parameter: click.Parameter, value: datetime | None) -> date | None:
    return value.date() if value else None


def as_of_option(function: _F) -> _F:
    return click.option(
        "--as-of",
        type=click.DateTime(["%Y-%m-%d"]),
        callback=_to_date,
        metavar="DATE",
        help="The date that windows are counted back from, by default today.",
    )(function)


def engine_option(engines: tuple[str, ...], what: str) -> Callable[[_F], _F]:
    return click.option("--engine", type=click.Choice(engines), default="auto", show_default=True, help=what)


def _relaxed(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    features = tuple(name.strip() for each in value for name in each.split(",") if name.strip())
    if not features:
        return ()
    # Imported here, as are others, because few calls give any.
    from vhlo_tools.compat import expansion_policy

    try:
        expansion_policy(allow_relaxed=features)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return features


#: What ``--allow-signature-change`` does.
SIGNATURE_CHANGE_HELP: Final = (
    "Let expansions give arguments and results of types newer than the target the types of integers that store them."
)
allow_relaxed_option: OptionDecorator = click.option(
    "--allow-relaxed",
    multiple=True,
    metavar="FEATURE[,...]",
    callback=_relaxed,
    help="Rewrite these features too, although something is given up, such as an accuracy; all for all of them.",
)


def expand_options(function: _F) -> _F:
    expand = click.option(
        "--expand",
        is_flag=True,
        help="Rewrite features newer than the target into older ones, where the program computes the same.",
    )
    signature = click.option("--allow-signature-change", is_flag=True, help=SIGNATURE_CHANGE_HELP)
    return expand(allow_relaxed_option(signature(function)))


no_legalize_option: OptionDecorator = click.option(
    "--no-legalize",
    "legalize",
    flag_value=False,
    default=True,
    help="Reject ops that no artifact can represent, instead of rewriting them to StableHLO.",
)


def releases(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Return the releases in comma lists, each once."""
    return tuple(dict.fromkeys(each.strip() for text in value for each in text.split(",") if each.strip()))


def confirm_option(function: _F) -> _F:
    """The function receives a tuple of releases."""
    return click.option(
        "--confirm-with",
        multiple=True,
        metavar="RELEASE",
        callback=releases,
        help="A real release, such as jaxlib==0.4.31, that must read the result; it is installed on first use. May be "
        "repeated.",
    )(function)


def provider_option(function: _F) -> _F:
    return click.option(
        "--provider", metavar="PREFIX", help="The MLIR bindings to use: jaxlib.mlir, torch_mlir or mlir."
    )(function)


timeout_option: OptionDecorator = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    help="The time limit of a run in seconds, by default 600; inf for none.",
)


manifest_option: OptionDecorator = click.option(
    "--manifest",
    "with_manifest",
    is_flag=True,
    help="Write a manifest beside the output, OUTPUT.manifest.json: digests, versions, signature, how it was made.",
)


def choose_manifest(name: str | None, *, required: bool, ignored: bool) -> ManifestChoice:
    if (name is not None) + required + ignored > 1:
        raise click.UsageError("--manifest, --require-manifest and --no-manifest exclude each other: give only one")
    return name if name is not None else True if required else False if ignored else None


def input_manifest_options(function: _F) -> _F:
    for option in (
        click.option("--no-manifest", "no_manifest", is_flag=True, help="Ignore a manifest beside the input."),
        click.option("--require-manifest", is_flag=True, help="Refuse an input that has no manifest beside it."),
        click.option(
            "--manifest", metavar="FILE", help="The manifest that the input must match, by default the one beside it."
        ),
    ):
        function = option(function)
    return function


trusted_option: OptionDecorator = click.option(
    "--trusted",
    is_flag=True,
    help="Parse artifacts and bytecode in this process, without validation in a child process.",
)


dask_option: OptionDecorator = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Do the work on the Dask cluster whose scheduler is at ADDRESS, tcp://HOST:PORT. Its workers must have this "
    "package and see the same files.",
)


def processes(jobs: int, paths: Iterable[str]) -> int | None:
    """Return the number of processes; ``None`` for ``memory://``, whose objects no other process has."""
    return None if any(each.lower().startswith("memory://") for each in paths) else jobs


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    if address is None:
        yield None
        return
    from vhlo_tools.stores import connected

    with connected(address) as client:
        yield client


def force_option(function: _F) -> _F:
    return click.option("-f", "--force", is_flag=True, help="Replace the output if it exists.")(function)


def format_option(function: _F) -> _F:
    return click.option(
        "--output-format", "--format", type=click.Choice(["text", "json"]), default="text", show_default=True
    )(function)


def exit_code_of(error: VhloToolsError) -> int:
    """Return 1 for a negative result, 2 for a usage error or a bad input."""
    no = (DowngradeError, EngineError, UnsupportedFeatureError, VerificationError)
    if isinstance(error, AliasError):
        # 1 for aliases of a program, 2 for those of the command line.
        return 1 if error.findings else 2
    return 1 if isinstance(error, no) and not isinstance(error, InvalidInputError) else 2


def reporting(command: Callable[..., dict[str, Any]]) -> Callable[..., None]:
    """Add `--output-format` to a command that writes a file and returns a report.

    Text format prints only the warnings, to stderr; JSON format prints the report, or an error with its findings, to
    stdout.
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
    return {
        "output": output,
        "kind": str(Kind.PORTABLE_ARTIFACT if isinstance(artifact, Artifact) else Kind.JAX_EXPORT),
        "version": str(artifact.version),
        "bytecode_version": artifact.bytecode_version,
        "size": len(artifact),
        "findings": artifact.findings,
    }


def read_input(source: str, manifest: ManifestChoice = None) -> tuple[Buffer, str]:
    """Return the contents of a file or of stdin, and its name; by default a manifest beside the file must match."""
    if source == STANDARD:
        if sys.stdin is None:
            raise click.UsageError("stdin is closed: there is nothing to read")
        return sys.stdin.buffer.read(), "<stdin>"
    data = read_bytes(place(source))
    require_manifest(data, source, manifest)
    return data, source


def read_program(source: str) -> tuple[ProgramSource, str]:
    """Return a program, as a place or as the bytes of stdin, and its name in messages."""
    return read_input(source) if source == STANDARD else (place(source), source)


def read_artifact(source: str) -> Artifact | JaxContainer:
    data, name = read_input(source)
    with suppress(InvalidProgramError):
        if recognise(data, name) is Kind.JAX_EXPORT:
            from vhlo_tools.artifact import JaxContainer

            return JaxContainer(data, name=name)
    # Raises the error for other files.
    return Artifact(data, name=name)


def write_output(output: str, chunks: Iterable[Chunk], *, force: bool, binary: bool) -> None:
    """Write atomically to a file, or to stdout; binary data is never written to a terminal."""
    if output != STANDARD:
        from vhlo_tools.files import write_atomically

        write_atomically(place(output), chunks, force=force)
        return
    if sys.stdout is None:
        raise click.UsageError("stdout is closed: give -o FILE")
    if binary and sys.stdout.isatty():
        raise click.UsageError("bytes are not written to a terminal: give -o FILE, or redirect the output")
    for chunk in chunks:
        for piece in slices(chunk):
            sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def write_artifact(
    output: str,
    held: Artifact | JaxContainer,
    *,
    force: bool,
    with_manifest: bool = False,
    made: Making | None = None,
    source: Iterable[Chunk | Buffer] | None = None,
) -> None:
    """Write an artifact, or a file that contains artifacts, to a file or to stdout.

    A file with a manifest gets a new one even without ``--manifest``. ``made`` is by default what ``held`` knows; the
    manifest has the digest of ``source``.
    """
    if not _has_manifest(output, with_manifest):
        write_output(output, held.chunks, force=force, binary=True)
        return
    # Imported here because most files have none.
    from dataclasses import replace

    from vhlo_tools.artifact import Manifest, measured, write_with_manifest

    first = held if isinstance(held, Artifact) else held.artifacts[0]
    made = made or first.made
    if made is not None and source is not None:
        made = replace(made, source=measured(source)[1])
    write_with_manifest(output, held.chunks, Manifest.of(held, made=made), force=force)


def _has_manifest(output: str, with_manifest: bool) -> bool:
    return output != STANDARD and (with_manifest or find_manifest(output) is not None)


def check_manifest_output(output: str, with_manifest: bool, *, force: bool) -> None:
    """Reject, before any work, a manifest that could not be written: to stdout, or over a file that is none."""
    if not with_manifest:
        return
    if output == STANDARD:
        raise click.UsageError("a manifest is a file beside the output: give -o FILE for the output")
    beside = manifest_place(output)
    if isinstance(beside, Url) or not beside.exists():
        return
    if beside.is_dir():
        raise click.UsageError(f"{beside} is a folder: expected the place of a manifest")
    from vhlo_tools.files import MANIFEST_HEAD

    with beside.open("rb") as file:
        # That of an earlier output is removed with the output, or describes one that is there no more.
        if not force and file.read(len(MANIFEST_HEAD)) != MANIFEST_HEAD:
            raise click.UsageError(f"{beside} exists and is no manifest: --force replaces it")


def check_output(output: str, *, force: bool, binary: bool) -> None:
    """Reject, before any work, an output that :func:`write_output` would reject after it."""
    if output == STANDARD:
        write_output(output, (), force=force, binary=binary)
    elif not output:
        raise click.UsageError("the name of the output is empty")
    elif _is_folder(found := place(output)):
        raise click.UsageError(f"{output} is a folder: expected a file to write")
    elif not force and _exists(found):
        raise click.UsageError(f"{output} exists: --force replaces it")


def _exists(found: Place) -> bool:
    if isinstance(found, Url):
        from vhlo_tools.files import stamp_of

        return stamp_of(found) is not None
    return found.is_file()


def _is_folder(found: Place) -> bool:
    return found.is_prefix if isinstance(found, Url) else found.is_dir()


def echo_json(value: object) -> None:
    # Imported here because most output is text.
    import json

    # ASCII, in which JSON has its own escapes.
    click.echo(json.dumps(value, indent=2, default=str, allow_nan=False))


def report_findings(findings: Iterable[Finding]) -> None:
    for group in group_findings(findings):
        first, *others = findings_lines(group)
        echo(f"vhlo: {group[0].level}: {first.strip()}", err=True)
        for line in others:
            echo(line, err=True)


# Option for handlers of custom calls

handler_option: OptionDecorator = click.option(
    "--handler",
    "handlers",
    multiple=True,
    metavar="TARGET=MODULE:FUNCTION",
    help="Compute custom calls of TARGET by a function in Python, which receives the call and an array for each "
    "operand, and returns an array for each result. The module is also searched in the current directory.",
)


def load_handlers(texts: Sequence[str]) -> dict[str, Callable[..., Any]]:
    return dict(map(_loaded, texts))


def _loaded(text: str) -> tuple[str, Callable[..., Any]]:
    # Names of modules and functions contain no '=', but targets may.
    target, _, place = text.rpartition("=")
    module, _, name = place.partition(":")
    if not (target and module and name):
        raise click.UsageError(f"{text!r} is not a handler: expected TARGET=MODULE:FUNCTION, as in my_op=kernels:my_op")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        function: Any = import_module(module)
        for each in name.split("."):
            function = getattr(function, each)
    except (ImportError, AttributeError) as error:
        raise click.UsageError(f"the handler {text!r} cannot be loaded: {error}") from error
    if not callable(function):
        raise click.UsageError(f"the handler {text!r} is a {type(function).__qualname__}, not a function")
    return target, function
