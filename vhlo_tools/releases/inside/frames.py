"""Requests and answers on the standard streams of a process that serves them.

A request is a line of JSON, ``{"do": name, "options": {...}, "parts": [length, ...]}``, and then the bytes of its
parts; an answer the same with ``value``, or ``error`` and ``step``. Output of libraries goes to standard error.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

#: Ends the whole group of processes when nobody is left who could ask, even if it is at work and holds Python's lock.
WATCH = """
import os, select, signal
asked = select.poll()
asked.register(0, 0)
asked.poll()
os.killpg(os.getpgrp(), signal.SIGKILL)
"""


class Refusal(Exception):  # noqa: N818 - it is an answer
    """The message with which a release refused something, and the step."""

    def __init__(self, step: str, words: str) -> None:
        super().__init__(words)
        self.step = step


def serve(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Answer requests until the standard input ends, by functions that return a value and a list of bytes.

    The argument of the process is the limit of its data in bytes, which a program could otherwise exhaust.
    """
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    end_with_caller()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    while True:
        line = requests.readline()
        if not line:
            return
        request = json.loads(line)
        parts = [requests.read(length) for length in request["parts"]]
        found = []
        try:
            value, found = functions[request["do"]](*parts, **request["options"])
            said = {"value": value}
        except Refusal as refusal:
            said = {"error": str(refusal), "step": refusal.step}
        except MemoryError:
            said = {"error": "out of memory", "step": request["do"]}
        except Exception as error:  # what a release raises differs
            said = {"error": f"{type(error).__name__}: {error}", "step": request["do"]}
        sys.stderr.flush()
        said["parts"] = [len(part) for part in found]
        answers.write(json.dumps(said).encode() + b"\n")
        for part in found:
            answers.write(part)
        answers.flush()


def end_with_caller() -> None:
    """End this process with its caller, however that ends."""
    if os.getpgrp() == os.getpid():
        silent = subprocess.DEVNULL
        subprocess.Popen([sys.executable, "-I", "-S", "-c", WATCH], stdout=silent, stderr=silent)


def words_of(error: BaseException) -> str:
    """Return the message of an exception, or of its cause: old bindings wrap it in a SystemError."""
    return str(error.__cause__ or error) or type(error).__name__
