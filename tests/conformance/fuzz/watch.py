"""What is watched while a case runs: time, memory, files, processes, output, and the type of what is raised."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from support.runner_commands import ANYWHERE

from fuzz.cases import Case, Layer

#: Where commands may write.
_OF_COMMANDS: Final = ("out/", "S/", "J", ".vhlo-cache/")
#: The limit of one case in bytes.
MEMORY: Final = 2 << 30
#: What a case may take beside its limit, in seconds for each byte of its files: reading is linear.
_SECONDS_PER_BYTE: Final = 2e-5
#: When a case is interrupted that has child processes: by then all their limits have ended.
_INTERRUPTED: Final = 25.0
_ROOT: Final = Path(__file__).parents[3]
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
#: The events of Python's audit hooks that change something, with how many of their arguments are paths.
_CHANGES: Final = {
    **dict.fromkeys(("os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "os.chown", "os.utime"), 1),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink", "shutil.move", "shutil.copyfile"), 2),
    "sqlite3.connect": 1,
}
_PROCESSES: Final = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "ctypes.dlopen")
_SECRETS: Final = ("/etc/passwd", "secret.npy")


class HangError(BaseException):
    """A case takes too long; not an `Exception`, so that nothing handles it."""


@dataclass(slots=True)
class Outcome:
    """What became of a case."""

    answered: bool = False  # whether there was an answer, and not a typed error
    #: what must not be: the kind of each problem, with a description
    problems: list[tuple[str, str]] = field(default_factory=list)


def _interrupt(_signal: int, frame: Any) -> None:
    raise HangError(f"interrupted in {''.join(traceback.format_stack(frame, limit=12))}")


class Watch:
    """Runs cases in a folder of its own, and notes what must not be.

    It changes the process for good: its current folder, its limits, its output, and hooks.

    Args:
        folder: The folder; what stands in it is removed.
        layer: The layer of the cases.
    """

    def __init__(self, folder: Path, layer: Layer) -> None:
        self._folder = folder.resolve()
        self._layer = layer
        self._seen: list[str] = []
        self._is_running = False
        shutil.rmtree(self._folder, ignore_errors=True)
        for name in ("case", "tmp", "home", "secret"):
            (self._folder / name).mkdir(parents=True)
        self._case = self._folder / "case"
        os.chdir(self._case)
        os.environ |= {"TMPDIR": str(self._folder / "tmp"), "HOME": str(self._folder / "home")}
        os.environ.pop("GITHUB_ACTIONS", None)
        self._output = os.memfd_create("output")
        for descriptor in (1, 2):
            os.dup2(self._output, descriptor)
        # Child processes get limits of their own.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
        signal.signal(signal.SIGALRM, _interrupt)
        signal.signal(signal.SIGPROF, _interrupt)
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_running:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, int):
                return
            if str(os.fsdecode(path)).endswith(_SECRETS):
                self._seen.append(f"{event} {path!r}")
            if not flags & _WRITING:
                return
            paths = [path]
        elif event in _CHANGES:
            paths = list(arguments[: _CHANGES[event]])
        elif event in _PROCESSES:
            # Its own child processes, and libraries that are imported late.
            if "vhlo_tools" not in str(arguments) and event not in ("ctypes.dlopen", "socket.connect"):
                self._seen.append(f"{event} {arguments!r:.300}")
            return
        else:
            return
        for each in paths:
            if isinstance(each, str | bytes | os.PathLike) and self._is_outside(os.fsdecode(each)):
                self._seen.append(f"{event} {each!r:.300}")

    def _is_outside(self, path: str) -> bool:
        # A file without a name is given one by a link to its descriptor.
        if path in ("/dev/null", "", ":memory:") or path.startswith("/proc/self/fd/") or "__pycache__" in path:
            return False
        return not os.path.abspath(path).startswith(str(self._folder))  # noqa: PTH100 - the path may not be UTF-8

    @contextmanager
    def _limited(self, limit: float) -> Iterator[None]:
        timer, seconds = (signal.ITIMER_REAL, _INTERRUPTED) if self._layer.has_children else (signal.ITIMER_PROF, limit)
        signal.setitimer(timer, seconds)
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False
            signal.setitimer(timer, 0)

    def run(self, case: Case) -> Outcome:
        """Run a case."""
        outcome = Outcome()
        for name, data in () if case.in_memory else case.files.items():
            path = self._case / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if case.is_command:
            (self._case / "out").mkdir()
        clock = time.monotonic if self._layer.has_children else time.process_time
        limit = self._limit() + _SECONDS_PER_BYTE * sum(map(len, case.files.values()))
        begun = clock()
        try:
            with self._limited(limit):
                outcome.answered = case.run(self._case)
        except HangError as error:
            outcome.problems.append(("hangs", str(error)))
        except MemoryError:
            outcome.problems.append(("memory", traceback.format_exc()))
        except OSError:
            if not case.files_raise:
                outcome.problems.append(("untyped", traceback.format_exc()))
        except BaseException:
            outcome.problems.append(("untyped", traceback.format_exc()))
        seconds = clock() - begun
        if seconds > limit and not outcome.problems:
            outcome.problems.append(("hangs", f"it took {seconds:.1f} s"))
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10 > MEMORY:
            outcome.problems.append(("memory", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB"))
        outcome.problems += [("files", each) for each in self._seen]
        self._seen.clear()
        outcome.problems += [("output", each) for each in self._said() if case.is_command]
        if not case.in_memory:
            outcome.problems += [("files", each) for each in self._left(case)]
        return outcome

    def _limit(self) -> float:
        """Return the limit of a case: that of a clock is longer on a machine with more to do than it has processors."""
        load = os.getloadavg()[0] / (os.cpu_count() or 1) if self._layer.has_children else 1
        return self._layer.seconds * max(1, load)

    def _said(self) -> Iterator[str]:
        """Yield what is wrong with the output, and forget it."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        size = os.fstat(self._output).st_size
        if not size:
            return
        text = os.pread(self._output, size, 0).decode(errors="replace")
        os.ftruncate(self._output, 0)
        os.lseek(self._output, 0, os.SEEK_SET)
        if "Traceback (most recent call last)" in text:
            yield text[text.index("Traceback (most recent call last)") :][:4000]
        # Text of a program is ASCII, and the rest is made printable.
        for line in text.split("\n"):
            # The sign for what is not UTF-8 may stand for it.
            if not line.isprintable() or ANYWHERE.search(line.replace("\ufffd", "")):
                yield f"not printable, or a command to a runner: {line[:300]!r}"
                return

    def _left(self, case: Case) -> Iterator[str]:
        """Yield what stands where nothing may stand, and remove everything."""
        for path in self._case.rglob("*"):
            name = path.relative_to(self._case).as_posix()
            if path.is_file() and not path.is_symlink() and name in case.files:
                if not name.startswith(("S/", "J")) and path.read_bytes() != case.files[name]:
                    yield f"{name} was changed"
            elif path.is_file() and not name.startswith(
                ("out/", "S/", "J", ".vhlo-cache/") if case.is_command else "J"
            ):
                yield f"{name} was made"
        for path in self._case.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
