"""What both programs share: streams, options, and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from vhlo_tools.bindings import Context, FilePosition, MlirSession, Remark, get_provider
from vhlo_tools.errors import VhloToolsError
from vhlo_tools.printable import mlir_text, printable_lines
from vhlo_tools.records import dataclass
from vhlo_tools.upstream.arguments import Arguments, Option, UsageError
from vhlo_tools.upstream.diagnostics import DiagnosticPrinter, Verifier
from vhlo_tools.upstream.guard import note, noted
from vhlo_tools.upstream.sources import DEFAULT_MARKER, STANDARD, SourceText, read_source, split_source

# Standard streams and output of a program


@dataclass(frozen=True, slots=True)
class Streams:
    stdin: BinaryIO
    stdout: BinaryIO
    stderr: BinaryIO

    @classmethod
    def of_process(cls) -> Streams:
        return cls(sys.stdin.buffer, sys.stdout.buffer, sys.stderr.buffer)

    def say(self, text: str) -> None:
        self.stderr.write(printable_lines(text).encode())
        self.stderr.flush()


@dataclass(slots=True)
class Output:
    """The results of a program, which are written at its end."""

    path: str  # ``-`` for stdout
    streams: Streams
    _pieces: list[bytes] = field(default_factory=list)

    def write(self, data: bytes | str) -> None:
        if isinstance(data, str):
            # A file gets the text as it is.
            data = (mlir_text(data) if self.path == STANDARD else data).encode(errors="surrogateescape")
        self._pieces.append(data)

    @property
    def data(self) -> bytes:
        return b"".join(self._pieces)

    def finish(self, *, is_good: bool) -> None:
        """Write all results: to a file only after success, to stdout always."""
        if self.path == STANDARD:
            self.streams.stdout.write(self.data)
            self.streams.stdout.flush()
        elif is_good:
            # Imports that few runs need are local, because they would slow down each start.
            from vhlo_tools.files import write_atomically

            try:
                write_atomically(Path(self.path), self._pieces, force=True)
            except OSError as error:
                raise UsageError(f"cannot open output file '{self.path}': {error.strerror}") from error


# Common parts of both programs: split the input, collect diagnostics, and print or verify these
#
# Source: ``mlir/lib/Tools/mlir-opt/MlirOptMain.cpp`` and ``mlir/lib/Tools/mlir-translate/MlirTranslateMain.cpp`` in
# llvm/llvm-project.

#: Options of both programs.
COMMON: Final = (
    Option("o", "Output filename", "value", "filename"),
    Option("allow-unregistered-dialect", "Allow operation with no registered dialects"),
    Option("split-input-file", "Split the input file into chunks and process each independently", "optional", "marker"),
    Option("output-split-marker", "Split marker to use for merging the output", "value"),
    Option(
        "verify-diagnostics",
        "Check that emitted diagnostics match expected-* lines on the corresponding line",
        "optional",
        "all|only-expected",
        choices=("", "all", "only-expected"),
    ),
    Option("mlir-print-op-on-diagnostic", "Print the op that an error is about (default: on)", is_hidden=True),
    Option("help", "Display available options (--help-hidden for more)", alias="h"),
    Option("help-hidden", "Display all available options", is_hidden=True),
    Option("version", "Display the version of this program and of its library"),
)

#: Options without effect here: there are no threads, and no debug builds.
IGNORED: Final = (
    Option("mlir-disable-threading", "Disable multi-threading within MLIR, which this program does not use"),
    Option("mlir-print-stacktrace-on-diagnostic", is_secret=True),
    Option("mlir-very-unsafe-disable-verifier-on-parsing", is_secret=True),
    Option("debug", is_secret=True),
    Option("debug-only", kind="value", is_secret=True),
)


@dataclass(frozen=True, slots=True)
class Job:
    """A part of the input, and the destination of its results."""

    source: SourceText
    context: Context  # for this part only
    output: Output
    #: the names that replace file names during parsing, and the file names
    names: dict[str, str] = field(default_factory=dict)
    heard: list[Remark] = field(default_factory=list)  # the diagnostics so far

    def named(self, text: str) -> str:
        for written, name in self.names.items():
            text = text.replace(written, name)
        return text


def _listener(
    source: SourceText, arguments: Arguments, streams: Streams
) -> tuple[Callable[[Remark], None], Callable[[bool], bool]]:
    level = arguments.text("verify-diagnostics")
    if level is not None:
        verifier = Verifier(source, streams.say, only_expected=level == "only-expected")
        # The success of the work does not matter: a failure may be expected.
        return verifier.hear, lambda _: verifier.finish()
    shows = arguments.flag("mlir-print-op-on-diagnostic", default=True)
    printer = DiagnosticPrinter(source, streams.say, shows_ops=shows)
    errors_only = arguments.flag("error-diagnostics-only")

    def hear(remark: Remark) -> None:
        if remark.severity == "error" or not errors_only:
            printer.hear(remark)

    return hear, bool


def _hand_on(hear: Callable[[Remark], None], job: Job, remark: Remark) -> None:
    job.heard.append(remark)
    hear(_renamed(remark, job))


def _renamed(remark: Remark, job: Job) -> Remark:
    if not job.names:
        return remark
    place = remark.place
    return replace(
        remark,
        location=job.named(remark.location),
        place=place and replace(place, file=job.named(place.file)),
        callers=tuple((job.named(text), at and replace(at, file=job.named(at.file))) for text, at in remark.callers),
        notes=tuple(_renamed(each, job) for each in remark.notes),
    )


def process(
    toolbox: MlirSession,
    arguments: Arguments,
    streams: Streams,
    work: Callable[[Job], bool],
    *,
    separator: str,
    in_place: bool = False,
) -> int:
    """Process the input, part by part, and return the exit code; ``work`` reports its errors itself.

    Parts ``in_place`` keep the lines of the input, and all diagnostics are verified against the expectations of the
    whole input; otherwise each part is an input of its own.
    """
    if len(arguments.files) > 1:
        raise UsageError(f"Too many positional arguments specified: {' '.join(arguments.files)}")
    path = arguments.files[0] if arguments.files else STANDARD
    if path == STANDARD and streams.stdin.isatty():
        streams.say("(processing input from stdin now, hit ctrl-c/ctrl-d to interrupt)\n")
    whole = read_source(path, streams.stdin)
    output = Output(arguments.text("o", STANDARD) or STANDARD, streams)
    parts = _parts(whole, arguments, streams, in_place=in_place)
    between = arguments.text("output-split-marker")
    gap, next_gap = "", separator if between is None else f"\n{between}\n"
    is_good = True
    for source, together in [(whole, parts)] if in_place else [(part, [part]) for part in parts]:
        hear, judge = _listener(source, arguments, streams)
        succeeded = True
        for part in together:
            output.write(gap)
            gap = next_gap
            note(part.title)
            context = toolbox.new_context(allow_unregistered=arguments.flag("allow-unregistered-dialect"))
            job = Job(part, context, output)
            with toolbox.listening(context, partial(_hand_on, hear, job)):
                is_done = work(job)
            if not is_done and not job.heard and "verify-diagnostics" not in arguments.values:
                streams.say(f"{noted()}: error: it failed, but the library reported no reason\n")
            succeeded &= is_done
        is_good &= judge(succeeded)
    output.finish(is_good=is_good)
    return 0 if is_good else 1


def _parts(whole: SourceText, arguments: Arguments, streams: Streams, *, in_place: bool) -> list[SourceText]:
    marker = arguments.text("split-input-file")
    if marker is None or marker.lower() in ("false", "0"):
        return [whole]
    marker = DEFAULT_MARKER if marker in ("", "true", "1") else marker
    parts, misses = split_source(whole, marker, in_place=in_place)
    printer = DiagnosticPrinter(whole, streams.say)
    for line, column in misses:
        printer.say("warning", "near miss with file split marker", "", FilePosition(whole.name, line, column))
    return parts


def has_answered(
    toolbox: MlirSession,
    arguments: Arguments,
    streams: Streams,
    manual: Callable[[bool], str],
    answers: Mapping[str, Callable[[], str]],
) -> bool:
    """Print the information that options such as ``--help`` request; return whether there was such an option.

    ``manual`` returns the help text, with or without rarely needed options; ``answers`` has the other options.
    """

    def version() -> str:
        # Not imported at the top: it is rarely needed, and would slow down each start.
        from importlib.metadata import version as version_of

        library = toolbox.provider.library
        return f"vhlo_tools {version_of('vhlo-tools')}, with {library.name} (StableHLO {library.current})\n"

    of_both = {"help": lambda: manual(False), "help-hidden": lambda: manual(True), "version": version}
    for name, answer in {**of_both, **answers}.items():
        if arguments.flag(name):
            streams.stdout.write(answer().encode())
            streams.stdout.flush()
            return True
    return False


def reported(program: str, streams: Streams, run: Callable[[MlirSession], int]) -> int:
    """Run a program, and report errors on stderr; the exit code of every error is 1, as in upstream's programs."""
    try:
        return run(MlirSession(get_provider()))
    except (UsageError, VhloToolsError) as error:
        streams.say(f"{program}: {error}\n")
    except BrokenPipeError:
        # The reader of the output has closed it, so that no message is needed.
        raise
    except OSError as error:
        streams.say(f"{program}: {error.filename or 'stdout'}: {error.strerror or error}\n")
    return 1
