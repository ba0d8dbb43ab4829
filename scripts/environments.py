"""Make and keep environments that hold a released package, such as an old jaxlib, for what is to run inside of it.

``environments.py jaxlib==0.4.31 jaxlib==0.8.3`` prints the Pythons of such environments. An environment is made once,
with the newest CPython of this machine that the release has wheels for, and kept in ``$VHLO_TOOLS_CACHE`` or the user's
cache folder; from then on no network is needed. Making one needs uv, which the development environment holds.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from interpreters import find_interpreters
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

__all__ = ["Release", "ReleaseEnvironmentError", "environment", "environments_folder"]

OLDEST_PYTHON = (3, 8)
# uv's exit code for requirements that cannot be met together; anything else is no matter of the interpreter.
NO_SOLUTION = 1
# What must be importable before an environment counts as made.
CHECKS = {
    "jaxlib": "from jaxlib.mlir import ir; from jaxlib.mlir.dialects import stablehlo",
    "torch-mlir": "from torch_mlir import ir; from torch_mlir._mlir_libs import _stablehlo",
    "tensorflow-cpu": "from tensorflow.compiler.mlir.stablehlo import stablehlo",
    "iree-base-compiler": "import iree.compiler",
}
# uv does not read pip's settings; where only pip was told of another package index, uv is told too.
INDEX_SETTINGS = {"UV_DEFAULT_INDEX": "PIP_INDEX_URL", "UV_INDEX": "PIP_EXTRA_INDEX_URL"}
# Large requirements that nothing here touches: jaxlib calls scipy for its LAPACK kernels only.
NOT_NEEDED = {"jaxlib": ["scipy"]}
FIRST_JAXLIB_FOR_NUMPY_2 = Version("0.4.26")
# What a release is used with here and does not ask for itself: jax.export writes its files with flatbuffers, each
# release of which lays them out in its own way, and in old releases imports absl; and this package needs msgspec.
COMPANIONS = {"jax": ["flatbuffers==25.12.19", "absl-py"], "jaxlib": ["msgspec"], "torch-mlir": ["msgspec"]}
COMPANIONS_FILE = "companions.txt"


class ReleaseEnvironmentError(Exception):
    """An environment for a release cannot be made; the message says why."""


class _UnfitInterpreterError(ReleaseEnvironmentError):
    """The release cannot be had for one interpreter; another may do."""


@dataclass(frozen=True, slots=True)
class Release:
    """A package at one release.

    Attributes:
        package: The name in its canonical form, such as ``torch-mlir``.
        version: The version of the release.
    """

    package: str
    version: Version

    @classmethod
    def parse(cls, text: str) -> Release:
        """Parse a requirement of exactly one release, such as ``jaxlib==0.4.31``."""
        try:
            requirement = Requirement(text)
            (specifier,) = requirement.specifier
            if specifier.operator != "==" or requirement.extras or requirement.marker or requirement.url:
                raise ValueError
            return cls(canonicalize_name(requirement.name), Version(specifier.version))
        except (InvalidRequirement, ValueError):
            raise ReleaseEnvironmentError(f"{text!r} is not a release such as 'jaxlib==0.4.31'") from None

    def __str__(self) -> str:
        return f"{self.package}=={self.version}"

    @property
    def folder_name(self) -> str:
        """The start of the name of the release's environments; the version of their Python follows."""
        return f"{self.package}-{self.version}"

    def requirements(self) -> list[str]:
        """Return what to install: the release, and bounds that its own metadata lacks."""
        # Built against numpy 1, these import nothing under numpy 2, yet do not say so.
        old = self.package in {"jax", "jaxlib"} and self.version < FIRST_JAXLIB_FOR_NUMPY_2
        return [str(self), *COMPANIONS.get(self.package, []), *(["numpy<2"] if old else [])]

    def overrides(self) -> str:
        """Return requirements that replace those of the packages' metadata: what is not needed is never wanted."""
        return "".join(f'{name}; python_version < "3"\n' for name in NOT_NEEDED.get(self.package, []))


def environment(requirement: str) -> Path:
    """Return the Python of an environment that holds a release, made now if it was not made before.

    Args:
        requirement: The release, such as ``jaxlib==0.4.31``.

    Raises:
        ReleaseEnvironmentError: The release has no wheel for a Python of this machine, or cannot be had.
    """
    release = Release.parse(requirement)
    folder = environments_folder()
    with contextlib.suppress(FileNotFoundError):
        return made_environment(release, folder)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / f"{release.folder_name}.lock"):
        with contextlib.suppress(FileNotFoundError):
            return made_environment(release, folder)  # by another process, while this one waited
        return make(release, folder)


def clean_environment() -> dict[str, str]:
    """Return this process's environment variables without those that lead Python elsewhere."""
    elsewhere = re.compile(r"PYTHON.*|VIRTUAL_ENV.*|PYENV_VERSION|__PYVENV_LAUNCHER__")
    return {name: value for name, value in os.environ.items() if not elsewhere.fullmatch(name)}


def environments_folder() -> Path:
    """Return the folder of all environments."""
    if chosen := os.environ.get("VHLO_TOOLS_CACHE"):
        return Path(chosen).absolute() / "environments"
    caches = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    if Path(os.environ.get("XDG_CACHE_HOME", "")).is_absolute():
        caches = Path(os.environ["XDG_CACHE_HOME"])
    return caches / "vhlo-tools" / "environments"


def made_environment(release: Release, folder: Path) -> Path:
    """Return the Python of the release's environment, the newest one first; raise FileNotFoundError if there is none.

    An environment whose interpreter was removed from the machine does not count, nor one made before the release had
    the companions that it has now.
    """
    made = re.compile(re.escape(release.folder_name) + r"-py3(\d+)")
    minors = [int(match[1]) for entry in folder.iterdir() if (match := made.fullmatch(entry.name))]
    for minor in sorted(minors, reverse=True):
        python = folder / f"{release.folder_name}-py3{minor}" / "bin" / "python"
        if os.access(python, os.X_OK) and companions_in(python.parents[1]) == COMPANIONS.get(release.package, []):
            return python
    raise FileNotFoundError(folder / release.folder_name)


def companions_in(environment: Path) -> list[str]:
    """Return the companions that an environment was made with."""
    try:
        return (environment / COMPANIONS_FILE).read_text().splitlines()
    except FileNotFoundError:
        return []


def make(release: Release, folder: Path) -> Path:
    """Make the environment with the newest interpreter that has wheels for it; the resolver says which."""
    interpreters = find_interpreters(OLDEST_PYTHON)
    reasons = []
    for (major, minor), interpreter in interpreters.items():
        final = folder / f"{release.folder_name}-py{major}{minor}"
        partial = final.with_name(f"{final.name}.partial")
        remove(partial)
        try:
            fill(partial, release, interpreter)
        except _UnfitInterpreterError as error:
            reasons.append(str(error))
        else:
            remove(final)  # one that stands there lost its interpreter
            partial.rename(final)  # its Python runs from anywhere, so what bears the final name is always whole
            return final / "bin" / "python"
        finally:
            remove(partial)
    tried = ", ".join(f"{major}.{minor}" for major, minor in interpreters) or "none"
    reason = f"\nfor the first of them: {reasons[0]}" if reasons else ""
    raise ReleaseEnvironmentError(f"{release} cannot be installed for a CPython of this machine ({tried}){reason}")


def fill(place: Path, release: Release, interpreter: Path) -> None:
    """Make an environment in ``place``, install the release from wheels and see that it can be imported."""
    python = place / "bin" / "python"
    uv("venv", "--quiet", "--relocatable", "--python", str(interpreter), str(place))
    overrides = place / "overrides.txt"
    overrides.write_text(release.overrides())
    options = ["--quiet", "--only-binary", ":all:", "--compile-bytecode", "--overrides", str(overrides)]
    uv("pip", "install", *options, "--python", str(python), *release.requirements())
    (place / COMPANIONS_FILE).write_text("\n".join(COMPANIONS.get(release.package, [])))
    code = CHECKS.get(release.package, "")
    check = subprocess.run([python, "-I", "-c", code], capture_output=True, env=clean_environment(), check=False)
    if check.returncode:
        raise _UnfitInterpreterError(f"`{code}` fails ({check.returncode}):\n{last_lines(check.stderr)}")


def uv(*arguments: str) -> None:
    """Run uv, and raise with its own last words if it fails."""
    try:
        from uv import find_uv_bin
    except ModuleNotFoundError:
        raise ReleaseEnvironmentError("making an environment needs the Python package `uv`") from None
    command = [find_uv_bin(), "--no-progress", "--color", "never", *arguments]
    result = subprocess.run(command, cwd=environments_folder(), capture_output=True, env=uv_settings(), check=False)
    if result.returncode:
        kind = _UnfitInterpreterError if result.returncode == NO_SOLUTION else ReleaseEnvironmentError
        raise kind(f"uv {arguments[0]} failed ({result.returncode}):\n{last_lines(result.stderr)}")


def uv_settings() -> dict[str, str]:
    """Return the environment variables for uv."""
    indexes = {ours: os.environ[pips] for ours, pips in INDEX_SETTINGS.items() if pips in os.environ}
    return {**indexes, **clean_environment(), "UV_PYTHON_DOWNLOADS": "never"}


def last_lines(output: bytes) -> str:
    """Return the end of a program's output, where it says what went wrong."""
    return "\n".join(output.decode(errors="replace").strip().splitlines()[-12:])


def remove(folder: Path) -> None:
    """Remove a folder that may not be there."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes; the file stays, for removing it would let two in."""
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Print the Pythons of environments."""
    parser = argparse.ArgumentParser(description="make environments that hold a release, and print their Pythons")
    parser.add_argument("requirement", nargs="+", help="a release, such as jaxlib==0.4.31")
    try:
        for requirement in parser.parse_args().requirement:
            print(environment(requirement), flush=True)
    except ReleaseEnvironmentError as error:
        print(f"environments: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
