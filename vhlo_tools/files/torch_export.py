"""Reader of torch.export files: an uncompressed zip with a graph as JSON, and the weights.

Only the directory of the zip and small entries are read, without torch and without pickle. The layout is that of
``torch/csrc/export/pt2_archive_constants.h`` in pytorch/pytorch, below one folder of any name; up to torch 2.7 the
entries were in no folder and had other names.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files.mapping import view
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    import zipfile

    from vhlo_tools.files.mapping import View
    from vhlo_tools.files.recognition import Buffer

_MAGIC: Final = b"PK\x03\x04"
# The directory is the longest piece that is read: a model has an entry for each parameter.
_LARGEST_DIRECTORY: Final = 1 << 23
# `.data/version` and the like have a few bytes; longer entries are truncated.
_LONGEST_TEXT: Final = 64
_ODD: Final = (EOFError, LookupError, NotImplementedError, OSError, OverflowError, RuntimeError, ValueError)
_OLD_PROGRAM: Final = "serialized_exported_program.json"


@dataclass(frozen=True, slots=True)
class TorchExport:
    archive_version: str  # of the archive since torch 2.8, of the schema before
    models: tuple[str, ...]  # names of programs; torch.export.save writes one, ``model``
    graph_bytes: int
    weights: int | None  # number of parameters and buffers; None up to torch 2.7: one entry
    weight_bytes: int
    constant_bytes: int  # of all other tensors and objects


class ViewFile(io.RawIOBase):
    """A view of bytes as a file; only the bytes that are read are copied."""

    def __init__(self, data: Buffer) -> None:
        self._data = view(data)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._data)}[whence]
        if base + offset < 0:
            raise ValueError(f"the offset is before the start: {base + offset}")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        part = self._data[self._at : self._at + len(buffer)]
        buffer[: len(part)] = bytes(part)
        self._at += len(part)
        return len(part)


class _TooLargeError(MalformedArtifactError):
    pass


class _Pieces(io.BufferedReader):
    """A file of which no piece is larger than a directory may be, whatever its records say."""

    def __init__(self, data: View) -> None:
        super().__init__(ViewFile(data))
        # Memory is taken for as much as is asked for.
        self._most = min(_LARGEST_DIRECTORY + 1, len(data))

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(self._most if size is None or not 0 <= size < self._most else size)
        if len(found) > _LARGEST_DIRECTORY:
            raise _TooLargeError(
                f"a zip has a directory of more than {_LARGEST_DIRECTORY} bytes, which is the limit, for some 100,000 "
                "entries",
                section="zip",
            )
        return found


def is_torch_export(data: View) -> bool:
    """Judge by the entries of the zip; unreasonably many of them are an error."""
    if bytes(data[: len(_MAGIC)]) != _MAGIC:
        return False
    try:
        with _opened(data) as archive:
            return _folder_of(archive.namelist()) is not None
    except _TooLargeError:
        raise
    except MalformedArtifactError:
        return False


def decode_torch_export(data: Buffer) -> TorchExport:
    with _opened(view(data)) as archive:
        return _described(archive)


@contextmanager
def _opened(data: View) -> Iterator[zipfile.ZipFile]:
    # Imported here because hardly any input is a zip.
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(_Pieces(data)) as archive:
            yield archive
    except MalformedArtifactError:
        raise
    # Raised by zipfile for an inconsistent directory or a damaged entry.
    except (zipfile.BadZipFile, zlib.error, struct.error, *_ODD) as error:
        raise MalformedArtifactError(f"a zip is damaged: {error}", section="zip") from error


def _folder_of(names: list[str]) -> str | None:
    """Return the folder of all entries, ``""`` for none, or ``None`` if this is no torch.export file."""
    known = set(names)
    if _OLD_PROGRAM in known:
        return ""
    for name in names:
        folder, slash, rest = name.partition("/")
        if slash and rest == "archive_format":
            inside = f"{folder}/models/"
            return f"{folder}/" if any(each.startswith(inside) and each.endswith(".json") for each in names) else None
    return None


def _described(archive: zipfile.ZipFile) -> TorchExport:
    entries = archive.infolist()
    root = _folder_of(archive.namelist())
    if root is None:
        raise MalformedArtifactError("the zip lacks the entries of a torch.export file", section="zip")
    if not root:
        sizes = {entry.filename: entry.file_size for entry in entries}
        return TorchExport(
            archive_version=_text(archive, "version"),
            models=("model",),
            graph_bytes=sizes[_OLD_PROGRAM],
            weights=None,
            weight_bytes=sizes.get("serialized_state_dict.pt", 0),
            constant_bytes=sizes.get("serialized_constants.pt", 0),
        )
    models = _inside(entries, f"{root}models/")
    weights = _inside(entries, f"{root}data/weights/", without=".json")
    constants = _inside(entries, f"{root}data/constants/", without=".json")
    return TorchExport(
        archive_version=_text(archive, f"{root}archive_version"),
        models=tuple(name.removesuffix(".json") for name in models),
        graph_bytes=sum(models.values()),
        weights=len(weights),
        weight_bytes=sum(weights.values()),
        constant_bytes=sum(constants.values()),
    )


def _inside(entries: list[zipfile.ZipInfo], folder: str, *, without: str | None = None) -> dict[str, int]:
    """Return the sizes of the entries in a folder by name, except names with the ending ``without``."""
    return {
        entry.filename.removeprefix(folder): entry.file_size
        for entry in entries
        if entry.filename.startswith(folder) and not (without and entry.filename.endswith(without))
    }


def _text(archive: zipfile.ZipFile, name: str) -> str:
    try:
        entry = archive.getinfo(name)
    except KeyError:
        raise MalformedArtifactError(f"a torch.export file lacks {name}", section="zip") from None
    if entry.compress_type not in (0, 8):  # stored, or deflated: of others, zipfile gives more than is asked for
        raise MalformedArtifactError(
            f"{name} is compressed by method {entry.compress_type}: expected a stored or a deflated entry, as torch "
            "writes them",
            offset=entry.header_offset,
            section="zip",
        )
    with archive.open(entry) as file:
        return file.read(_LONGEST_TEXT).decode("utf-8", "backslashreplace").strip()
