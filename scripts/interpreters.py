"""Find the CPython interpreters of this machine that can make environments, by their command names.

``interpreters.py --list`` prints all of them, newest first; ``--newest`` the path of the newest; ``3.12`` the path of
that one. A command may exist and still not run: pyenv puts a stand-in on the PATH for every version it has, which only
runs where that version is selected. Then pyenv is asked for the version itself.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["find_interpreters"]

Version = tuple[int, int]

NEWEST_MINOR = 20  # command names are tried up to python3.20
PROBE = """
import os, sys, venv, ensurepip
print(sys.implementation.name, sys.version_info[0], sys.version_info[1], os.path.realpath(sys.executable))
"""


def find_interpreters(at_least: Version = (3, 11)) -> dict[Version, Path]:
    """Return an interpreter for every version of CPython from ``at_least`` on, newest first."""
    found: dict[Version, Path] = {}
    for command in plain_commands(at_least):
        for version, path in probe([command], {}):
            found.setdefault(version, path)
    for version, release in pyenv_releases():
        if version >= at_least and version not in found:
            found.update(probe(["pyenv", "exec", "python"], {"PYENV_VERSION": release}))
    return {version: found[version] for version in sorted(found, reverse=True) if version >= at_least}


def plain_commands(at_least: Version) -> Iterator[str]:
    """Yield the commands on the PATH that may be a Python of ``at_least`` or newer."""
    names = ["python3", *(f"python3.{minor}" for minor in range(at_least[1], NEWEST_MINOR + 1))]
    return filter(None, map(shutil.which, names))


def probe(command: list[str], environment: dict[str, str]) -> Iterator[tuple[Version, Path]]:
    """Ask an interpreter for its version and its own path; yield nothing if it does not run or is no CPython."""
    result = subprocess.run(
        [*command, "-I", "-c", PROBE], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    implementation, *rest = result.stdout.strip().split(" ", 3) if result.returncode == 0 else [""]
    if implementation == "cpython":
        major, minor, path = rest
        yield (int(major), int(minor)), Path(path)


def pyenv_releases() -> list[tuple[Version, str]]:
    """Return the plain CPython releases that pyenv has, the newest of each version first."""
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        return []
    listing = subprocess.run([pyenv, "versions", "--bare"], capture_output=True, text=True, check=False).stdout
    releases = [tuple(map(int, line.split("."))) for line in listing.split() if re.fullmatch(r"3\.\d+\.\d+", line)]
    return [((major, minor), f"{major}.{minor}.{patch}") for major, minor, patch in sorted(releases, reverse=True)]


def parse_version(text: str) -> Version:
    """Parse a version such as ``3.12``."""
    match = re.fullmatch(r"(3)\.(\d+)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a version such as 3.12")
    return int(match[1]), int(match[2])


def main() -> int:
    """Print interpreters."""
    parser = argparse.ArgumentParser(description="find the CPython interpreters of this machine (3.11 and newer)")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--list", action="store_true", help="print all, newest first, as VERSION PATH")
    which.add_argument("--newest", action="store_true", help="print the path of the newest")
    which.add_argument("version", nargs="?", type=parse_version, help="print the path of this one, such as 3.12")
    options = parser.parse_args()
    found = find_interpreters(min((3, 11), options.version or (3, 11)))
    if options.list:
        for (major, minor), path in found.items():
            print(f"{major}.{minor} {path}")
        return 0
    chosen = next(iter(found.values()), None) if options.newest else found.get(options.version)
    if chosen is None:
        print("interpreters: no such CPython with venv and ensurepip on this machine", file=sys.stderr)
        return 1
    print(chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
