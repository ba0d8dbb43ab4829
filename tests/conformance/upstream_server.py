"""A warm process that runs commands for others, each in a fork of its own, so that thousands of starts cost little.

A client, which is a few lines of Python, sends its arguments, its working directory and its standard streams through a
socket, and gets an exit code.
"""

from __future__ import annotations

import gc
import io
import os
import selectors
import shlex
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from vhlo_tools.upstream.guard import Child, start
from vhlo_tools.upstream.optimizer import run_opt
from vhlo_tools.upstream.tool import Streams
from vhlo_tools.upstream.translator import run_translate

#: The environment variable by which clients know the socket.
SOCKET: Final = "VHLO_TOOLS_UPSTREAM_SOCKET"

PROGRAMS: Final = {"stablehlo-opt": run_opt, "stablehlo-translate": run_translate}

# Begun by a shell, for the path of a Python after `#!` may hold no space; to Python, that is a text.
_CLIENT: Final = """#!/bin/sh
''':'
exec {python} -IS "$0" "$@"
'''
import array, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.environ["{variable}"])
    said = "\\0".join([os.getcwd(), {program!r}, *sys.argv[1:]]).encode()
    fds = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
    connection.sendmsg([len(said).to_bytes(4, "big")], fds)
    connection.sendall(said)
    answer = connection.recv(1)
os._exit(answer[0] if answer else 1)
"""


def write_clients(folder: Path, python: str) -> None:
    """Write programs of upstream's names that have the server do the work.

    Args:
        folder: Where to write them.
        python: The interpreter that runs them.
    """
    for program in PROGRAMS:
        path = folder / program
        path.write_text(_CLIENT.format(python=shlex.quote(python), program=program, variable=SOCKET))
        path.chmod(0o755)


def serve(listener: socket.socket) -> None:
    """Run commands until the process is ended.

    Args:
        listener: Where clients connect.
    """
    _warm_up()
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj not in selector.get_map():
                continue  # what came before it was the end of the same command
            if key.fileobj is listener:
                _begin(listener, selector)
            elif isinstance(key.fileobj, socket.socket):
                # The client was ended, as lit ends what takes too long: nobody waits any more for what it began.
                selector.unregister(key.fileobj)
                os.kill(key.data, signal.SIGKILL)
            else:
                selector.unregister(key.fileobj)
                _end(selector, key.fd, *key.data)


def _warm_up() -> None:
    """Do each thing once, so that all is loaded that commands need."""
    kind = "tensor<f32>"
    body = f"%1 = stablehlo.tanh %0 : {kind} return %1 : {kind}"
    function = f"func.func @main(%0: {kind}) -> {kind} {{ {body} }}".encode()
    artifact = io.BytesIO()
    run_opt(["--inline"], Streams(io.BytesIO(function), io.BytesIO(), io.BytesIO()))
    run_translate(["--serialize", "--target=current"], Streams(io.BytesIO(function), artifact, io.BytesIO()))
    run_translate(["--deserialize"], Streams(io.BytesIO(artifact.getvalue()), io.BytesIO(), io.BytesIO()))
    arguments = ["--interpret", "--args=[dense<1.0> : tensor<f32>]"]
    run_translate(arguments, Streams(io.BytesIO(function), io.BytesIO(), io.BytesIO()))
    gc.collect()
    # What is here by now is never freed, and its pages need not be copied for that.
    gc.freeze()


def _begin(listener: socket.socket, selector: selectors.BaseSelector) -> None:
    connection, _ = listener.accept()
    length, fds, _, _ = socket.recv_fds(connection, 4, 3)
    data = b""
    while len(data) < int.from_bytes(length, "big"):
        data += connection.recv(1 << 16)
    folder, program, *arguments = data.decode(errors="surrogateescape").split("\0")

    def run() -> int:
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        os.chdir(folder)
        with (
            open(0, "rb", closefd=False) as stdin,
            open(1, "wb", closefd=False) as stdout,
            open(2, "wb", closefd=False) as stderr,
        ):
            return PROGRAMS[program](arguments, Streams(stdin, stdout, stderr), program=program)

    child = start(program, run)
    for fd in fds[:2]:
        os.close(fd)
    selector.register(connection, selectors.EVENT_READ, child.pid)
    selector.register(os.pidfd_open(child.pid), selectors.EVENT_READ, (child, connection, fds[2]))


def _end(selector: selectors.BaseSelector, pidfd: int, child: Child, connection: socket.socket, stderr: int) -> None:
    code, message = child.judge(os.waitpid(child.pid, 0)[1])
    if connection in selector.get_map():
        selector.unregister(connection)
        with suppress(BrokenPipeError):
            os.write(stderr, message.encode())
            connection.sendall(bytes([code]))
    child.noted.close()
    connection.close()
    os.close(stderr)
    os.close(pidfd)
