"""CPython interpreters of this machine that can make environments, found by their command names.

A command may exist and still not run: pyenv puts a stand-in on the PATH for every version it has, which only runs where
that version is selected. Then pyenv is asked for the version itself; uv, which looks on the PATH only, misses it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

Version = tuple[int, int]

_NEWEST_MINOR = 20  # command names are tried up to python3.20
_PROBE = """
import os, sys, venv, ensurepip
print(sys.implementation.name, sys.version_info[0], sys.version_info[1], os.path.realpath(sys.executable))
"""


@cache
def find_interpreters(at_least: Version = (3, 11)) -> Mapping[Version, Path]:
    """Return an interpreter for every version from ``at_least`` on, newest first."""
    found: dict[Version, Path] = {}
    for command in _plain_commands(at_least):
        for version, path in _probe([command], {}):
            found.setdefault(version, path)
    for version, release in _pyenv_releases():
        if version >= at_least and version not in found:
            found.update(_probe(["pyenv", "exec", "python"], {"PYENV_VERSION": release}))
    return {version: found[version] for version in sorted(found, reverse=True) if version >= at_least}


def _plain_commands(at_least: Version) -> Iterator[str]:
    names = ["python3", *(f"python3.{minor}" for minor in range(at_least[1], _NEWEST_MINOR + 1))]
    return filter(None, map(shutil.which, names))


def _probe(command: list[str], environment: dict[str, str]) -> Iterator[tuple[Version, Path]]:
    """Ask an interpreter for its version and its own path; yield nothing if it does not run or is no CPython."""
    result = subprocess.run(
        [*command, "-I", "-c", _PROBE], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    implementation, *rest = result.stdout.strip().split(" ", 3) if result.returncode == 0 else [""]
    if implementation == "cpython":
        major, minor, path = rest
        yield (int(major), int(minor)), Path(path)


def _pyenv_releases() -> list[tuple[Version, str]]:
    """Return the plain CPython releases that pyenv has, the newest of each version first."""
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        return []
    listing = subprocess.run([pyenv, "versions", "--bare"], capture_output=True, text=True, check=False).stdout
    releases = [tuple(map(int, line.split("."))) for line in listing.split() if re.fullmatch(r"3\.\d+\.\d+", line)]
    return [((major, minor), f"{major}.{minor}.{patch}") for major, minor, patch in sorted(releases, reverse=True)]
