"""The exceptions that the toolkit raises.

A message states what was found, what was expected and what to do. Operating system errors (a missing file, a full
disk, an existing file that may not be replaced) keep Python's classes.

Messages are printable: names from files are shown with escapes where they contain anything else. Line ends are those of
what a library said, which follows the message.
"""

from __future__ import annotations

from collections.abc import Sequence

from vhlo_tools.findings import Diagnostic, Finding, findings_lines
from vhlo_tools.printable import printable, printable_lines
from vhlo_tools.version import InvalidVersionError as InvalidVersionError, VhloToolsError as VhloToolsError


def _with_lines(message: str, said: str) -> str:
    """The message, then what a library said, in lines that are indented: none begins as one of ours does."""
    lines = [line.rstrip() for line in said.expandtabs(2).split("\n") if line.strip()]
    return ": ".join(filter(None, (printable(message), printable_lines("\n  ".join(lines)))))


class UnknownTargetError(VhloToolsError, ValueError):
    """A target that names no version, or one that the installed library cannot write."""


class UnknownReleaseWarning(UserWarning):
    """A target names a release that the specification does not have: the next older one stands for it."""


class InvalidSpecificationError(VhloToolsError, ValueError):
    """A folder of dialect specifications that cannot be read, or a change to it that cannot be made."""


class SettingsError(VhloToolsError, ValueError):
    """Settings of the gate, or its baseline, that cannot be used; the message names the file and the key."""


class RevisionError(VhloToolsError, ValueError):
    """A revision of git that programs cannot be compared with; the message says what would make it available."""


class ResultsError(VhloToolsError, ValueError):
    """Files of results about a store that cannot be read: damaged, of another program, or of different tables."""


class ProviderError(VhloToolsError):
    """The MLIR bindings are missing, or lack a required function."""


class MissingExtraError(VhloToolsError, ImportError):
    """A framework that an integration needs is not installed; the message names the extra that installs it."""


def installing(extra: str) -> str:
    """Return the command that installs an extra: the package is on no index."""
    return f"pip install '.[{extra}]' in a clone of vhlo_tools"


class LayoutError(VhloToolsError):
    """A graph cannot be laid out for a picture; the message says why, and what can be drawn instead."""


class ReleaseEnvironmentError(VhloToolsError):
    """An environment that holds a real release cannot be made or started; the message says why."""


class InvalidUrlError(VhloToolsError, ValueError):
    """A URL of a scheme that is not supported, or that lacks a part, or where only a local path can be used."""


class StoreError(VhloToolsError, OSError):
    """A store behind a URL refused a request or cannot be reached: credentials, permissions, network, or its limits.

    A missing object is a :class:`FileNotFoundError`, and one that may not be replaced a :class:`FileExistsError`, as
    for files. It is an :class:`OSError`, so that whoever handles those of files handles it too.
    """

    def __init__(self, message: str) -> None:
        # One argument: OSError takes more as a number and a text.
        super().__init__(printable(message))


class ObjectChangedError(StoreError):
    """An object behind a URL is no longer the version that was read before."""


class InvalidProgramError(VhloToolsError, ValueError):
    """An input that is not a program in a supported format.

    Attributes:
        diagnostics: The diagnostics of MLIR, if MLIR was called.
    """

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = (), *, said: str = "") -> None:
        super().__init__(_with_lines(message, said))
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)


class MalformedArtifactError(VhloToolsError, ValueError):
    """Bytes that are not a portable artifact, or a damaged one.

    Attributes:
        offset: The byte offset at which the damage was detected, if known.
        section: The bytecode section in which the damage was detected, if known.
        diagnostics: The diagnostics of MLIR, if MLIR was called.
    """

    def __init__(
        self,
        message: str,
        *,
        offset: int | None = None,
        section: str | None = None,
        diagnostics: Sequence[Diagnostic] = (),
    ) -> None:
        where = [f"{section} section"] if section else []
        where += [f"offset {offset}"] if offset is not None else []
        super().__init__(printable(f"{message} ({', '.join(where)})" if where else message))
        self.offset = offset
        self.section = section
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)


class ManifestError(VhloToolsError, ValueError):
    """A file that is not what its manifest says, a manifest that is damaged, or one that is required and not there.

    Attributes:
        differences: What differs, each with what was expected and what was found; empty unless the file does.
    """

    def __init__(self, message: str, differences: Sequence[str] = ()) -> None:
        self.summary: str = printable(message)
        self.differences: tuple[str, ...] = tuple(map(printable, differences))
        super().__init__("\n".join([self.summary, *(f"  {each}" for each in self.differences)]))

    def __reduce__(self) -> tuple[type[ManifestError], tuple[str, tuple[str, ...]]]:
        return type(self), (self.summary, self.differences)


class SignatureError(VhloToolsError, ValueError):
    """A signature that is not one of the manifest by the key or the certificates given, or that cannot be made."""


class _FindingsError(VhloToolsError):
    def __init__(self, message: str, findings: Sequence[Finding]) -> None:
        self.summary: str = printable(message)
        self.findings: tuple[Finding, ...] = tuple(findings)
        super().__init__("\n".join([self.summary, *findings_lines(self.findings)]))

    def __reduce__(self) -> tuple[type[_FindingsError], tuple[str, tuple[Finding, ...]]]:
        return type(self), (self.summary, self.findings)


class AliasError(_FindingsError, ValueError):
    """An alias or a donor that XLA rejects, or that an alias form cannot represent.

    Attributes:
        findings: The findings, if a whole program was examined.
        summary: The message without the findings.
    """

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message, findings)


class BufferDeletedError(AliasError):
    """A buffer that was donated to an execution, or deleted, and is used again."""


class UnsupportedFeatureError(_FindingsError):
    """A program contains something that no version of the portable artifact format can represent.

    Attributes:
        findings: The findings; at least the first.
        summary: The message without the findings.
    """


class DowngradeError(_FindingsError):
    """A program cannot be written at the target version, because it needs a newer one.

    Attributes:
        findings: The findings that prevent it; at least the first.
        summary: The message without the findings.
    """


class EngineError(VhloToolsError):
    """A program cannot be evaluated, or not with these inputs.

    Attributes:
        diagnostics: The diagnostics of the engine, with locations.
    """

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = (), *, said: str = "") -> None:
        super().__init__(_with_lines(message, said))
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)


class EngineCrashError(EngineError):
    """The child process that ran a program crashed.

    Attributes:
        signal: The name of the signal that terminated the process, such as ``SIGSEGV``, if there was one.
        exit_code: The exit code, if the process exited.
        op: The op in progress, if the process had recorded one.
        output: The last output of the process on stdout and stderr.
    """

    def __init__(
        self,
        message: str,
        *,
        signal: str | None = None,
        exit_code: int | None = None,
        op: str | None = None,
        output: str = "",
    ) -> None:
        super().__init__(message)
        self.signal = signal
        self.exit_code = exit_code
        self.op = op
        self.output = output


class EngineStartError(EngineError):
    """No child process for running a program can be started."""


class EngineTimeoutError(EngineError):
    """A program exceeded its time limit and was terminated.

    Attributes:
        seconds: The time limit.
        op: The op in progress, if the process had recorded one.
        cpu_seconds: The CPU time that the run used, if known: much less than the limit if the machine was busy.
    """

    def __init__(
        self, message: str, *, seconds: float | None = None, op: str | None = None, cpu_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.op = op
        self.cpu_seconds = cpu_seconds


class InvalidInputError(EngineError, ValueError):
    """Inputs that do not match the inputs of a program."""


class VerificationError(VhloToolsError):
    """Two programs do not compute the same results, or cannot be compared."""


class GoldenError(VhloToolsError):
    """A recorded program with outputs that cannot be used, or a folder without any record."""


class WorkerError(VhloToolsError):
    """Processes that cannot be started or replaced, or a cluster that does not answer or has another release."""


class MigrationError(VhloToolsError):
    """A migration of many files that cannot start or continue as requested; no single file is the cause."""
