"""Trial parsing of untrusted bytes in a child process, because the C++ readers crash on some damaged files.

One in fifty flipped bits crashes the reading process, or makes it hang. Bytes that the child parses and releases
without error are then parsed in this process too.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from copy import copy
from functools import cached_property
from typing import Any, Final

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import PARSE_ONCE, TRIAL, MLIRFailure, Provider, isolation, xla
from vhlo_tools.bytecode import Entry, File, OversizedShapeError, decode, decode_entry
from vhlo_tools.errors import (
    EngineCrashError,
    EngineError,
    EngineStartError,
    InvalidProgramError,
    MalformedArtifactError,
)
from vhlo_tools.files import MAGIC, NO_CACHE, DigestSet, cache_folder, join
from vhlo_tools.limits import MOST_DIMENSIONS, seconds_of_reading
from vhlo_tools.program.constant_sizes import refuse_constants_of_other_sizes, without_values
from vhlo_tools.program.program import unreadable

# How many times the limit a trial may take that gets no processor, on a busy machine.
_PATIENCE: Final = 5.0

# A context and a reader need some megabytes, and there are up to three copies of a constant.
_MEMORY: Final = 1 << 30
_COPIES: Final = 8

# The file of the digests of what was read without error.
_SUCCEEDED: Final = "programs-read"

# The widest integer type that is read, in bits.
_WIDEST: Final = 1 << 12
# As in `tensor<2x?x3xf32>`, from the first `x` on: the digits before it, of which constants have millions, would take
# twenty times as long. A run that is not short is looked at once.
_DIMENSIONS: Final = re.compile(rb"x(?:\s*+(?:\d++|\?)\s*+x){16,}+")


class Trial:
    """The reading of bytes by a child process.

    Trials that succeeded are remembered for all processes of the user, by digests of the bytes and of the library,
    unless ``VHLO_TOOLS_NO_CACHE`` is set.
    """

    def __init__(self, provider: Provider, data: bytes, *, portable: bool) -> None:
        self.provider: Provider = provider
        self._data, self._portable = data, portable
        self._succeeded: DigestSet | None = None
        if isolation.AVAILABLE and not os.environ.get(NO_CACHE):
            with suppress(RuntimeError):
                self._succeeded = DigestSet(cache_folder(), _SUCCEEDED)

    @property
    def needed(self) -> bool:
        """No child process of the user has read the bytes with this library, and this is none."""
        return (
            isolation.AVAILABLE
            and not isolation.in_child()
            and (self._succeeded is None or self._digest not in self._succeeded)
        )

    def run(self) -> EngineError | None:
        """Returns why the child could not read the bytes; a rejection by the library is raised."""
        try:
            _tried(PARSE_ONCE, self._data, self.provider.prefix, memoryview(self._data), self._portable)
        except EngineStartError:
            raise
        except EngineError as error:
            return error
        if self._succeeded is not None:
            self._succeeded.add(self._digest)
        return None

    @cached_property
    def _digest(self) -> bytes:
        subject = (TRIAL, self.provider.prefix, self.provider.build, self._portable)
        digest = hashlib.sha256(hashlib.sha256(repr(subject).encode()).digest())
        digest.update(self._data)
        return digest.digest()


def screen_artifact(artifact: Artifact, provider: Provider) -> None:
    """Marks the artifact as trusted; trusted artifacts are skipped."""
    if (trial := trial_of(artifact, provider)) is not None:
        try_artifact(artifact, trial)


def trial_of(artifact: Artifact, provider: Provider) -> Trial | None:
    """Marks the artifact as trusted if it needs no trial."""
    if artifact.trusted:
        return None
    refuse_oversized_types(artifact.file, artifact.name)
    refuse_constants_of_other_sizes(artifact.file)
    short = without_values(artifact.copy_of_file())
    trial = Trial(provider, bytes(artifact) if short is None else join(short), portable=True)
    artifact.trusted = not trial.needed
    return trial if trial.needed else None


def try_artifact(artifact: Artifact, trial: Trial) -> None:
    """Marks the artifact as trusted."""
    try:
        reason = trial.run()
    except MLIRFailure as failure:
        raise unreadable(artifact, trial.provider, failure) from failure
    if reason:
        raise MalformedArtifactError(
            _explained(f"{artifact.name} (StableHLO {artifact.version})", trial.provider, reason)
        ) from reason
    artifact.trusted = True


def refuse_oversized_types(file: File, name: str) -> None:
    """Refuse types on which MLIR takes minutes.

    It allows integers of 16,777,215 bits, and takes seconds to print one; StableHLO has at most 64. It allows any
    number of dimensions, and its conversion takes the square of them. Types that are damaged are left to the library,
    which reports them.
    """
    width, types = 0, list[Entry]()
    with suppress(MalformedArtifactError):
        types += file.types
    for entry in types:
        try:
            value = decode_entry(file, "type", entry)
        except OversizedShapeError:
            raise
        except MalformedArtifactError:
            continue
        else:
            if value is not None and value.dialect == "builtin" and value.name == "integer":
                # The lowest two bits are the signedness (mlir/include/mlir/IR/BuiltinDialectBytecode.td).
                width = max(width, int(str(value.fields[0])) >> 2)
    if width > _WIDEST:
        raise InvalidProgramError(f"{name} contains an integer type of {width} bits: at most {_WIDEST} are read")


def screen_source(data: bytes, provider: Provider, name: str) -> None:
    """Parses it in a child process, which may crash."""
    if data.startswith(MAGIC):
        # What cannot be decoded here is reported by the library.
        with suppress(MalformedArtifactError):
            try:
                refuse_oversized_types(decode(data), name)
            except OversizedShapeError as error:
                raise InvalidProgramError(f"{name} is not read: {error}") from error
    elif any(found[0].count(b"x") > MOST_DIMENSIONS for found in _DIMENSIONS.finditer(data)):
        raise InvalidProgramError(f"{name} has a type of more than {MOST_DIMENSIONS} dimensions, which are the limit")
    trial = Trial(provider, data, portable=False)
    if trial.needed and (reason := trial.run()):
        raise InvalidProgramError(_explained(name, provider, reason)) from reason


def convert_hlo(function: str, data: str | bytes, name: str, *, trusted: bool) -> Any:
    """``function`` is the name of one in :mod:`vhlo_tools.bindings.xla`."""
    if trusted or not isolation.AVAILABLE or isolation.in_child():
        return getattr(xla, function)(data)
    whole = data.encode(errors="surrogateescape") if isinstance(data, str) else data
    try:
        return _tried(f"{xla.__name__}:{function}", whole, data)
    except EngineStartError:
        raise
    except EngineError as error:
        raise InvalidProgramError(f"XLA crashes or hangs on {name} (tried in a child process): {error}") from error


def _explained(name: str, provider: Provider, reason: EngineError) -> str:
    return (
        f"{name} is damaged: {provider.library.name} crashes or hangs when reading it (tried in a child process): "
        f"{reason}; regenerate or download the file again"
    )


#: The errors of crashes and time-outs, by the function and the digest of the data: a second call fails at once.
_failed: Final[dict[tuple[str, bytes], EngineError]] = {}
#: The sizes of such data, so that other data needs no digest.
_sizes: Final[set[int]] = set()
_MOST_FAILED: Final = 10_000


def _tried(function: str, data: bytes, *arguments: object) -> Any:
    """Limits grow with the data; a crash or an exceeded limit is remembered for the same data."""
    key = (function, hashlib.sha256(data).digest()) if len(data) in _sizes else None
    if key in _failed:
        raise copy(_failed[key])
    seconds = seconds_of_reading(len(data))
    limits = isolation.Limits(seconds=seconds, memory=_MEMORY + _COPIES * len(data), patience=_PATIENCE)
    try:
        return isolation.call(function, *arguments, limits=limits)
    except EngineStartError as error:
        raise EngineStartError(f"{error}; trusted=True (--trusted) parses in this process instead") from error
    except EngineError as error:
        # One that was killed by another process, such as by the system for want of memory, says nothing of the data.
        killed = isinstance(error, EngineCrashError) and error.signal == "SIGKILL"
        if len(_failed) < _MOST_FAILED and not killed:
            # A copy has no traceback, whose frames would keep the data.
            _failed[function, hashlib.sha256(data).digest()] = copy(error)
            _sizes.add(len(data))
        raise
