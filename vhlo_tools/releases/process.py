"""A warm process in the environment of a release, which reads, writes and runs artifacts one after the other.

Nothing that an artifact does to the release ends the caller: the death of the process is an answer, and the next
request starts another.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Literal, Self

from vhlo_tools.artifact import Artifact, devices_of, without_entry
from vhlo_tools.documents import read_json
from vhlo_tools.errors import ReleaseEnvironmentError
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.releases.environments import PackageRelease, Say, clean_environment, environment, silent
from vhlo_tools.spec import DeviceKind, Topology, topology_of

#: What a release failed at; ``crash`` and ``timeout`` end its process.
Step = Literal["read", "parse", "write", "compile", "run", "crash", "timeout"]

#: The limits of one request: seconds, and bytes of memory that the process may fill.
_SECONDS: Final = 120.0
_MEMORY: Final = 12 << 30
#: The bytes of an answer's first line, and of all it brings, that are read.
_LONGEST_LINE: Final = 1 << 26
_LARGEST_ANSWER: Final = 1 << 32
#: A process starts within so many seconds on a busy machine: some releases import for long.
_START: Final = 300.0
#: What is kept of the words of a release, and how much of what it printed is searched for them.
_WORDS: Final = 600
_PRINTED: Final = 1 << 20
#: The longest that is waited at once; a limit may be infinite.
_LONGEST_WAIT: Final = 3600.0

_INSIDE: Final = Path(__file__).parent / "inside"

#: What plugins compile for where no device is named.
_DEVICES: Final[Mapping[DeviceKind, str]] = {"tpu": "v5e", "gpu": "h100"}


@dataclass(frozen=True, slots=True)
class Answer:
    failed: Step | None = None  # None if it did what was asked
    words: str = ""  # the message, or the cause of death of the process
    value: Any = None
    parts: tuple[bytes, ...] = ()  # the bytes that it gave
    seconds: float = 0.0

    @property
    def succeeded(self) -> bool:
        return self.failed is None


class ReleaseProcess:
    """The process of a release, started by its first request, as a context manager.

    Requests of several threads wait for each other. The process, and its children, end with this one, even if that is
    killed. ``timeout`` is seconds per request, ``memory`` the bytes that the process may fill.
    """

    def __init__(self, release: str, say: Say = silent, *, timeout: float = _SECONDS, memory: int = _MEMORY) -> None:
        if not timeout > 0:
            raise ReleaseEnvironmentError(f"a limit of {timeout:g} s: expected a number of seconds above 0")
        self.release: PackageRelease = PackageRelease.of_reader(release)
        self._python = environment(release, say)
        self._timeout = timeout
        self._memory = memory
        self._child: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._asking = threading.Lock()
        self._stopped = False

    def describe(self) -> dict[str, Any]:
        """Return the versions of the packages, and the StableHLO versions that the release says it has."""
        answer = self.ask("describe")
        if not answer.succeeded:
            raise ReleaseEnvironmentError(f"{self.release} does not start: {answer.words}")
        if not isinstance(answer.value, dict):
            raise ReleaseEnvironmentError(f"{self.release} describes itself in another form than expected")
        found: dict[str, Any] = answer.value
        return found

    def read(self, artifact: bytes, *, text: bool = False) -> Answer:
        """The value is the program as text, if requested and the release can give it."""
        kind = self.release.kind.devices
        if kind is None:
            return self.ask("read", artifact, text=text)
        if self.release.device:
            return self.compile(artifact)
        # Plugins read what they compile. Without a function to enter, they stop once they have read it.
        answer = self.ask("read", without_entry(artifact), **_described(topology_of(kind, _DEVICES[kind])))
        if answer.failed == "compile":
            raise ReleaseEnvironmentError(f"{self.release} reads nothing on this machine: {answer.words}")
        return answer

    def compile(self, artifact: bytes, *, optimized: bool = False) -> Answer:
        """Compile for the device of a plugin's release, or for as many as the program says it is for.

        The value has bytes of memory and costs, as far as the plugin gives them; the part is the optimized HLO.
        """
        kind = self.release.kind.devices
        assert kind is not None
        program = Artifact(artifact)
        devices = devices_of(program.file)
        place = topology_of(kind, self.release.device or _DEVICES[kind], prod(devices))
        by_shardy = "sdy" in program.dialects or b"xla.sdy.meshes" in program.file.strings
        asked = {**_described(place), "devices": devices, "shardy": by_shardy, "optimized": optimized}
        return self.ask("compile", artifact, **asked)

    def write(self, programs: Sequence[bytes], target: str, kind: Literal["text", "artifact"]) -> Answer:
        """Write the first of the spellings ``programs`` that the release reads; the artifact is the one part."""
        return self.ask("write", *programs, target=target, kind=kind)

    def run(self, artifact: bytes, inputs: bytes, **options: object) -> Answer:
        """The inputs, and the one part of the answer, are archives of arrays (``arrays.py``)."""
        return self.ask("run", artifact, inputs, **options)

    def ask(self, function: str, *parts: bytes, **options: object) -> Answer:
        """Call a function of the scripts in ``inside/``."""
        with self._asking:
            answer = self._asked(function, parts, options)
        if self._stopped:
            raise ReleaseEnvironmentError(f"{self.release} was stopped")
        return answer

    def stop(self) -> None:
        """End the process from another thread; a caller of :meth:`ask` gets an error, and nothing starts anew."""
        self._stopped = True
        if (child := self._child) is not None:
            _kill(child)

    def _asked(self, function: str, parts: Sequence[bytes], options: Mapping[str, object]) -> Answer:
        if (fresh := self._child is None or self._child.poll() is not None) and (failure := self._start()):
            return failure
        answer = self._answered(function, parts, options, self._timeout)
        if answer.failed == "crash" and not fresh and not self._stopped:
            # It may have died before, or of what an earlier request left behind: a new process tells.
            return self._start() or self._answered(function, parts, options, self._timeout)
        return answer

    def _start(self) -> Answer | None:
        """Start the process, and return what went wrong: what that takes is not of the time of a request."""
        if self._stopped:
            return Answer("crash", "stopped")
        self._launch()
        answer = self._answered("describe", (), {}, _START)
        return None if answer.succeeded else answer

    def _answered(self, function: str, parts: Sequence[bytes], options: Mapping[str, object], timeout: float) -> Answer:
        child = self._child
        assert child is not None
        assert child.stdin is not None
        begun = time.monotonic()
        if self._errors is not None:
            # The file of the output, whose position is shared with the process, would grow with every request.
            self._errors.seek(0)
            self._errors.truncate()
        deadline = begun + timeout
        request = json.dumps({"do": function, "options": options, "parts": [len(each) for each in parts]}).encode()
        try:
            _send(child.stdin.fileno(), [request, b"\n", *parts], deadline)
            said, found = self._answer(child, deadline)
        except TimeoutError:
            self.close()
            return Answer("timeout", f"no answer within {timeout:g} s", seconds=time.monotonic() - begun)
        except (OSError, ValueError):
            words = self._death(child)
            return Answer("crash", words, seconds=time.monotonic() - begun)
        seconds = time.monotonic() - begun
        if "error" in said:
            words = str(said["error"])
            printed = self._printed()
            # Old bindings raise a bare "failed to ..." and print why.
            reason = next((line for line in printed if "error: " in line), "")
            text = reason.partition("error: ")[2] if reason and reason.partition("error: ")[2] not in words else ""
            step = said.get("step", function)
            failed: Step = step if step in ("read", "parse", "write", "compile", "run") else "run"
            return Answer(failed, _short(f"{words} ({text})" if text else words), seconds=seconds)
        return Answer(None, "", said.get("value"), tuple(found), seconds)

    def close(self) -> None:
        if self._child is not None:
            _kill(self._child)
            self._child.wait()
            for stream in (self._child.stdin, self._child.stdout):
                if stream is not None:
                    stream.close()
            self._child = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _launch(self) -> None:
        self.close()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        script = _INSIDE / self.release.kind.server
        self._child = subprocess.Popen(
            [self._python, "-I", "-B", script, str(self._memory), self.release.kind.library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**clean_environment(), "JAX_PLATFORMS": "cpu"},
            bufsize=0,
            # Ctrl-C ends the caller, which ends this process; a traceback from here would only be in the way.
            start_new_session=True,
        )
        assert self._child.stdin is not None
        os.set_blocking(self._child.stdin.fileno(), False)
        if self._stopped:
            _kill(self._child)

    def _answer(self, child: subprocess.Popen[bytes], deadline: float) -> tuple[dict[str, Any], list[bytes]]:
        """Return an answer, checked as untrusted; the end of the process is a ``ValueError``."""
        assert child.stdout is not None
        handle = child.stdout.fileno()
        buffered = bytearray()
        searched = 0
        while (end := buffered.find(b"\n", searched)) < 0:
            if len(buffered) > _LONGEST_LINE:
                raise ValueError("too long an answer")
            searched = len(buffered)
            buffered += _received(handle, deadline)
        said = read_json(bytes(buffered[:end]))
        rest = buffered[end + 1 :]
        lengths = said.get("parts") if isinstance(said, dict) else None
        if not isinstance(lengths, list) or not all(type(each) is int and each >= 0 for each in lengths):
            raise ValueError("an answer of another form")
        if sum(lengths) > _LARGEST_ANSWER:
            raise ValueError("an answer of impossible size")
        while len(rest) < sum(lengths):
            rest += _received(handle, deadline)
        found, start = [], 0
        for length in lengths:
            found.append(bytes(rest[start : start + length]))
            start += length
        return said, found

    def _death(self, child: subprocess.Popen[bytes]) -> str:
        """Return the cause of death of the process, and its last words."""
        try:
            code = child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait()
        words = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        printed = self._printed()
        last = next((line for line in reversed(printed) if _TELLING.search(line)), "")
        self.close()
        return _short(f"{words}: {last}" if last else words)

    def _printed(self) -> list[str]:
        """Return the end of the output since the request, without moving the position, which the process shares."""
        if self._errors is None:
            return []
        handle = self._errors.fileno()
        start = max(0, os.fstat(handle).st_size - _PRINTED)
        return os.pread(handle, _PRINTED, start).decode(errors="replace").splitlines()


def _described(topology: Topology) -> dict[str, Any]:
    return {"topology": topology.name, "options": dict(topology.options)}


#: Lines of standard error that say why a process ended.
_TELLING: Final = re.compile(r"error|fatal|abort|terminate|check failed|assert|LLVM ERROR|bad_alloc", re.IGNORECASE)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children: compilers run linkers, and IREE a compiler."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _send(handle: int, parts: Sequence[bytes], deadline: float) -> None:
    for part in parts:
        rest = memoryview(part)
        while rest:
            _await([], [handle], deadline)
            rest = rest[os.write(handle, rest[: 1 << 16]) :]


def _await(readable: list[int], writable: list[int], deadline: float) -> None:
    while True:
        left = deadline - time.monotonic()
        if any(select.select(readable, writable, [], min(max(0.0, left), _LONGEST_WAIT))):
            return
        if left <= _LONGEST_WAIT:
            raise TimeoutError


def _received(handle: int, deadline: float) -> bytes:
    _await([handle], [], deadline)
    data = os.read(handle, 1 << 20)
    if not data:
        raise ValueError("the process ended")
    return data


def _short(words: str) -> str:
    """Make the words of a release printable and short."""
    line = printable(" ".join(words.split()))
    return line if len(line) <= _WORDS else f"{line[: _WORDS - 3]}..."
