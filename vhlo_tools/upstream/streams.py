"""Standard streams and output of a program."""

from __future__ import annotations

import sys
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from vhlo_tools.records import dataclass
from vhlo_tools.upstream.arguments import UsageError
from vhlo_tools.upstream.sources import STANDARD


@dataclass(frozen=True, slots=True)
class Streams:
    stdin: BinaryIO
    stdout: BinaryIO
    stderr: BinaryIO

    @classmethod
    def of_process(cls) -> Streams:
        return cls(sys.stdin.buffer, sys.stdout.buffer, sys.stderr.buffer)

    def say(self, text: str) -> None:
        self.stderr.write(text.encode(errors="surrogateescape"))
        self.stderr.flush()


@dataclass(slots=True)
class Output:
    """The results of a program, which are written at its end."""

    path: str  # ``-`` for stdout
    streams: Streams
    _pieces: list[bytes] = field(default_factory=list)

    def write(self, data: bytes | str) -> None:
        self._pieces.append(data if isinstance(data, bytes) else data.encode(errors="surrogateescape"))

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
