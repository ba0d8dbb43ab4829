"""Plugins of PJRT as targets: what a plugin says that it reads, asked in a child process.

A plugin is code. It is run only where a user names it, by ``plugin:PATH``, or ``plugin:NAME`` if it is installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from vhlo_tools.errors import UnknownTargetError
from vhlo_tools.printable import printable
from vhlo_tools.version import Version

#: What the name of an engine begins with that is a plugin; its own name or path is behind.
PLUGIN_ENGINE: Final = "pjrt:"

_SECONDS: Final = 120.0
#: What asks it, by ctypes alone.
_ASKING: Final = Path(__file__).parents[1] / "releases" / "inside" / "pjrt.py"
_ENTRY_POINTS: Final = ("jax_plugins", "xla_plugins")
#: The function that makes a library a plugin.
_FUNCTION: Final = b"GetPjrtApi"
_LARGEST: Final = 1 << 32


@cache
def plugin_version(named: str, timeout: float | None = None) -> Version:
    """Return the StableHLO version that a plugin reads, by the path of its library or the name of its package.

    Args:
        named: The path or the name.
        timeout: The most seconds that it may take; two minutes if ``None``.

    Raises:
        UnknownTargetError: If there is none, or it does not say.
    """
    library = plugin_library(named)
    command = [sys.executable, "-I", "-B", str(_ASKING), str(library)]
    seconds = _SECONDS if timeout is None else timeout
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise UnknownTargetError(f"{library}: the plugin does not answer within {seconds:g} s") from None
    said = done.stdout.decode(errors="replace").strip().rpartition("\n")[2]
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        raise UnknownTargetError(f"{library}: it cannot be asked: {printable(words)[:300]}")
    try:
        found: Any = json.loads(said)["stablehlo_current_version"]
        return Version(".".join(str(int(each)) for each in found))
    except (ValueError, KeyError, TypeError):
        raise UnknownTargetError(
            f"{library}: the plugin does not say its StableHLO version: give the version itself"
        ) from None


def plugin_library(named: str) -> Path:
    """Return the library of a plugin, by its path or the name of its package.

    Raises:
        UnknownTargetError: If there is none.
    """
    if os.sep in named or Path(named).is_file():
        if not Path(named).is_file():
            raise UnknownTargetError(f"{named}: no such file: expected the library of a plugin")
        return Path(named).absolute()
    folders = installed_plugins()
    if named not in folders:
        others = f"; installed are {', '.join(sorted(folders))}" if folders else ""
        raise UnknownTargetError(f"no plugin {named!r} is installed: expected its name, or the path of one{others}")
    found = [each for each in sorted(folders[named].glob("*.so")) if _is_plugin(each)]
    if len(found) != 1:
        held = ", ".join(each.name for each in found) or "no library that is a plugin"
        raise UnknownTargetError(f"{folders[named]} has {held}: name the library, as plugin:PATH")
    return found[0]


def installed_plugins() -> dict[str, Path]:
    """Return the folders of the packages of installed plugins, by their names; nothing of them is imported."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    folders = {}
    names = {each.name: each.value.partition(":")[0] for group in _ENTRY_POINTS for each in entry_points(group=group)}
    for name, module in {"libtpu": "libtpu", **names}.items():
        try:
            found = find_spec(module)
        except (ImportError, ValueError):
            continue
        if found is not None and found.origin is not None:
            folders[name] = Path(found.origin).parent
    return folders


def _is_plugin(library: Path) -> bool:
    from mmap import ACCESS_READ, mmap

    with library.open("rb") as file:
        if not 0 < os.fstat(file.fileno()).st_size < _LARGEST:
            return False
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            return data.find(_FUNCTION) >= 0
