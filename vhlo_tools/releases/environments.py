"""Environments of releases: packages, interpreters, uv, and environments that are made once and kept."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from vhlo_tools.errors import MissingExtraError, ReleaseEnvironmentError, installing
from vhlo_tools.files import cache_folder
from vhlo_tools.records import dataclass
from vhlo_tools.spec import DeviceKind, topology_of

# Packages whose releases read or write artifacts, and the needs of an environment of each


@dataclass(frozen=True, slots=True)
class Package:
    check: str  # Python code that runs in every whole environment
    server: str = ""  # the script of ``inside/`` that serves requests there
    writes: bool = True  # it can write artifacts
    installed: str = ""  # the package to install in its place, of the same version: a build for machines without GPU
    companions: tuple[str, ...] = ()  # requirements of this project beside it; ``{version}`` is its version
    not_needed: tuple[str, ...] = ()  # large requirements that nothing here touches
    library: str = ""  # of a plugin of PJRT, its file among the installed packages
    devices: DeviceKind | None = None  # what that compiles for


def _plugin(distribution: str, library: str, devices: DeviceKind) -> Package:
    place = f"importlib.metadata.distribution('{distribution}').locate_file('{library}')"
    check = f"import ctypes, importlib.metadata; ctypes.CDLL(str({place})).GetPjrtApi"
    return Package(check, "serve_pjrt.py", writes=False, library=library, devices=devices)


_TENSORFLOW = "from tensorflow.compiler.mlir.stablehlo import stablehlo"

#: By the canonical name of the package. Any other can be installed too, as it is.
PACKAGES: Final[Mapping[str, Package]] = MappingProxyType(
    {
        # jax.export writes its files with flatbuffers, each release of which lays them out in its own way, and in old
        # releases imports absl.
        "jax": Package("import jax", "serve_mlir.py", companions=("flatbuffers==25.12.19", "absl-py")),
        # msgspec is what the core of this project needs, which tests run there. jaxlib calls scipy for its LAPACK
        # kernels only.
        "jaxlib": Package(
            "from jaxlib.mlir import ir; from jaxlib.mlir.dialects import stablehlo",
            "serve_mlir.py",
            companions=("msgspec",),
            not_needed=("scipy",),
        ),
        "torch-mlir": Package(
            "from torch_mlir import ir; from torch_mlir._mlir_libs import _stablehlo",
            "serve_mlir.py",
            companions=("msgspec", "numpy", "ml_dtypes"),
        ),
        "tensorflow": Package(_TENSORFLOW, "serve_tensorflow.py", installed="tensorflow-cpu"),
        "tensorflow-cpu": Package(_TENSORFLOW, "serve_tensorflow.py"),
        "iree-base-compiler": Package(
            "import iree.compiler, iree.runtime",
            "serve_iree.py",
            writes=False,
            companions=("iree-base-runtime=={version}", "ml_dtypes"),
        ),
        "libtpu": _plugin("libtpu", "libtpu/libtpu.so", "tpu"),
        **{
            f"jax-{cuda}-pjrt": _plugin(f"jax-{cuda}-pjrt", f"jax_plugins/xla_{cuda}/xla_cuda_plugin.so", "gpu")
            for cuda in ("cuda12", "cuda13")
        },
    }
)


# CPython interpreters of this machine that can make environments, found by their command names
#
# A command may exist and still not run: pyenv puts a stand-in on the PATH for every version it has, which only runs
# where that version is selected. Then pyenv is asked for the version itself; uv, which looks on the PATH only, misses
# it.

PythonVersion = tuple[int, int]

_NEWEST_MINOR = 20  # command names are tried up to python3.20
_PROBE = """
import os, sys, venv, ensurepip
print(sys.implementation.name, sys.version_info[0], sys.version_info[1], os.path.realpath(sys.executable))
"""


@cache
def find_interpreters(at_least: PythonVersion = (3, 11)) -> Mapping[PythonVersion, Path]:
    """Return an interpreter for every version from ``at_least`` on, newest first."""
    found: dict[PythonVersion, Path] = {}
    names = ["python3", *(f"python3.{minor}" for minor in range(at_least[1], _NEWEST_MINOR + 1))]
    for command in filter(None, map(shutil.which, names)):
        for version, path in _probe([command], {}):
            found.setdefault(version, path)
    for version, release in _pyenv_releases():
        if version >= at_least and version not in found:
            found.update(_probe(["pyenv", "exec", "python"], {"PYENV_VERSION": release}))
    return {version: found[version] for version in sorted(found, reverse=True) if version >= at_least}


def _probe(command: list[str], environment: dict[str, str]) -> Iterator[tuple[PythonVersion, Path]]:
    """Ask an interpreter for its version and its own path; yield nothing if it does not run or is no CPython."""
    result = subprocess.run(
        [*command, "-I", "-c", _PROBE], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    implementation, *rest = result.stdout.strip().split(" ", 3) if result.returncode == 0 else [""]
    if implementation == "cpython":
        major, minor, path = rest
        yield (int(major), int(minor)), Path(path)


def _pyenv_releases() -> list[tuple[PythonVersion, str]]:
    """Return the plain CPython releases that pyenv has, the newest of each version first."""
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        return []
    listing = subprocess.run([pyenv, "versions", "--bare"], capture_output=True, text=True, check=False).stdout
    releases = [tuple(map(int, line.split("."))) for line in listing.split() if re.fullmatch(r"3\.\d+\.\d+", line)]
    return [((major, minor), f"{major}.{minor}.{patch}") for major, minor, patch in sorted(releases, reverse=True)]


# Calls of uv, which installs packages and makes environments

#: What leads Python, or what it starts, elsewhere.
_ELSEWHERE: Final = re.compile(r"PYTHON.*|VIRTUAL_ENV.*|PYENV_VERSION|__PYVENV_LAUNCHER__")
#: uv does not read pip's settings; where only pip was told of another package index, uv is told too.
_INDEX_SETTINGS: Final = {"UV_DEFAULT_INDEX": "PIP_INDEX_URL", "UV_INDEX": "PIP_EXTRA_INDEX_URL"}
#: uv's exit code for requirements that cannot be met together; anything else is no matter of the interpreter.
_NO_SOLUTION: Final = 1


class UnfitInterpreterError(ReleaseEnvironmentError):
    """The release cannot be had for one interpreter; another may do."""


def run_uv(*arguments: str, folder: Path) -> str:
    """Run uv and return its output; unsatisfiable requirements are an ``UnfitInterpreterError``."""
    command = [_program(), "--no-progress", "--color", "never", *arguments]
    indexes = {ours: os.environ[pips] for ours, pips in _INDEX_SETTINGS.items() if pips in os.environ}
    settings = {**indexes, **clean_environment(), "UV_PYTHON_DOWNLOADS": "never"}
    result = subprocess.run(command, cwd=folder, capture_output=True, env=settings, check=False)
    if result.returncode:
        kind = UnfitInterpreterError if result.returncode == _NO_SOLUTION else ReleaseEnvironmentError
        words = " ".join(arguments[:2] if arguments[0] == "pip" else arguments[:1])
        raise kind(f"uv {words} failed ({result.returncode}):\n{last_lines(result.stderr)}")
    return result.stdout.decode()


def clean_environment() -> dict[str, str]:
    """Return this process's environment variables without those that lead Python elsewhere."""
    return {name: value for name, value in os.environ.items() if not _ELSEWHERE.fullmatch(name)}


def last_lines(output: bytes) -> str:
    """Return the end of a program's output, which has the error."""
    return "\n".join(output.decode(errors="replace").strip().splitlines()[-12:])


def _program() -> str:
    try:
        from uv import find_uv_bin
    except ModuleNotFoundError:
        if found := shutil.which("uv"):
            return found
        raise MissingExtraError(
            f"an environment for a release is made by uv, which is not installed: {installing('releases')}"
        ) from None
    return find_uv_bin()


# A release of a package, as a requirement of exactly one version

#: Built against numpy 1, older ones import nothing under numpy 2, yet do not say so.
_FIRST_JAXLIB_FOR_NUMPY_2: Final = Version("0.4.26")


@dataclass(frozen=True, slots=True)
class PackageRelease:
    package: str  # in canonical form, such as ``torch-mlir``
    version: Version
    device: str = ""  # what a plugin compiles for, such as ``v5e:2x2``; one of its own choice by default

    @classmethod
    def parse(cls, text: str) -> PackageRelease:
        """Parse a requirement of exactly one release, such as ``jaxlib==0.4.31``, of a plugin also ``...@v5e:2x2``."""
        release, at, device = text.partition("@")
        try:
            requirement = Requirement(release)
            (specifier,) = requirement.specifier
            if specifier.operator != "==" or requirement.extras or requirement.marker or requirement.url:
                raise ValueError
            parsed = cls(canonicalize_name(requirement.name), Version(specifier.version), device)
        except (InvalidRequirement, ValueError):
            raise ReleaseEnvironmentError(f"{text!r} is not a release such as 'jaxlib==0.4.31'") from None
        if at:
            if parsed.kind.devices is None:
                raise ReleaseEnvironmentError(f"{release} compiles for no device, and {text!r} names one: leave it out")
            topology_of(parsed.kind.devices, device)
        return parsed

    @classmethod
    def of_reader(cls, text: str) -> PackageRelease:
        """Accept only packages that read artifacts: nothing else is worth an environment for them."""
        release = cls.parse(text)
        if not release.kind.server:
            known = ", ".join(name for name, package in PACKAGES.items() if package.server)
            raise ReleaseEnvironmentError(f"{release} does not read artifacts: expected a release of {known}")
        return release

    def __str__(self) -> str:
        return f"{self.package}=={self.version}{f'@{self.device}' if self.device else ''}"

    @property
    def kind(self) -> Package:
        return PACKAGES.get(self.package, Package(""))

    @property
    def folder_name(self) -> str:
        """The start of the name of its environments; the version of their Python follows."""
        return f"{self.package}-{self.version}"

    @property
    def companions(self) -> list[str]:
        """Requirements of its use that its own metadata lacks."""
        return [each.format(version=self.version) for each in self.kind.companions]

    def requirements(self) -> list[str]:
        """Return the release to install, and bounds that its own metadata lacks."""
        installed = f"{self.kind.installed or self.package}=={self.version}"
        old = self.package in {"jax", "jaxlib"} and self.version < _FIRST_JAXLIB_FOR_NUMPY_2
        return [installed, *self.companions, *(["numpy<2"] if old else [])]

    def overrides(self) -> str:
        """Return requirements that replace those of the packages' metadata, so that unneeded ones are not installed."""
        return "".join(f'{name}; python_version < "3"\n' for name in self.kind.not_needed)


# Environments that hold one release, made once and kept in the user's cache; later uses need no network

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
        python, companions = (folder / match[0] / each for each in ("bin/python", _COMPANIONS_FILE))
        held = companions.read_text().splitlines() if companions.exists() else []
        if os.access(python, os.X_OK) and held == release.companions:
            return python
    return None


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
