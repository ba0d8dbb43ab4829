"""The baseline: known findings, so that only new ones fail.

Findings are compared by :class:`Identity`, which excludes lines and positions, and by their number. If there are more
findings than known ones, the last of them are considered new.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Final

from vhlo_tools.documents import read_json
from vhlo_tools.errors import SettingsError
from vhlo_tools.files import write_atomically
from vhlo_tools.findings import Finding
from vhlo_tools.mapping import open_regular
from vhlo_tools.report import Identity, Question, identity_of

__all__ = ["Baseline"]

_FORMAT: Final = 1
_FIELDS: Final = tuple(field.name for field in fields(Identity))
_REQUIRED: Final = ("file", "target", "feature")


class Baseline:
    """A file of known findings, and the findings seen in this run.

    Args:
        path: The file. Paths of programs in it are relative to its folder.
        known: The number of known findings by identity.
    """

    def __init__(self, path: Path, known: Counter[Identity] | None = None) -> None:
        self.path = path
        self._known = known or Counter[Identity]()
        self._seen: Counter[Identity] = Counter()
        self._asked: set[tuple[str, str]] = set()

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """Return the baseline in a file.

        Raises:
            SettingsError: If it is missing, or is not a baseline.
        """
        try:
            with open_regular(path) as file:
                document = read_json(file.read())
        except FileNotFoundError as error:
            raise SettingsError(f"{path}: the baseline does not exist: --update-baseline writes it") from error
        except OSError as error:
            raise SettingsError(f"{path}: {error.strerror or error}") from error
        except ValueError as error:
            raise SettingsError(f"{path} is not a baseline: expected JSON: {error}") from error
        return cls(path, _entries(document, path))

    def split(self, file: str, question: Question, findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
        """Return the findings of a program that are new, and those that are known; notes are always new.

        Args:
            file: The path of the program, relative to the working directory.
            question: The question.
            findings: All findings.
        """
        name = os.path.relpath(file, self.path.parent).replace(os.sep, "/")
        self._asked.add((name, question.spelling))
        new, known = [], []
        for finding in findings:
            if finding.level == "note":
                new.append(finding)
                continue
            identity = identity_of(name, question, finding)
            free = max(self._known[identity] - self._seen[identity], 0)
            self._seen[identity] += finding.count
            if free:
                known.append(replace(finding, count=min(finding.count, free)))
            if finding.count > free:
                new.append(replace(finding, count=finding.count - free))
        return new, known

    def stale(self) -> list[tuple[Identity, int]]:
        """Return the known findings that were not seen, with their numbers, of evaluated files and of deleted files."""
        return [
            (identity, count - self._seen[identity])
            for identity, count in sorted(self._known.items())
            if count > self._seen[identity] and not self._is_kept(identity)
        ]

    def write(self) -> None:
        """Write the findings seen in this run, and known findings of files and targets that were not evaluated.

        Raises:
            OSError: If the file cannot be written; it is then unchanged.
        """
        kept = {identity: count for identity, count in self._known.items() if self._is_kept(identity)}
        rows = [
            json.dumps({**{key: value for key, value in asdict(identity).items() if value}, "count": count})
            for identity, count in sorted({**kept, **self._seen}.items())
        ]
        # One finding per line, so that line-based differences of baselines show findings.
        listed = "[\n" + ",\n".join(f"    {row}" for row in rows) + "\n  ]" if rows else "[]"
        text = f'{{\n  "format": {_FORMAT},\n  "findings": {listed}\n}}\n'
        write_atomically(self.path, [text.encode()], force=True)

    def _is_kept(self, identity: Identity) -> bool:
        if (identity.file, identity.target) in self._asked:
            return False
        return (self.path.parent / identity.file).exists()


def _entries(document: Any, path: Path) -> Counter[Identity]:
    if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
        raise SettingsError(f'{path} is not a baseline: expected an object with "format" and "findings"')
    if document.get("format") != _FORMAT:
        raise SettingsError(f"{path}: expected a baseline of format {_FORMAT}, found {document.get('format')!r}")
    known: Counter[Identity] = Counter()
    for index, entry in enumerate(document["findings"]):
        identity, count = _entry(entry, f"{path}: findings[{index}]")
        # A merge of two branches may leave an entry twice.
        known[identity] = max(known[identity], count)
    return known


def _entry(entry: Any, place: str) -> tuple[Identity, int]:
    problem = next(_problems(entry), None)
    if problem:
        raise SettingsError(f"{place}: {problem}; move it away, and write it again with --update-baseline")
    return Identity(**{key: value for key, value in entry.items() if key != "count"}), entry["count"]


def _problems(entry: Any) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield "expected an object"
        return
    yield from (f"{key} is missing" for key in (*_REQUIRED, "count") if key not in entry)
    for key, value in entry.items():
        if key == "count":
            if type(value) is not int or value < 1:
                yield f"expected a count of 1 or more, found {value!r:.40}"
        elif key not in _FIELDS:
            yield f"{key} is unknown: expected {', '.join(_FIELDS)} and count"
        elif not isinstance(value, str):
            yield f"expected a string as {key}, found {value!r:.40}"
