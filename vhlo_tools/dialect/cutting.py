"""A specification as it would have been at an older version: what a person had before the next version was added.

What came later is left out, and what has ended since is current again. Everything else is copied: what describes no
version of VHLO (``builtin/``, ``sdy/``, explanations) as it is, and of files with versions the head comment; comments
between entries are dropped with the layout of the text.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final, TypeAlias

from vhlo_tools.dialect.data import files_in, read_entries
from vhlo_tools.dialect.released import RELEASED, baseline_of, baseline_text
from vhlo_tools.dialect.specification import load_specification
from vhlo_tools.dialect.toml_text import document_text
from vhlo_tools.errors import InvalidSpecificationError, UnknownTargetError
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

_Entry: TypeAlias = dict[str, Any]


def cut(folder: Path, version: Version, destination: Path) -> Path:
    """Write the specification in ``folder`` to ``destination`` as it would have been at ``version``.

    Without an entry that begins after ``version``; ranges that end at ``version`` or later have no end. Releases that
    hold newer versions, promises about newer files, steps, constraints, features and defaults of what is left out are
    left out too. Where the folder has a baseline of its last release (``released.json``), that of the result is the
    result itself.

    Args:
        folder: A folder with the layout of ``dialect_specs/``; any file may be missing.
        version: A version of it; its patch number is ignored.
        destination: The folder to be written, which must not exist. It appears complete or not at all.

    Returns:
        ``destination``.

    Raises:
        InvalidSpecificationError: If the folder cannot be read, or ``destination`` exists.
        UnknownTargetError: If the specification has no such version.
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
        _Knife(version.minor_release).cut_files(made)
        if (made / RELEASED).is_file():
            baseline = baseline_of(load_specification(made))
            (made / RELEASED).write_text(baseline_text(baseline), encoding="utf-8")
        made.rename(destination)
    return destination


@dataclass(slots=True)
class _Knife:
    """What cuts the entries of files at a version, and remembers what later files may still name.

    Attributes:
        at: The version.
        ops: The ops that are left.
        names: The types, attributes and enums that are left.
        features: The features that are left.
        releases: The released packages that are left, as ``jaxlib==0.8.3``.
        jax: The releases of jax that are left.
        used: What the steps and constraints that are left use: features, and defaults.
    """

    at: Version
    ops: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    features: set[str] = field(default_factory=set)
    releases: set[str] = field(default_factory=set)
    jax: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)

    def cut_files(self, specs: Path) -> None:
        """Cut every file of a folder; a file of which nothing is left is removed."""
        files = [(file, "op") for file in files_in("vhlo/ops", specs)]
        for file, table in [*_BEFORE_OPS, *files, *_AFTER_OPS]:
            path = specs / file
            if path.is_file():
                change = _CUTS.get(file) or _CUTS[table]
                entries = [change(self, entry) for entry in read_entries(file, table, specs)]
                left = [entry for entry in entries if entry is not None]
                head = _head(path.read_text(encoding="utf-8"))
                path.unlink()
                if left:
                    path.write_text(head + document_text(table, left), encoding="utf-8")

    def has(self, text: str | None) -> bool:
        """Return whether the version ``text`` is there; what has no version always was."""
        return text is None or Version(text).minor_release <= self.at

    def without_end(self, entry: _Entry, *keys: str) -> _Entry:
        """Return ``entry`` without those of its ends that still lay ahead."""
        return {key: value for key, value in entry.items() if key not in keys or Version(value) < self.at}

    def version(self, entry: _Entry) -> _Entry | None:
        """Return an entry of ``versions.toml``, or ``None`` if it came later."""
        return entry if self.has(entry["version"]) else None

    def release(self, entry: _Entry) -> _Entry | None:
        """Return a released package, or ``None`` if it holds a newer version."""
        if not self.has(entry["stablehlo"]):
            return None
        self.releases.add(f"{entry['package']}=={entry['release']}")
        return entry

    def jax_release(self, entry: _Entry) -> _Entry | None:
        """Return a release of jax, or ``None`` if its jaxlib is left out."""
        if f"jaxlib=={entry.get('jaxlib', entry['release'])}" not in self.releases:
            return None
        self.jax.add(entry["release"])
        return entry

    def jax_part(self, entry: _Entry) -> _Entry | None:
        """Return a part of jax.export files, or ``None`` if every release that is left reads it, or none."""
        if entry.get("since", next(iter(self.jax), None)) not in self.jax:
            return None
        left = {key: value for key, value in entry.items() if key != "until" or value in self.jax}
        return left if {"since", "until"} & left.keys() else None

    def promise(self, entry: _Entry) -> _Entry | None:
        """Return a promise, or ``None`` if it is about newer files."""
        return entry if self.has(entry.get("since")) else None

    def spelling(self, entry: _Entry) -> _Entry | None:
        """Return a type or an attribute, or ``None`` if it came later."""
        if not self.has(entry.get("min")):
            return None
        self.names.add(entry["name"])
        return self.without_end(entry, "max", "last_read")

    def enum(self, entry: _Entry) -> _Entry | None:
        """Return an enum with the cases that it had, or ``None`` if it came later."""
        if not self.has(entry["min"]):
            return None
        self.names.add(entry["name"])
        cases = [case for case in entry["cases"] if self.has(case.get("min"))]
        return {**self.without_end(entry, "max"), "cases": cases}

    def op(self, entry: _Entry) -> _Entry | None:
        """Return an op with the versions, steps and constraints that it had, or ``None`` if it came later."""
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
        """Return a version of an op, without its end, and known to the library, if it was current."""
        begun = self.without_end(entry, "max")
        return begun if "max" in begun else {key: value for key, value in begun.items() if key != "forgotten"}

    def feature(self, entry: _Entry) -> _Entry | None:
        """Return a feature, or ``None`` if it came later."""
        if not self.has(entry["introduced"]):
            return None
        if entry["kind"] == "constraint" and entry["id"] not in self.used:
            return None
        self.features.add(entry["id"])
        return entry

    def default(self, entry: _Entry) -> _Entry | None:
        """Return a default, or ``None`` if no step that is left uses it."""
        return entry if entry["id"] in self.used else None

    def confirmation(self, entry: _Entry) -> _Entry | None:
        """Return the record of an expansion that a release read, or ``None`` if its feature came later."""
        return entry if entry["feature"] in self.features else None


_BEFORE_OPS: Final = (
    ("versions.toml", "version"),
    ("releases.toml", "release"),
    ("promises.toml", "promise"),
    ("jax_export/releases.toml", "release"),
    ("jax_export/parts.toml", "part"),
    ("vhlo/types.toml", "type"),
    ("vhlo/attributes.toml", "attribute"),
    ("vhlo/enums.toml", "enum"),
)
# What ops, and features, name.
_AFTER_OPS: Final = (
    ("vhlo/features.toml", "feature"),
    ("vhlo/defaults.toml", "default"),
    ("vhlo/expansions_confirmed.toml", "confirmation"),
)
_CUTS: Final[Mapping[str, Callable[[_Knife, _Entry], _Entry | None]]] = {
    "version": _Knife.version,
    "release": _Knife.release,
    "jax_export/releases.toml": _Knife.jax_release,
    "part": _Knife.jax_part,
    "promise": _Knife.promise,
    "type": _Knife.spelling,
    "attribute": _Knife.spelling,
    "enum": _Knife.enum,
    "op": _Knife.op,
    "feature": _Knife.feature,
    "default": _Knife.default,
    "confirmation": _Knife.confirmation,
}


def _head(text: str) -> str:
    """Return the comment at the head of a file, with the blank line behind it."""
    lines = text.splitlines(keepends=True)
    count = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    is_apart = count < len(lines) and not lines[count].strip()
    return "".join(lines[:count]) + "\n" if count and is_apart else ""
