"""Cache folder of this package for the user, and a set of digests in it."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from vhlo_tools.records import dataclass
from vhlo_tools.system import BINARY, NO_BLOCKING, NO_LINKS

#: The variable with which nothing is kept.
NO_CACHE: Final = "VHLO_TOOLS_NO_CACHE"

# Of SHA-256.
_SIZE: Final = 32

# A set that has grown beyond this, in bytes, keeps its newer half.
_LARGEST: Final = 1 << 20

# Whether files have owners, and are opened in a folder that is open.
_KEEPS_OTHERS_OUT: Final = hasattr(os, "geteuid") and os.open in os.supports_dir_fd

_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """Return ``$VHLO_TOOLS_CACHE``, or a folder in the user's cache folder; ``RuntimeError`` without a home."""
    if chosen := os.environ.get("VHLO_TOOLS_CACHE"):
        return Path(chosen).absolute()
    if Path(os.environ.get("XDG_CACHE_HOME", "")).is_absolute():
        return Path(os.environ["XDG_CACHE_HOME"], "vhlo-tools")
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "vhlo-tools"


@dataclass(frozen=True, slots=True)
class DigestSet:
    """A set of SHA-256 digests in a file, for all processes of the user.

    It is and stays empty where another user could write to the file or its folder, where the system does not say who
    could, as on Windows, or without a file. Digests added at once by several processes may be lost; none is made up.
    """

    folder: Path
    name: str

    def __contains__(self, digest: bytes) -> bool:
        with suppress(OSError), self._opened() as folder, self._file(folder, os.O_RDONLY) as file:
            data = _read(file)
            return digest in {data[at : at + _SIZE] for at in range(0, len(data) - _SIZE + 1, _SIZE)}
        return False

    def add(self, digest: bytes) -> None:
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opened() as folder:
                with self._file(folder, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as file:
                    os.write(file, digest)
                    size = os.fstat(file).st_size
                if size > _LARGEST or size % _SIZE:
                    self._halve(folder)

    def _halve(self, folder: int) -> None:
        """Keep the newer half of the digests, or none if one was written in part."""
        with self._file(folder, os.O_RDONLY) as file:
            data = _read(file)
        other = f".{self.name}-{os.getpid()}"
        with self._file(folder, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, other) as file:
            if len(data) % _SIZE == 0:
                os.write(file, data[len(data) // _SIZE // 2 * _SIZE :])
        os.replace(other, self.name, src_dir_fd=folder, dst_dir_fd=folder)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Open the folder, so that it cannot be exchanged for another one afterwards."""
        if not _KEEPS_OTHERS_OUT:
            raise PermissionError("this system does not say who could write it")
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | BINARY)
        try:
            _refuse_of_others(folder)
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _file(self, folder: int, flags: int, name: str = "") -> Iterator[int]:
        safe = NO_LINKS | NO_BLOCKING | BINARY
        file = os.open(name or self.name, flags | safe, 0o600, dir_fd=folder)
        try:
            _refuse_of_others(file)
            yield file
        finally:
            os.close(file)


def _refuse_of_others(descriptor: int) -> None:
    """Raise ``PermissionError`` if somebody else owns, or may write, the open file."""
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_MAY_WRITE:
        raise PermissionError("another user could write it")


def _read(file: int) -> bytes:
    # More than may be there is read of no file, such as one that somebody replaced by a larger one.
    return os.read(file, 2 * _LARGEST)
