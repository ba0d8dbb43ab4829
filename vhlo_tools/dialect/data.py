"""Where ``dialect_specs/`` is, in a checkout and in an installed wheel, and how its files are read."""

from __future__ import annotations

import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

__all__ = ["dialect_specs", "files_in", "read_entries"]


def dialect_specs() -> Traversable:
    """Return the folder of the data: inside the package in a wheel, beside it in a checkout."""
    package = resources.files("vhlo_tools")
    installed = package.joinpath("dialect_specs")
    if installed.is_dir():
        return installed
    checkout = Path(str(package)).parent / "dialect_specs"
    if checkout.is_dir():
        return checkout
    raise FileNotFoundError("vhlo_tools is installed without its dialect_specs folder; reinstall it")


def files_in(folder: str, specs: Traversable | None = None) -> list[str]:
    """Return the TOML files of ``folder``, a path inside ``dialect_specs/``, as paths inside it, sorted."""
    names = (file.name for file in (specs or dialect_specs()).joinpath(*folder.split("/")).iterdir())
    return sorted(f"{folder}/{name}" for name in names if name.endswith(".toml"))


def read_entries(file: str, table: str, specs: Traversable | None = None) -> list[dict[str, Any]]:
    """Return the entries of the array of tables ``table`` in ``file``.

    Args:
        file: A path inside ``dialect_specs/``.
        table: The name of the array.
        specs: A folder to read in place of ``dialect_specs/``, such as that of a fork.
    """
    document = tomllib.loads((specs or dialect_specs()).joinpath(*file.split("/")).read_text(encoding="utf-8"))
    entries: list[dict[str, Any]] = document[table]
    return entries
