"""The files of torch.export: an uncompressed zip with a graph as JSON and the weights beside it.

Only the directory of the zip and small entries are read, without torch and without pickle. The layout is that of
``torch/csrc/export/pt2_archive_constants.h`` in pytorch/pytorch, below one folder of any name; up to torch 2.7 the
entries stood in no folder and had other names.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vhlo_tools.artifact.storage import Buffer
from vhlo_tools.errors import MalformedArtifactError

if TYPE_CHECKING:
    import zipfile

__all__ = ["TorchExport", "ViewFile", "decode_torch_export", "is_torch_export"]

_MAGIC: Final = b"PK\x03\x04"
# `.data/version` and the like are a few bytes; nothing larger is read.
_LONGEST_TEXT: Final = 64
_ODD: Final = (EOFError, LookupError, NotImplementedError, OSError, OverflowError, RuntimeError, ValueError)
_OLD_PROGRAM: Final = "serialized_exported_program.json"


@dataclass(frozen=True, slots=True)
class TorchExport:
    """What can be told of a torch.export file without torch.

    Attributes:
        archive_version: The version of the layout: of the archive since torch 2.8, of the schema before.
        models: The names of the programs in it; :func:`torch.export.save` writes one, ``model``.
        graph_bytes: The size of their graphs.
        weights: The number of parameters and buffers; unknown up to torch 2.7, which writes them as one entry.
        weight_bytes: Their size.
        constant_bytes: The size of all other tensors and objects.
    """

    archive_version: str
    models: tuple[str, ...]
    graph_bytes: int
    weights: int | None
    weight_bytes: int
    constant_bytes: int


class ViewFile(io.RawIOBase):
    """A view of bytes as a file, of which nothing is copied that is not read."""

    def __init__(self, data: Buffer) -> None:
        self._data = memoryview(data)
        self._at = 0

    def readable(self) -> bool:
        """Return that it is."""
        return True

    def seekable(self) -> bool:
        """Return that it is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._data)}[whence]
        if base + offset < 0:
            raise ValueError(f"there is nothing before the start: {base + offset}")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        """Return the place."""
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill ``buffer`` as far as there are bytes."""
        part = self._data[self._at : self._at + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


def is_torch_export(data: memoryview) -> bool:
    """Tell whether ``data`` is a torch.export file, of which the entries of the zip decide."""
    if bytes(data[: len(_MAGIC)]) != _MAGIC:
        return False
    try:
        with _opened(data) as archive:
            return _folder_of(archive.namelist()) is not None
    except MalformedArtifactError:
        return False


def decode_torch_export(data: Buffer) -> TorchExport:
    """Read what a torch.export file holds.

    Raises:
        MalformedArtifactError: If it is not one, or is damaged.
    """
    with _opened(memoryview(data)) as archive:
        return _described(archive)


@contextmanager
def _opened(data: memoryview) -> Iterator[zipfile.ZipFile]:
    # Not at the top: hardly anything that is looked at is a zip.
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(io.BufferedReader(ViewFile(data))) as archive:
            yield archive
    except MalformedArtifactError:
        raise
    # What it raises of a directory that contradicts itself, or of an entry.
    except (zipfile.BadZipFile, zlib.error, struct.error, *_ODD) as error:
        raise MalformedArtifactError(f"a zip is damaged: {error}", section="zip") from error


def _folder_of(names: list[str]) -> str | None:
    """Return the folder that everything stands in, ``""`` for none, or ``None`` if this is no torch.export file."""
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
        raise MalformedArtifactError("a zip without the entries of a torch.export file is none", section="zip")
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
    """Return the sizes of what stands in a folder, but for names with an ending that does not count."""
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
    with archive.open(entry) as file:
        return file.read(_LONGEST_TEXT).decode("utf-8", "backslashreplace").strip()
