"""Runs `vhlo opt` and `vhlo translate` in this process."""

from __future__ import annotations

import io
from dataclasses import dataclass

from vhlo_tools.upstream.optimizer import run_opt
from vhlo_tools.upstream.tool import Streams
from vhlo_tools.upstream.translator import run_translate


@dataclass(frozen=True)
class Ran:
    """What came of a command."""

    code: int
    raw: bytes
    error: str

    @property
    def text(self) -> str:
        return self.raw.decode()


def opt(*arguments: str, text: str | bytes = "") -> Ran:
    """Run `vhlo opt` with a text on stdin."""
    return _ran(run_opt, arguments, text)


def translate(*arguments: str, text: str | bytes = "") -> Ran:
    """Run `vhlo translate` with a text on stdin."""
    return _ran(run_translate, arguments, text)


def _ran(program: object, arguments: tuple[str, ...], text: str | bytes) -> Ran:
    stdin = io.BytesIO(text.encode() if isinstance(text, str) else text)
    streams = Streams(stdin, io.BytesIO(), io.BytesIO())
    assert callable(program)
    code = program(arguments, streams)
    assert isinstance(streams.stdout, io.BytesIO)
    assert isinstance(streams.stderr, io.BytesIO)
    return Ran(code, streams.stdout.getvalue(), streams.stderr.getvalue().decode())
