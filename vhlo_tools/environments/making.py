"""Environments that hold one release, made once and kept in the user's cache; later uses need no network."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from vhlo_tools.environments.interpreters import find_interpreters
from vhlo_tools.environments.release import PackageRelease
from vhlo_tools.environments.uv import UnfitInterpreterError, clean_environment, last_lines, run_uv
from vhlo_tools.errors import ReleaseEnvironmentError
from vhlo_tools.files import cache_folder

_OLDEST_PYTHON: Final = (3, 8)
_COMPANIONS_FILE: Final = "companions.txt"

#: Takes a line about what is being done, for the user.
Say = Callable[[str], None]


def silent(line: str) -> None: ...


def environments_folder() -> Path:
    """``$VHLO_TOOLS_CACHE/environments``, or in the user's cache folder."""
    return cache_folder() / "environments"


def environment(requirement: str, say: Say = silent) -> Path:
    """Return the Python of the environment of a release, made now if necessary, with the newest CPython that fits."""
    release = PackageRelease.parse(requirement)
    if made := made_environment(release):
        return made
    folder = environments_folder()
    lock = folder / f"{release.folder_name}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.touch()
    except OSError as error:
        raise ReleaseEnvironmentError(
            f"{release}: no environment can be made in {folder} ({error.strerror}): let VHLO_TOOLS_CACHE name a folder "
            f"that can be written"
        ) from error
    with _locked(lock):
        # Another process may have made it, while this one waited.
        return made_environment(release) or _make(release, folder, say)


def made_environment(release: PackageRelease) -> Path | None:
    """Return the Python of the newest environment of the release; ``None`` if none was made.

    An environment whose interpreter was removed from the machine does not count, nor one made before the release had
    the companions that it has now.
    """
    folder = environments_folder()
    name = re.compile(re.escape(release.folder_name) + r"-py3(\d+)")
    entries = folder.iterdir() if folder.is_dir() else ()
    found = [match for entry in entries if (match := name.fullmatch(entry.name))]
    for match in sorted(found, key=lambda match: int(match[1]), reverse=True):
        python = folder / match[0] / "bin" / "python"
        if os.access(python, os.X_OK) and _companions_in(python.parents[1]) == release.companions:
            return python
    return None


def _companions_in(environment: Path) -> list[str]:
    try:
        return (environment / _COMPANIONS_FILE).read_text().splitlines()
    except FileNotFoundError:
        return []


def _make(release: PackageRelease, folder: Path, say: Say) -> Path:
    """Make the environment with the newest interpreter that has wheels for it, as the resolver decides."""
    interpreters = find_interpreters(_OLDEST_PYTHON)
    reasons = []
    for (major, minor), interpreter in interpreters.items():
        final = folder / f"{release.folder_name}-py{major}{minor}"
        partial = final.with_name(f"{final.name}.partial")
        _remove(partial)
        try:
            say(f"{release}: making an environment with Python {major}.{minor}")
            _fill(partial, release, interpreter)
        except UnfitInterpreterError as error:
            reasons.append(str(error))
        else:
            _remove(final)  # one that stands there lost its interpreter
            partial.rename(final)  # its Python runs from anywhere, so what bears the final name is always whole
            return final / "bin" / "python"
        finally:
            _remove(partial)
    tried = ", ".join(f"{major}.{minor}" for major, minor in interpreters) or "none"
    reason = f"\nfor the first of them: {reasons[0]}" if reasons else ""
    raise ReleaseEnvironmentError(f"{release} cannot be installed for a CPython of this machine ({tried}){reason}")


def _fill(place: Path, release: PackageRelease, interpreter: Path) -> None:
    """Install the release from wheels, and check that it can be imported."""
    python = place / "bin" / "python"
    run_uv("venv", "--quiet", "--relocatable", "--python", str(interpreter), str(place), folder=place.parent)
    overrides = place / "overrides.txt"
    overrides.write_text(release.overrides())
    options = ["--quiet", "--only-binary", ":all:", "--compile-bytecode", "--overrides", str(overrides)]
    run_uv("pip", "install", *options, "--python", str(python), *release.requirements(), folder=place.parent)
    (place / _COMPANIONS_FILE).write_text("\n".join(release.companions))
    code = release.kind.check
    check = subprocess.run([python, "-I", "-c", code], capture_output=True, env=clean_environment(), check=False)
    if check.returncode:
        raise UnfitInterpreterError(f"`{code}` fails ({check.returncode}):\n{last_lines(check.stderr)}")


def _remove(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes; the file stays, because removing it would let two in."""
    try:
        import fcntl
    except ImportError:
        raise ReleaseEnvironmentError(
            "environments of real releases are made on Linux and macOS: this system has no locks of files as they have"
        ) from None
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
