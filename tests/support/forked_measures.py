"""What a command costs on a file: seconds, and memory at the most, in a fork of a process that has imported all."""

from __future__ import annotations

import json
import os
import resource
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Final, NamedTuple

from vhlo_tools.bytecode import decode
from vhlo_tools.cli.main import main
from vhlo_tools.errors import MalformedArtifactError

_OLD: Final = "1.4.0"


class Cost(NamedTuple):
    """What a command took."""

    seconds: float  # of processor time
    memory: int  # bytes at the most, beyond those of the process that was forked
    code: int  # its exit code; below zero the signal that ended it
    said: str  # the last line that it wrote to stderr


def cost(arguments: list[str], *, seconds: int = 120, memory: int = 4 << 30) -> Cost:
    """Run a command of ``vhlo`` in a fork of this process, with a limit of its time and of its memory."""
    read, write = os.pipe()
    process = os.fork()
    if not process:
        code = 1
        try:
            os.close(read)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            Path("/proc/self/clear_refs").write_text("5")
            before = _peak()
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            said = os.memfd_create("said")
            os.dup2(said, 2)
            begun = time.process_time()
            try:
                code = main(arguments)
            finally:
                taken = time.process_time() - begun
                lines = Path(f"/proc/self/fd/{said}").read_text(errors="replace").splitlines()
                found = [taken, _peak() - before, code, (lines or [""])[-1][:200]]
                os.write(write, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as reply:
        held = reply.read()
    _, status = os.waitpid(process, 0)
    return Cost(*json.loads(held)) if held else Cost(float(seconds), memory, os.waitstatus_to_exitcode(status), "")


def _peak() -> int:
    held = Path("/proc/self/status").read_text()
    return int(held.split("VmHWM:")[1].split()[0]) << 10


#: The arguments of each command that is measured, on a file.
COMMANDS: Final[dict[str, Callable[[Path], list[str]]]] = {
    "inspect": lambda path: ["inspect", f"{path}"],
    "json": lambda path: ["inspect", f"{path}", "--output-format", "json"],
    "check": lambda path: ["check", f"{path}", "--no-cache", "--target", _OLD],
    "report": lambda path: ["report", f"{path}", "-o", f"{path}.html", "--force"],
    "retarget": lambda path: ["retarget", f"{path}", "--target", _OLD, "-o", f"{path}.old", "--force"],
    "diff": lambda path: ["diff", f"{path}", f"{path}"],
    "aliases": lambda path: ["alias", "show", f"{path}"],
    "constants": lambda path: ["constants", "list", f"{path}"],
    "extern": lambda path: ["constants", "externalize", f"{path}", "-o", f"{path}.out", "--force", "--min-size", "1"],
    "strip": lambda path: ["retarget", "--strip-debug-info", f"{path}", "-o", f"{path}.out", "--force"],
    "graph": lambda path: ["report", f"{path}", "--format", "dot", "--max-nodes", "0"],
    "status": lambda path: ["store", "status", f"{path}"],
}


def import_commands() -> None:
    """Import what the commands import, on a file that has nothing, so that a fork begins with it."""
    from support.hostile_shapes import SHAPES

    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stdout(TextIOWrapper(BytesIO())),
        redirect_stderr(StringIO()),
    ):
        path = Path(folder, "small.mlirbc")
        path.write_bytes(SHAPES["ops"](100))
        for command in COMMANDS.values():
            main(command(path))


def print_peaks(shapes: list[str], size: int) -> None:
    """Print, as JSON, the size of each file and the memory that decoding every part takes, each in a fork."""
    from support.hostile_shapes import SHAPES

    found = {}
    for shape in shapes:
        data = SHAPES[shape](size)
        read, write = os.pipe()
        if not os.fork():
            try:
                Path("/proc/self/clear_refs").write_text("5")
                before = _peak()
                with suppress(MalformedArtifactError):
                    decode(data).load()
                os.write(write, json.dumps([len(data), _peak() - before]).encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as reply:
            found[shape] = json.loads(reply.read())
        os.wait()
    print(json.dumps(found))
