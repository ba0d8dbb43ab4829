"""Large files and objects: read on access, and copied without being held.

A large file is a :class:`FileRange`, of which slices are ranges again, or bytes if they are short. What it is a range
of is a :class:`RangeSource`: a file of this machine here, an object behind a URL in ``vhlo_tools.files``. Files are
not mapped into memory: if another process cuts a mapped file short, the kernel ends the process that reads it, and no
check can prevent this, because the file may shrink after the check. A read from a descriptor instead returns fewer
bytes, which becomes a :class:`~vhlo_tools.errors.MalformedArtifactError`.

To iterate over a constant of gigabytes, use :func:`slices`; to copy one into a file, use :func:`copy`, which lets the
kernel copy the bytes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, overload

from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.system import BINARY, NO_BLOCKING, copy_in_kernel, read_at, wait_for_bytes

if TYPE_CHECKING:
    from io import BufferedReader

_KINDS: Final = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
# Pipes that the caller has opened for this process, such as those of `<(...)` in a shell.
_OPENED: Final = ("/dev/fd/", "/proc/self/fd/")

# Processors hash and compare a piece of this size while it is in their cache.
_SLICE: Final = 1 << 20
#: A slice of up to this size is read at once.
_SHORT: Final = 1 << 16
#: The bytes that are read around a short slice, and kept for the next one.
_WINDOW: Final = 1 << 17


class RangeSource(Protocol):
    """What a :class:`FileRange` reads: bytes of a known number that stay the same, or reading raises an error.

    Threads may share one.
    """

    @property
    def name(self) -> str:
        """Its name in messages."""

    @property
    def size(self) -> int:
        """The number of its bytes."""

    def read(self, start: int, size: int) -> bytes:
        """Return the ``size`` bytes at an offset, which are within it."""

    def near(self, start: int, stop: int) -> bytes | memoryview:
        """Return a short range; what surrounds it may be kept, for it is probably read next."""

    def pieces(self, start: int, stop: int, size: int) -> Iterator[bytes | memoryview]:
        """Yield a range in pieces of ``size`` bytes, of which the last may be shorter."""

    def copy_to(self, start: int, size: int, out: int) -> int:
        """Append a range to the file ``out`` without reading it, as far as possible; return the number of bytes."""


class _OpenFile:
    """A regular file that stays open as long as ranges of it are used."""

    __slots__ = ("_window", "handle", "name", "size")

    def __init__(self, handle: int, name: str) -> None:
        self.handle = os.dup(handle)
        self.name = name
        self.size = os.fstat(handle).st_size
        # The offset and the bytes of the last window: replaced as a whole, so that threads may share the file.
        self._window = (0, b"")

    def read(self, start: int, size: int) -> bytes:
        found = read_at(self.handle, size, start)
        if len(found) < size:
            # Linux reads at most 2 GiB at once, and a signal may end a read early.
            pieces = [found]
            left = size - len(found)
            while left and pieces[-1]:
                pieces.append(read_at(self.handle, left, start + size - left))
                left -= len(pieces[-1])
            if left:
                raise self.cut_short()
            found = b"".join(pieces)
        return found

    def near(self, start: int, stop: int) -> bytes:
        """Return a short range, from the last window if possible."""
        base, window = self._window
        if start < base or stop > base + len(window):
            base, window = start, self.read(start, max(stop - start, min(_WINDOW, self.size - start)))
            self._window = (base, window)
        return window[start - base : stop - base]

    def pieces(self, start: int, stop: int, size: int) -> Iterator[bytes | memoryview]:
        for at in range(start, stop, size):
            yield self.read(at, min(size, stop - at))

    def copy_to(self, start: int, size: int, out: int) -> int:
        """Copy in the kernel, as far as supported; return the number of bytes copied."""
        done = 0
        with suppress(OSError):
            while done < size:
                copied = copy_in_kernel(self.handle, out, size - done, start + done)
                if not copied:
                    break
                done += copied
        return done

    def cut_short(self) -> MalformedArtifactError:
        size = os.fstat(self.handle).st_size
        return MalformedArtifactError(
            f"{self.name} was cut short while it was read: it had {self.size} bytes and now has {size}; read it again "
            f"once it is complete",
            offset=size,
        )

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self.handle)


class FileRange:
    """A range of the bytes of a large file, which are read on access: slices, single bytes, and ``bytes(range)``.

    Reading raises :class:`~vhlo_tools.errors.MalformedArtifactError` if the file has been cut short, and
    :class:`~vhlo_tools.errors.StoreError` if an object has been changed, or cannot be read.
    """

    __slots__ = ("_file", "_start", "_stop")
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(self, file: RangeSource, start: int, stop: int) -> None:
        self._file = file
        self._start = start
        self._stop = stop

    def __len__(self) -> int:
        return self._stop - self._start

    @overload
    def __getitem__(self, key: int) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> View: ...
    def __getitem__(self, key: int | slice) -> int | View:
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step != 1:
                raise ValueError("ranges of files have no slices with steps")
            start, stop = self._start + start, self._start + max(start, stop)
            if stop - start <= _SHORT:
                return memoryview(self._file.near(start, stop))
            return FileRange(self._file, start, stop)
        at = key if key >= 0 else key + len(self)
        if not 0 <= at < len(self):
            raise IndexError(key)
        return self._file.near(self._start + at, self._start + at + 1)[0]

    def __bytes__(self) -> bytes:
        return self._file.read(self._start, len(self))

    def tobytes(self) -> bytes:
        """Return the bytes."""
        return bytes(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, bytes | bytearray | memoryview | FileRange):
            return NotImplemented
        return len(self) == len(other) and all(
            bytes(a) == bytes(b) for a, b in zip(slices(self), slices(other), strict=True)
        )

    def pieces(self, size: int) -> Iterator[bytes | memoryview]:
        """Yield the range in pieces of ``size`` bytes, of which the last may be shorter.

        Raises:
            MalformedArtifactError: If the file has been cut short.
            StoreError: If the object has been changed, or cannot be read.
        """
        return self._file.pieces(self._start, self._stop, size)

    def copy_to(self, out: int) -> int:
        """Append the range to the file ``out`` without reading it, as far as possible; return the number of bytes."""
        return self._file.copy_to(self._start, len(self), out)


#: A piece of a file in memory, or of a large one outside of it.
View = memoryview | FileRange
#: Bytes to be written.
Chunk = bytes | View


def view(data: bytes | bytearray | View) -> View:
    return data if isinstance(data, FileRange | memoryview) else memoryview(data)


def join(chunks: Iterable[Chunk | bytearray]) -> bytes:
    return b"".join([bytes(each) if isinstance(each, FileRange) else each for each in chunks])


def kind_of_file(mode: int) -> str | None:
    """Return the kind of a file that is not regular, such as ``a FIFO``."""
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "of an unknown kind")


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; nothing else is opened, because it may block or never end.

    A pipe that is open in this process already can be named too, such as one of ``<(...)`` in a shell.
    """
    # A FIFO without a writer would block.
    file = os.open(path, os.O_RDONLY | NO_BLOCKING | BINARY)
    try:
        kind = kind_of_file(os.fstat(file).st_mode)
        if kind == "a FIFO" and os.path.abspath(path).startswith(_OPENED):  # noqa: PTH100 - links are not resolved
            kind = None
        if kind is not None:
            if kind == "a folder":
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            raise OSError(errno.EINVAL, f"it is {kind}: expected a regular file", str(path))
        wait_for_bytes(file)
        return os.fdopen(file, "rb")
    except BaseException:
        os.close(file)
        raise


def map_file(path: Path) -> View:
    """Return the contents of a file, which are read on access."""
    with open_regular(path) as file:
        opened = _OpenFile(file.fileno(), str(path))
        return FileRange(opened, 0, opened.size)[:]


def digest_of(data: bytes | bytearray | View) -> bytes:
    """Return SHA-256; large files are read slice by slice."""
    # Imported here because most programs are read without it.
    import hashlib

    if isinstance(data, bytes):
        return hashlib.sha256(data).digest()
    digest = hashlib.sha256()
    for piece in slices(data):
        digest.update(piece)
    return digest.digest()


def slices(data: bytes | bytearray | View) -> Iterator[bytes | memoryview]:
    """Yield ``data`` in slices of one size; those of a file are read one by one."""
    whole = view(data)
    if isinstance(whole, FileRange):
        yield from whole.pieces(_SLICE)
    else:
        for at in range(0, len(whole), _SLICE):
            yield whole[at : at + _SLICE]


def copy(data: Chunk, out: int) -> None:
    """Append ``data`` to the open file ``out``; the kernel copies ranges of a file."""
    done = data.copy_to(out) if isinstance(data, FileRange) else 0
    # The part that the kernel did not copy: on another file system, or on a full disk, where os.write raises.
    for piece in slices(view(data)[done:]):
        rest = piece
        while rest:
            rest = rest[os.write(out, rest) :]
