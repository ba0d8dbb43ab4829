"""The archive of artifacts that released packages wrote; `tests/corpus_tools/make_corpus.py` makes it.

>>> for name, data in corpus_files(): ...
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ARCHIVE = Path(__file__).parents[1] / "artifacts" / "corpus.zip"


@dataclass(frozen=True)
class CorpusFile:
    """What the index says of a file: the attributes are those of `make_corpus.Entry`."""

    file: str
    program: str
    ordinary: bool
    target: str
    bytecode_version: int
    producers: tuple[str, ...]
    sha256: str
    size: int
    read_by_newest: bool

    def __str__(self) -> str:
        return self.file


@cache
def corpus_index() -> tuple[CorpusFile, ...]:
    """Return the index, in the order of the files."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        rows = json.loads(archive.read("index.json"))
    return tuple(CorpusFile(**{**row, "producers": tuple(row["producers"])}) for row in rows)


def read_corpus_file(name: str) -> bytes:
    with zipfile.ZipFile(ARCHIVE) as archive:
        return archive.read(name)


def corpus_files(*, ordinary: bool | None = None) -> Iterator[tuple[str, bytes]]:
    """Return name and contents of all files; of portable artifacts, or of ordinary bytecode, if only one is wanted."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        for entry in corpus_index():
            if ordinary in (None, entry.ordinary):
                yield entry.file, archive.read(entry.file)
