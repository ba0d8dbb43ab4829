"""Checks before and after a version is added."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from vhlo_tools.dialect.linting import lint
from vhlo_tools.dialect.released import RELEASED, read_released
from vhlo_tools.dialect.rules import follows
from vhlo_tools.dialect.specification import load_specification
from vhlo_tools.errors import InvalidSpecificationError

if TYPE_CHECKING:
    from vhlo_tools.dialect.scaffold.document import Edit
    from vhlo_tools.dialect.specification import Specification
    from vhlo_tools.version import Version


def check_version(specs: Specification, version: Version, folder: Path) -> bool:
    """Return whether ``version`` exists and is unreleased (true), or is the next version to add (false)."""
    _check_folder(folder)
    released = read_released(specs.folder)
    is_begun = version == specs.newest and released is not None and str(version) not in released.get("version", {})
    if not is_begun and version in {entry.version for entry in specs.versions}:
        state = "released" if released else f"perhaps released, because there is no {RELEASED}"
        raise InvalidSpecificationError(f"{version} already exists and is {state}; the newest is {specs.newest}")
    newest = specs.newest
    if not is_begun and (version.patch or not follows(version, newest.minor_release)):
        raise InvalidSpecificationError(
            f"{version} cannot be the next version: expected {newest.major}.{newest.minor + 1}.0 or "
            f"{newest.major + 1}.0.0"
        )
    _check_lint(specs)
    return is_begun


def check_editable(specs: Specification) -> None:
    _check_folder(Path(str(specs.folder)))
    _check_lint(specs)


def _check_folder(folder: Path) -> None:
    if not (folder / "versions.toml").is_file():
        raise InvalidSpecificationError(f"{folder} has no versions.toml to add a version to")
    if (folder.parent / "__init__.py").is_file():
        raise InvalidSpecificationError(f"{folder} belongs to an installed package: give --specs with a copy of it")


def _check_lint(specs: Specification) -> None:
    violations = lint(specs)
    if violations:
        raise InvalidSpecificationError(
            "\n".join(["the specification has violations; fix these first:", *map(str, violations)])
        )


def check_edits(folder: Path, edits: Sequence[Edit]) -> None:
    """Lint a copy of the folder with the edits applied."""
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
        raise InvalidSpecificationError("\n".join(["the change would violate the lint rules:", *map(str, violations)]))
