"""``vhlo spec new-version``: what a new version of StableHLO, and of an op in it, asks for, as edits of text files.

Text is inserted, and everything that is there stays as it is, comments included. (A TOML library would keep the
comments, but move those between two ops away from the op that they belong to.) What comes out is linted before a file
is touched.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory

from vhlo_tools.dialect.description import nearest
from vhlo_tools.dialect.lint import lint
from vhlo_tools.dialect.ops import Op, OpVersion
from vhlo_tools.dialect.rules import file_of, follows
from vhlo_tools.dialect.scaffold_template import TEST
from vhlo_tools.dialect.specification import Specification, load_specification
from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.files import write_atomically
from vhlo_tools.version import Version

__all__ = ["Edit", "NewAttribute", "edits_for", "write_edits"]


@dataclass(frozen=True, slots=True)
class NewAttribute:
    """The change that a new version of an op makes.

    Attributes:
        op: The op.
        name: The attribute that it gains.
        default: The id of the value that older versions mean.
    """

    op: str
    name: str
    default: str

    @property
    def feature(self) -> str:
        """The id of the feature that it is."""
        return f"{self.op}_{self.name}".replace("-", "_")


@dataclass(frozen=True, slots=True)
class Edit:
    """A file to write.

    Attributes:
        path: The file.
        before: What it holds; ``None`` if there is none yet.
        after: What it shall hold.
    """

    path: Path
    before: str | None
    after: str

    def __str__(self) -> str:
        old = "/dev/null" if self.before is None else f"{self.path}"
        lines = unified_diff((self.before or "").splitlines(True), self.after.splitlines(True), old, f"{self.path}")
        return "".join(lines)


def edits_for(
    specs: Specification,
    version: Version,
    change: NewAttribute | None = None,
    *,
    tests: Path | None = None,
    bytecode: int | None = None,
    brought: str | None = None,
    today: date | None = None,
) -> tuple[Edit, ...]:
    """Return what is to be written for ``version``, and for the ``change`` that it makes.

    Args:
        specs: What there is, without a violation.
        version: The new version.
        change: The attribute that it brings, if that is what it is for.
        tests: Where the tests of the change go; by default ``tests/dialect`` beside the folder of ``specs``, or
            ``tests`` in it.
        bytecode: The version of MLIR bytecode that it writes, by default that of the version before.
        brought: What it brings, in a sentence; by default made of the other arguments.
        today: Its date.

    Raises:
        InvalidSpecificationError: If it is there already, or does not come next, or does not fit to what is there.
    """
    folder = Path(str(specs.folder))
    _check_version(specs, version, folder)
    last = specs.versions[-1]
    written = last.bytecode if bytecode is None else bytecode
    sentence = brought or _sentence(last.bytecode, bytecode, change)
    edits = [_appended(folder / "versions.toml", _version_entry(version, today, written, sentence))]
    if change is not None:
        op = specs.op(change.op)
        if op is None:
            raise InvalidSpecificationError(f"there is no op {change.op}{nearest(specs, change.op)}")
        older = op.versions[-1]
        if older.max is not None:
            raise InvalidSpecificationError(f"{older.name} has ended with {older.max}: no version of it can follow")
        if not re.fullmatch(r"[a-z]\w*", change.name, re.ASCII):
            raise InvalidSpecificationError(f"{change.name!r} is no name for an attribute: expected words_like_this")
        if change.name in older.attributes:
            raise InvalidSpecificationError(f"{older.name} has the attribute {change.name} already")
        if specs.default(change.default) is None:
            known = ", ".join(default.id for default in specs.defaults) or "none yet"
            raise InvalidSpecificationError(
                f"there is no default {change.default} in vhlo/defaults.toml: add it there, or take one of {known}"
            )
        if specs.feature(change.feature) is not None:
            raise InvalidSpecificationError(f"there is a feature {change.feature} already")
        newer = OpVersion(
            op.name,
            older.number + 1,
            version,
            None,
            older.operands,
            older.results,
            tuple(sorted((*older.attributes, change.name))),
            older.regions,
        )
        family = folder / file_of(op)
        text = family.read_text(encoding="utf-8")
        edits.append(Edit(family, text, _with_version(text, op, last.version, newer, change)))
        edits.append(_appended(folder / "vhlo" / "features.toml", _feature_entry(version, change)))
        edits.append(_test(folder, tests or _tests_beside(folder), last.version, older, newer, change))
    _check(folder, edits)
    return tuple(edits)


def write_edits(edits: Sequence[Edit]) -> None:
    """Write every file of ``edits``."""
    for edit in edits:
        edit.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(edit.path, [edit.after.encode()], force=edit.before is not None)


def _check_version(specs: Specification, version: Version, folder: Path) -> None:
    if not (folder / "versions.toml").is_file():
        raise InvalidSpecificationError(f"{folder} has no versions.toml, to which a version could be added")
    if (folder.parent / "__init__.py").is_file():
        raise InvalidSpecificationError(f"{folder} belongs to an installed package: give --specs with a copy of it")
    if version in {entry.version for entry in specs.versions}:
        raise InvalidSpecificationError(f"{version} is there already; the newest is {specs.newest}")
    if version.patch or not follows(version, specs.newest.minor_release):
        newest = specs.newest
        raise InvalidSpecificationError(
            f"{version} cannot come next: expected {newest.major}.{newest.minor + 1}.0 or {newest.major + 1}.0.0"
        )
    violations = lint(specs)
    if violations:
        raise InvalidSpecificationError(
            "\n".join(["the specification has violations; mend these first:", *map(str, violations)])
        )


def _check(folder: Path, edits: Sequence[Edit]) -> None:
    """Lint what the edits make of the folder, in a copy."""
    with TemporaryDirectory() as temporary:
        copy = Path(temporary) / "specs"
        shutil.copytree(folder, copy)
        for edit in edits:
            if edit.path.is_relative_to(folder):
                target = copy / edit.path.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(edit.after, encoding="utf-8")
        violations = lint(load_specification(copy))
    if violations:
        raise InvalidSpecificationError("\n".join(["the change would not pass the lint:", *map(str, violations)]))


def _tests_beside(folder: Path) -> Path:
    beside = folder.parent / "tests" / "dialect"
    return beside if beside.is_dir() else folder / "tests"


# Entries


def _sentence(old: int, new: int | None, change: NewAttribute | None) -> str:
    if change is not None:
        return f"`{change.name}` on `{change.op}`."
    if new is not None and new != old:
        return f"MLIR bytecode moves from version {old} to {new}."
    return "Nothing in the dialect."


def _version_entry(version: Version, today: date | None, bytecode: int, brought: str) -> str:
    return (
        f'[[version]]\nversion = "{version}"\ndate = {today or date.today()}\ndated_by = "commit"\n'
        f"bytecode = {bytecode}\nbrought = {_quoted(brought)}\n"
    )


def _quoted(text: str) -> str:
    """Return ``text`` as a string of TOML, which unlike JSON has no pairs of surrogates and no bare DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _feature_entry(version: Version, change: NewAttribute) -> str:
    return (
        f'[[feature]]\nid = "{change.feature}"\ntitle = "{change.name} of {change.op}"\nkind = "attribute"\n'
        f'introduced = "{version}"\nops = ["{change.op}"]\nremedy = "leave {change.name} out"\n'
    )


def _op_version_entry(version: OpVersion) -> str:
    regions = f"regions = {_array(version.regions)}\n" if version.regions else ""
    return (
        f'\n[[op.version]]\nnumber = {version.number}\nmin = "{version.min}"\n'
        f"operands = {_array(version.operands)}\nresults = {_array(version.results)}\n"
        f"attributes = {_array(version.attributes)}\n{regions}"
    )


def _array(values: Sequence[object]) -> str:
    return json.dumps([str(value) for value in values])


def _appended(path: Path, entry: str) -> Edit:
    before = path.read_text(encoding="utf-8") if path.is_file() else None
    return Edit(path, before, f"{before.rstrip()}\n\n{entry}" if before else entry)


# An op in its family file

_HEADER = re.compile(r"\s*\[\[?\s*([\w.-]+)\s*\]?\]")


def _with_version(text: str, op: Op, last: Version, newer: OpVersion, change: NewAttribute) -> str:
    """Return the text of a family with ``newer`` behind the last version of ``op``, which ends with ``last``."""
    lines = text.splitlines(keepends=True)
    sections = _sections_of(lines, op.name)
    versions = [section for section in sections if section[0] == "op.version"]
    # A step may have tables of its own: [op.step.added].
    steps = [section for section in sections if section[0].startswith("op.step")]
    step = (
        f"\n[[op.step]]\nbetween = [{newer.number - 1}, {newer.number}]\n"
        f'feature = "{change.feature}"\nadded = {{ {change.name} = "{change.default}" }}\n'
    )
    if not versions:
        raise InvalidSpecificationError(f"{file_of(op)}: no [[op.version]] of {op.name} was found")
    _, begin, end = versions[-1]
    # From below, so that the places above stay where they are.
    insertions = [((steps or versions)[-1][2], step), (end, _op_version_entry(newer))]
    low = next(index for index in range(begin, end) if re.match(r"\s*min\s*=", lines[index]))
    insertions.append((low + 1, f'max = "{last}"\n'))
    for place, inserted in insertions:
        if not lines[place - 1].endswith("\n"):
            lines[place - 1] += "\n"
        lines.insert(place, inserted)
    return "".join(lines)


def _sections_of(lines: Sequence[str], op: str) -> list[tuple[str, int, int]]:
    """Return the tables of ``op``: their names, and the lines from which to which they go without what follows."""
    starts = [(match[1], index) for index, line in enumerate(lines) if (match := _HEADER.match(line))]
    ends = [index for _, index in starts[1:]] + [len(lines)]
    sections: list[tuple[str, int, int]] = []
    within = False
    for (name, start), end in zip(starts, ends, strict=True):
        body = lines[start:end]
        if name == "op":
            within = any(re.match(rf"\s*name\s*=\s*[\"']{re.escape(op)}[\"']", line) for line in body)
        if within:
            sections.append((name, start, start + _length(body)))
    return sections


def _length(body: Sequence[str]) -> int:
    """Return how many lines of a table are its own: comments behind a blank line belong to the next one."""
    own = len(body)
    while own and (not body[own - 1].strip() or body[own - 1].lstrip().startswith("#")):
        own -= 1
    while own < len(body) and body[own].lstrip().startswith("#"):
        own += 1
    return own


def _test(folder: Path, tests: Path, last: Version, older: OpVersion, newer: OpVersion, change: NewAttribute) -> Edit:
    path = tests / f"test_{newer.name.replace('-', '_')}.py"
    if path.exists():
        raise InvalidSpecificationError(f"{path} exists: move it away, or give another folder with --tests")
    text = TEST.substitute(
        op=newer.op,
        older=older.name,
        newer=newer.name,
        before=last,
        version=newer.min,
        attribute=change.name,
        default=change.default,
        feature=change.feature,
        specs=Path(os.path.relpath(folder.resolve(), tests.resolve())).as_posix(),
    )
    return Edit(path, None, text)
