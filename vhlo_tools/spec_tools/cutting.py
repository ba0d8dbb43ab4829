"""Truncate the specification to an older version, to test libraries newer than the data.

Entries that came later are left out, and entries that have ended since are current again. Everything else is copied:
files without versions of VHLO (``sdy/``, explanations) as they are, and of files with versions the head
comment; comments between entries are dropped with the layout of the text.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Any, Final, TypeAlias

from vhlo_tools.errors import InvalidSpecificationError, UnknownTargetError
from vhlo_tools.records import dataclass
from vhlo_tools.spec import files_in, load_specification, read_entries
from vhlo_tools.spec_tools.linting import RELEASED, baseline_of, baseline_text
from vhlo_tools.spec_tools.toml_editing import document_text
from vhlo_tools.version import Version

_Entry: TypeAlias = dict[str, Any]


def cut(folder: Path, version: Version, destination: Path) -> Path:
    """Write the specification as of ``version``; ``destination`` must not exist, and appears complete or not at all.

    Releases, promises, steps, constraints, features and defaults of later entries go with them. A baseline
    (``released.json``) becomes that of the result itself.
    """
    known = [entry.version for entry in load_specification(folder).versions]
    if version.minor_release not in known:
        raise UnknownTargetError(
            f"{version} is not a version of the specification: expected one from {known[0]} to {known[-1]}"
        )
    if destination.exists():
        raise InvalidSpecificationError(f"{destination} already exists: name a folder that does not")
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=f".{destination.name}-") as temporary:
        made = Path(temporary) / "specs"
        shutil.copytree(folder, made)
        _Truncator(version.minor_release).truncate_files(made)
        if (made / RELEASED).is_file():
            baseline = baseline_of(load_specification(made))
            (made / RELEASED).write_text(baseline_text(baseline), encoding="utf-8")
        made.rename(destination)
    return destination


@dataclass(slots=True)
class _Truncator:
    """Truncate files at a version, and remember the names that later files may still use."""

    at: Version
    ops: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    features: set[str] = field(default_factory=set)
    releases: set[str] = field(default_factory=set)  # ``jaxlib==0.8.3``
    jax: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)  # features and defaults that the remaining steps and constraints use

    def truncate_files(self, specs: Path) -> None:
        for name, table, change in _FILES:
            for file in files_in(name, specs) if table == "op" else [name]:
                path = specs / file
                if path.is_file():
                    entries = [change(self, entry) for entry in read_entries(file, table, specs)]
                    left = [entry for entry in entries if entry is not None]
                    head = _head(path.read_text(encoding="utf-8"))
                    path.unlink()
                    if left:
                        path.write_text(head + document_text(table, left), encoding="utf-8")

    def has(self, text: str | None) -> bool:
        """An entry without a version always existed."""
        return text is None or Version(text).minor_release <= self.at

    def without_end(self, entry: _Entry, *keys: str) -> _Entry:
        return {key: value for key, value in entry.items() if key not in keys or Version(value) < self.at}

    def release(self, entry: _Entry) -> _Entry | None:
        if not self.has(entry["stablehlo"]):
            return None
        self.releases.add(f"{entry['package']}=={entry['release']}")
        return entry

    def jax_release(self, entry: _Entry) -> _Entry | None:
        if f"jaxlib=={entry.get('jaxlib', entry['release'])}" not in self.releases:
            return None
        self.jax.add(entry["release"])
        return entry

    def jax_part(self, entry: _Entry) -> _Entry | None:
        if entry.get("since", next(iter(self.jax), None)) not in self.jax:
            return None
        left = {key: value for key, value in entry.items() if key != "until" or value in self.jax}
        return left if {"since", "until"} & left.keys() else None

    def spelling(self, entry: _Entry) -> _Entry | None:
        if not self.has(entry.get("min")):
            return None
        self.names.add(entry["name"])
        return self.without_end(entry, "max", "last_read")

    def code(self, entry: _Entry) -> _Entry | None:
        """A type or attribute of MLIR itself, with the encodings that are old enough."""
        left = [each for each in entry["encoding"] if self.has(each.get("since"))]
        return {**entry, "encoding": left} if left else None

    def dialect(self, entry: _Entry) -> _Entry | None:
        """A dialect beside VHLO, with the codes that are old enough."""
        tables: _Entry = {
            key: [self.without_end(row, "last_read") for row in entry[key] if self.has(row.get("since"))]
            for key in ("attributes", "types")
            if key in entry
        }
        return {**entry, **tables} if self.has(entry["since"]) else None

    def enum(self, entry: _Entry) -> _Entry | None:
        if not self.has(entry["min"]):
            return None
        self.names.add(entry["name"])
        cases = [case for case in entry["cases"] if self.has(case.get("min"))]
        return {**self.without_end(entry, "max"), "cases": cases}

    def op(self, entry: _Entry) -> _Entry | None:
        versions = [self.op_version(each) for each in entry["version"] if self.has(each["min"])]
        if not versions:
            return None
        self.ops.add(entry["name"])
        numbers = {each["number"] for each in versions}
        steps = [each for each in entry.get("step", ()) if numbers.issuperset(each["between"])]
        constraints = [
            {**each, "versions": [number for number in each["versions"] if number in numbers]}
            for each in entry.get("constraint", ())
            if self.has(each["since"]) and numbers.intersection(each["versions"])
        ]
        for each in (*steps, *constraints):
            named = [each.get("feature"), *each.get("added", {}).values(), *each.get("removed", {}).values()]
            self.used.update(filter(None, named))
        tables = {"version": versions, "step": steps, "constraint": constraints}
        return {"name": entry["name"], **{key: value for key, value in tables.items() if value}}

    def op_version(self, entry: _Entry) -> _Entry:
        """An op version without its end; where it becomes current, the library also knows it again."""
        begun = self.without_end(entry, "max")
        return begun if "max" in begun else {key: value for key, value in begun.items() if key != "forgotten"}

    def feature(self, entry: _Entry) -> _Entry | None:
        if not self.has(entry["introduced"]):
            return None
        if entry["kind"] == "constraint" and entry["id"] not in self.used:
            return None
        self.features.add(entry["id"])
        return entry


#: The files, or the folder of those of ops, with their table and what becomes of an entry. Ops come after what they
#: name, and before what they, and features, are named by.
_FILES: Final[tuple[tuple[str, str, Callable[[_Truncator, _Entry], _Entry | None]], ...]] = (
    ("versions.toml", "version", lambda to, entry: entry if to.has(entry["version"]) else None),
    ("releases.toml", "release", _Truncator.release),
    ("promises.toml", "promise", lambda to, entry: entry if to.has(entry.get("since")) else None),
    ("jax_export/releases.toml", "release", _Truncator.jax_release),
    ("jax_export/parts.toml", "part", _Truncator.jax_part),
    ("builtin/types.toml", "type", _Truncator.code),
    ("builtin/attributes.toml", "attribute", _Truncator.code),
    ("beside.toml", "dialect", _Truncator.dialect),
    ("vhlo/types.toml", "type", _Truncator.spelling),
    ("vhlo/attributes.toml", "attribute", _Truncator.spelling),
    ("vhlo/enums.toml", "enum", _Truncator.enum),
    ("vhlo/ops", "op", _Truncator.op),
    ("vhlo/features.toml", "feature", _Truncator.feature),
    ("vhlo/verifiers.toml", "verifier", lambda to, entry: entry if to.has(entry["introduced"]) else None),
    ("vhlo/defaults.toml", "default", lambda to, entry: entry if entry["id"] in to.used else None),
    (
        "vhlo/expansions_confirmed.toml",
        "confirmation",
        lambda to, entry: entry if entry["feature"] in to.features else None,
    ),
)


def _head(text: str) -> str:
    lines = text.splitlines(keepends=True)
    count = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    is_apart = count < len(lines) and not lines[count].strip()
    return "".join(lines[:count]) + "\n" if count and is_apart else ""
