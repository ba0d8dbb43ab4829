"""Arguments and options that commands share, and their input and output."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date, datetime
from functools import partial, reduce, wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click
from click.core import ParameterSource

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
from vhlo_tools.files import Buffer, Chunk, Kind, Url, is_saved_model, place, read_bytes, recognise, slices
from vhlo_tools.findings import Finding, finding_as_json, findings_lines, group_findings
from vhlo_tools.printable import json_record, json_text, printable

if TYPE_CHECKING:
    from vhlo_tools.artifact import JaxContainer, Making, ManifestChoice
    from vhlo_tools.program import ProgramSource
    from vhlo_tools.stores import Workers

_F = TypeVar("_F", bound=Callable[..., Any])

STANDARD = "-"


def input_argument(metavar: str) -> Callable[[_F], _F]:
    return click.argument("source", metavar=metavar, type=str)


def paths_argument(metavar: str = "PATH...") -> Callable[[_F], _F]:
    return click.argument("paths", metavar=metavar, nargs=-1, required=True)


def output_option(*, required: bool) -> Callable[[_F], _F]:
    shown = "The file to write, or a URL; - is stdout." + ("" if required else " By default stdout.")
    option = partial(click.option, "-o", "--output", help=shown)
    return option(required=True) if required else option(default=STANDARD)


def given(*names: str) -> str | None:
    """Return the first parameter of these names that the command line has, as it is spelled there."""
    context = click.get_current_context()
    on_line = {each for each in names if context.get_parameter_source(each) is ParameterSource.COMMANDLINE}
    spelled = (max(each.opts, key=len) for each in context.command.params if each.name in on_line)
    return next((each if each.startswith("-") else each.upper() for each in spelled), None)


def result_option(what: str = "result") -> Callable[[_F], _F]:
    said = f"Write the {what} to FILE, replacing its content, instead of stdout."
    return click.option("-o", "--output", metavar="FILE", help=said)


def format_choice(*formats: str, what: str | None = None) -> OptionDecorator:
    choice = click.Choice(formats)
    return click.option("--output-format", "--format", type=choice, default="text", show_default=True, help=what)


format_option: OptionDecorator = format_choice("text", "json")


def target_option(default: str | None, *, required: bool = True) -> Callable[[_F], _F]:
    """``required`` counts where there is no default."""
    option = partial(
        click.option,
        "--target",
        help="The consumer: a version (1.9.0), current, minimum, WEEK_4, WEEK_12, MAX, NONE, a window (12w), "
        "a date (2025-06-01), a release (jaxlib==0.4.31), a plugin (plugin:PATH), or a comma list of these.",
    )
    return option(required=required) if default is None else option(default=default, show_default=True)


def _to_date(context: click.Context, parameter: click.Parameter, value: datetime | None) -> date | None:
    return value.date() if value else None


as_of_option: OptionDecorator = click.option(
    "--as-of",
    type=click.DateTime(["%Y-%m-%d"]),
    callback=_to_date,
    metavar="DATE",
    help="The date that windows are counted back from, by default today.",
)


if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    # Old releases of click have the class without the type of its values.
    _Choice = click.Choice


class _Engine(_Choice):
    """Also ``pjrt:`` with the name or the path of a plugin."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from vhlo_tools.api import is_engine

        if not is_engine(str(value)):
            expected = f"one of {', '.join(self.choices)}, or pjrt:PLUGIN"
            self.fail(f"{value!r} is not an engine: expected {expected}", param, ctx)
        return str(value)


def engine_option(
    engines: tuple[str, ...], what: str | None = None, *, plugins: bool = False, default: str | None = "auto"
) -> Callable[[_F], _F]:
    kind: click.Choice[str] = _Engine(engines) if plugins else click.Choice(engines)
    metavar = f"[{'|'.join(engines)}|pjrt:PLUGIN]" if plugins else None
    return click.option("--engine", type=kind, metavar=metavar, default=default, show_default=True, help=what)


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


def several(*options: OptionDecorator) -> OptionDecorator:
    """Return a decorator that adds options in this order."""
    return lambda function: reduce(lambda wrapped, option: option(wrapped), reversed(options), function)


def gathered(name: str, make: Callable[..., Any], *options: OptionDecorator) -> OptionDecorator:
    """Return a decorator that adds options, of whose values the function receives what ``make`` returns."""
    taken = list(inspect.signature(make).parameters)

    def decorate(function: _F) -> _F:
        @wraps(function)
        def run(*args: Any, **given: Any) -> Any:
            made = make(**{each: given.pop(each) for each in taken})
            return function(*args, **{name: made}, **given)

        return cast(_F, several(*options)(run))

    return decorate


expand_options: OptionDecorator = several(
    click.option(
        "--expand",
        is_flag=True,
        help="Rewrite features newer than the target into older ones, where the program computes the same.",
    ),
    allow_relaxed_option,
    click.option("--allow-signature-change", is_flag=True, help=SIGNATURE_CHANGE_HELP),
)


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


confirm_option: OptionDecorator = click.option(
    "--confirm-with",
    multiple=True,
    metavar="RELEASE",
    callback=releases,
    help="A real release, such as jaxlib==0.4.31, that must read the result; it is installed on first use. May be "
    "repeated.",
)
_read_with: Final = partial(
    click.option,
    "--read-with",
    metavar="RELEASE",
    help="Of MLIR text that is too old for the installed library, a release that reads it: jaxlib==0.4.20.",
)
_READ_WITH: Final = "vhlo_tools.read_with"


def _keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    context.meta[_READ_WITH] = value


#: The function receives the release as ``read_with``.
read_with_option: OptionDecorator = _read_with()
#: What the function reads with :func:`read_input` or :func:`read_program` has been read by the release.
read_in_time_option: OptionDecorator = _read_with(callback=_keep, expose_value=False)


def install_reader(release: str) -> None:
    """Make the environment of a release that reads text, where there is none, and say so."""
    from vhlo_tools import api

    api.install_releases([release], lambda line: echo(f"vhlo: {line}", err=True))


provider_option: OptionDecorator = click.option(
    "--provider", metavar="PREFIX", help="The MLIR bindings to use: jaxlib.mlir, torch_mlir or mlir."
)
timeout_option: OptionDecorator = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    help="The time limit of a run in seconds, by default 600; inf for none.",
)
trusted_option: OptionDecorator = click.option(
    "--trusted",
    is_flag=True,
    help="Parse artifacts and bytecode in this process, without validation in a child process.",
)
force_option: OptionDecorator = click.option("-f", "--force", is_flag=True, help="Replace the output if it exists.")
dask_option: OptionDecorator = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Do the work on the Dask cluster whose scheduler is at ADDRESS, tcp://HOST:PORT. Its workers must have this "
    "package and see the same files.",
)


def exclude_option(what: str = "Files") -> OptionDecorator:
    said = f"{what} or folders to exclude. May be repeated."
    return click.option("--exclude", multiple=True, metavar="GLOB", help=said)


def jobs_option(what: str = "The number of processes; by default one for each core.") -> OptionDecorator:
    return click.option("-j", "--jobs", type=click.IntRange(min=1), help=what)


manifest_option: OptionDecorator = click.option(
    "--manifest",
    "with_manifest",
    is_flag=True,
    help="Write a manifest beside the output, OUTPUT.manifest.json: digests, versions, signature, how it was made.",
)


def _choose_manifest(manifest: str | None, require_manifest: bool, no_manifest: bool) -> ManifestChoice:
    if (manifest is not None) + require_manifest + no_manifest > 1:
        raise click.UsageError("--manifest, --require-manifest and --no-manifest exclude each other: give only one")
    return manifest if manifest is not None else True if require_manifest else False if no_manifest else None


#: The function receives ``manifest``, a choice.
input_manifest_options: OptionDecorator = gathered(
    "manifest",
    _choose_manifest,
    click.option(
        "--manifest", metavar="FILE", help="The manifest that the input must match, by default the one beside it."
    ),
    click.option("--require-manifest", is_flag=True, help="Refuse an input that has no manifest beside it."),
    click.option("--no-manifest", is_flag=True, help="Ignore a manifest beside the input."),
)


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    if address is None:
        yield None
        return
    from vhlo_tools.stores import connected

    with connected(address) as client:
        yield client


@contextmanager
def workers(dask: str | None, jobs: int | None, paths: Iterable[str]) -> Iterator[Workers]:
    from vhlo_tools.stores import Workers

    # No other process has the objects of memory://.
    alone = any(each.lower().startswith("memory://") for each in paths)
    with cluster(dask) as client, Workers(client, None if alone else jobs or os.cpu_count() or 1) as found:
        yield found


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
        say_nothing_of_writing()
        if arguments["output"] == STANDARD:
            raise click.UsageError("the result as JSON goes to stdout: give -o FILE for the output")
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
        return _in_time(sys.stdin.buffer.read(), "<stdin>"), "<stdin>"
    data = read_bytes(place(source))
    require_manifest(data, source, manifest)
    return _in_time(data, source), source


def _release() -> str | None:
    context = click.get_current_context(silent=True)
    release: str | None = context.meta.get(_READ_WITH) if context else None
    return release


def _in_time(data: Buffer, name: str) -> Buffer:
    if (release := _release()) is None or recognise(data, name) is not Kind.MLIR_TEXT:
        return data
    # Imported here because few texts are that old.
    from vhlo_tools.releases import read_in_time

    install_reader(release)
    read = read_in_time(data, release, name).data
    assert read is not None
    return read


def read_program(source: str) -> tuple[ProgramSource, str]:
    """Return a program, as a place or as the bytes of stdin, and its name in messages."""
    if source == STANDARD or (_release() is not None and not is_saved_model(source)):
        return read_input(source)
    return place(source), source


def read_programs(before: str, after: str) -> tuple[tuple[ProgramSource, str], tuple[ProgramSource, str]]:
    if before == after == STANDARD:
        raise click.UsageError("only one of the programs can come from stdin")
    return read_program(before), read_program(after)


def read_artifact(source: str) -> Artifact | JaxContainer:
    data, name = read_input(source)
    with suppress(InvalidProgramError):
        if recognise(data, name) is Kind.JAX_EXPORT:
            from vhlo_tools.artifact import JaxContainer

            return JaxContainer(data, name=name)
    # Raises the error for other files.
    return Artifact(data, name=name)


#: Set in the context of a command that says itself what it writes.
_SAYS: Final = "vhlo_tools.says_what_it_writes"


def say_nothing_of_writing() -> None:
    """Leave it to the JSON of a command to say what it writes."""
    click.get_current_context().meta[_SAYS] = True


def say_written(output: str, what: str = "") -> None:
    """Say in a line what a person at a terminal has got; a script, whose stderr is none, and CI hear nothing."""
    context = click.get_current_context(silent=True)
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("CI") or (context and _SAYS in context.meta):
        return
    found = place(output)
    if isinstance(found, Path):
        # Nothing stays in a device or a pipe.
        if not found.is_file():
            return
        what += f"{', ' if what else ''}{found.stat().st_size:,} bytes"
    echo(f"wrote {printable(output)}{': ' if what else ''}{what}", err=True)


def write_output(output: str, chunks: Iterable[Chunk], *, force: bool, binary: bool, what: str | None = "") -> None:
    """Write atomically to a file, or to stdout; binary data is never written to a terminal.

    ``what`` is for :func:`say_written`; ``None`` if the command names the file itself.
    """
    if output != STANDARD:
        from vhlo_tools.files import write_atomically

        write_atomically(place(output), chunks, force=force)
        if what is not None:
            say_written(output, what)
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
    what = f"{'' if isinstance(held, Artifact) else 'a jax.export file of '}StableHLO {held.version}"
    if output == STANDARD or not (with_manifest or find_manifest(output)):
        write_output(output, held.chunks, force=force, binary=True, what=what)
        return
    # Imported here because most files have none.
    from dataclasses import replace

    from vhlo_tools.artifact import Manifest, measured, write_with_manifest

    first = held if isinstance(held, Artifact) else held.artifacts[0]
    made = made or first.made
    if made is not None and source is not None:
        made = replace(made, source=measured(source)[1])
    write_with_manifest(output, held.chunks, Manifest.of(held, made=made), force=force)
    say_written(output, f"{what}, with its manifest")


def check_manifest_output(output: str, with_manifest: bool, *, force: bool) -> None:
    """Reject, before any work, a manifest that could not be written: to stdout, or over a file that is none."""
    if not with_manifest:
        return
    if output == STANDARD:
        raise click.UsageError("a manifest is a file beside the output: give -o FILE for the output")
    beside = manifest_place(output)
    if isinstance(beside, Url):
        return
    if beside.is_dir():
        raise click.UsageError(f"{beside} is a folder: expected the place of a manifest")
    if find_manifest(output) != beside:
        return
    from vhlo_tools.files import MANIFEST_HEAD

    with beside.open("rb") as file:
        # That of an earlier output is removed with the output, or describes one that is there no more.
        if not force and file.read(len(MANIFEST_HEAD)) != MANIFEST_HEAD:
            raise click.UsageError(f"{beside} exists and is no manifest: --force replaces it")


def check_output(output: str, *, force: bool, binary: bool) -> None:
    """Reject, before any work, an output that :func:`write_output` would reject after it."""
    if output == STANDARD:
        write_output(output, (), force=force, binary=binary)
        return
    if not output:
        raise click.UsageError("the name of the output is empty")
    found = place(output)
    if found.is_prefix if isinstance(found, Url) else found.is_dir():
        raise click.UsageError(f"{output} is a folder: expected a file to write")
    if not force and _exists(found):
        raise click.UsageError(f"{output} exists: --force replaces it")


def _exists(found: Url | Path) -> bool:
    if isinstance(found, Path):
        return found.is_file()
    from vhlo_tools.files import stamp_of

    return stamp_of(found) is not None


def echo_json(values: Mapping[str, object]) -> None:
    click.echo(json_text(json_record(values), indent=2))


def show(output_format: str, value: Mapping[str, object], lines: Iterable[str]) -> None:
    """Print a value as JSON, or lines of text."""
    if output_format == "json":
        echo_json(value)
    else:
        for line in lines:
            echo(line)


def report_findings(findings: Iterable[Finding]) -> None:
    for group in group_findings(findings):
        first, *others = findings_lines(group)
        echo(f"vhlo: {group[0].level}: {first.strip()}", err=True)
        for line in others:
            echo(line, err=True)


def _load_handlers(handlers: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    return dict(map(_load_handler, handlers))


def _load_handler(text: str) -> tuple[str, Callable[..., Any]]:
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


#: The function receives ``handlers``, loaded.
handler_option: OptionDecorator = gathered(
    "handlers",
    _load_handlers,
    click.option(
        "--handler",
        "handlers",
        multiple=True,
        metavar="TARGET=MODULE:FUNCTION",
        help="Compute custom calls of TARGET by a function in Python, which receives the call and an array for each "
        "operand, and returns an array for each result. The module is also searched in the current directory.",
    ),
)
