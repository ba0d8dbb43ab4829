"""Edits of the files of a specification that are planned together, and the tasks that remain after them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vhlo_tools.dialect.scaffold.document import Document, Edit
from vhlo_tools.dialect.scaffold.plan import Remaining


class Drafts:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.documents: dict[str, Document] = {}
        self.left: list[Callable[[], Remaining]] = []

    def document(self, file: str, text: str = "") -> Document:
        """Return the same document on each call."""
        if file not in self.documents:
            self.documents[file] = Document(self.folder / file, text)
        return self.documents[file]

    def leave(self, file: str, header: str, entry: str, wanted: str, what: str) -> None:
        """Record a task at a line, whose number is determined after all edits."""

        def remaining() -> Remaining:
            document = self.document(file)
            return Remaining(document.path, document.line_of(document.section(header, entry), wanted), what)

        self.left.append(remaining)

    @property
    def edits(self) -> list[Edit]:
        return [edit for document in self.documents.values() if (edit := document.edit) is not None]
