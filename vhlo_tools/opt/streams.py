"""What a program reads and writes."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from vhlo_tools.opt.arguments import UsageError
from vhlo_tools.opt.sources import STANDARD

__all__ = ["Output", "Streams"]


@dataclass(frozen=True, slots=True)
class Streams:
    """The standard streams of a program.

    Attributes:
        stdin: What it reads.
        stdout: Where results go.
        stderr: Where it says what is wrong.
    """

    stdin: BinaryIO
    stdout: BinaryIO
    stderr: BinaryIO

    @classmethod
    def of_process(cls) -> Streams:
        """Return those of this process."""
        return cls(sys.stdin.buffer, sys.stdout.buffer, sys.stderr.buffer)

    def say(self, text: str) -> None:
        """Write to stderr, at once."""
        self.stderr.write(text.encode(errors="surrogateescape"))
        self.stderr.flush()


@dataclass(slots=True)
class Output:
    """The results of a program, which are written when it is done.

    Attributes:
        path: The file that they go to, or ``-`` for stdout.
        streams: The standard streams.
    """

    path: str
    streams: Streams
    _pieces: list[bytes] = field(default_factory=list)

    def write(self, data: bytes | str) -> None:
        """Add to the results."""
        self._pieces.append(data if isinstance(data, bytes) else data.encode(errors="surrogateescape"))

    @property
    def data(self) -> bytes:
        """All results so far."""
        return b"".join(self._pieces)

    def finish(self, *, is_good: bool) -> None:
        """Write all of it: to a file only if all went well, to stdout what there is.

        Raises:
            UsageError: If it cannot be written to the file.
            OSError: If it cannot be written to stdout.
        """
        if self.path == STANDARD:
            self.streams.stdout.write(self.data)
            self.streams.stdout.flush()
        elif is_good:
            # Here and there, what few runs need is imported where it is needed: each start would wait for it.
            from vhlo_tools.files import write_atomically

            try:
                write_atomically(Path(self.path), self._pieces, force=True)
            except OSError as error:
                raise UsageError(f"cannot open output file '{self.path}': {error.strerror}") from error
