"""Make the environment of this checkout, if it is not there yet or no longer fits, and run a command of it.

``bootstrap.py --venv FOLDER [--with NAME] COMMAND [ARGUMENT ...]`` is what ``scripts/vhlo`` and ``scripts/test`` call.
It needs nothing but the standard library, and the interpreter that runs it becomes the environment's. Standard output
belongs to the command; progress goes to standard error.

``VHLO_TOOLS_UV`` may name a program uv, which then installs in place of pip, from where pip would, in a fraction of
the time.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, NoReturn

ROOT = Path(__file__).resolve().parent.parent
# The running interpreter below any environment, by its real name. That name holds the version on most systems; so when
# the system moves on to another version, the environment's link breaks, which is noticed, instead of leading to a
# Python that does not see the installed packages. Resolved now, for we may run from the environment we shall clear.
INTERPRETER = Path(sys.executable).resolve()
LOCK_NAME = ".vhlo-tools-lock"
STAMP_NAME = ".vhlo-tools-stamp"
# Settings of pip, and the variables by which uv is told the same: it does not read those of pip.
UV_SETTINGS = {
    "cert": "SSL_CERT_FILE",
    "constraint": "UV_CONSTRAINT",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_DEFAULT_INDEX",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
}
# Settings of pip that do not change what is installed; those of its files are listed themselves.
INDIFFERENT = {
    "cache-dir",
    "config-file",
    "default-timeout",
    "disable-pip-version-check",
    "no-cache-dir",
    "no-color",
    "no-input",
    "no-python-version-warning",
    "progress-bar",
    "quiet",
    "retries",
    "root-user-action",
    "timeout",
    "verbose",
}
FAILED = 2  # as the tool's own exit code for "could not do it"; 1 would say that something was found


class BootstrapError(Exception):
    """The environment cannot be made; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What an environment was made of; it is written last, so an environment without one is unfinished.

    As text: a line each for ``root``, ``interpreter`` and ``names``, then ``pyproject`` as it is. ``scripts/vhlo``
    compares the first line and the rest with the checkout, so that a warm start needs no Python of its own.
    """

    root: Path  # the checkout that is installed; a moved or copied one does not find its way back by itself
    interpreter: str  # the path and version of the Python below the environment
    names: frozenset[str]  # the extras of the package, and the dependency groups, that are installed
    pyproject: bytes  # the contents of ``pyproject.toml``

    def covers(self, wanted: Stamp) -> bool:
        """Return whether an environment with this stamp does for what is wanted."""
        return replace(self, names=wanted.names) == wanted and self.names >= wanted.names

    def can_become(self, wanted: Stamp) -> bool:
        """Return whether installing again suffices: the same checkout on the same interpreter."""
        return (self.root, self.interpreter) == (wanted.root, wanted.interpreter)

    def write(self, venv: Path) -> None:
        """Write the stamp whole or not at all."""
        header = f"{self.root}\n{self.interpreter}\n{','.join(sorted(self.names))}\n"
        unfinished = venv / f"{STAMP_NAME}.new"
        unfinished.write_bytes(header.encode() + self.pyproject)
        unfinished.replace(venv / STAMP_NAME)

    @classmethod
    def read(cls, venv: Path) -> Stamp | None:
        """Return the stamp of an environment, or None where it has none or its Python is gone."""
        if not os.access(venv / "bin" / "python", os.X_OK):
            return None
        try:
            root, interpreter, installed, pyproject = (venv / STAMP_NAME).read_bytes().split(b"\n", 3)
        except (FileNotFoundError, ValueError):
            return None
        names = frozenset(installed.decode().split(",")) - {""}
        return cls(Path(os.fsdecode(root)), os.fsdecode(interpreter), names, pyproject)


def wanted_stamp(root: Path, names: frozenset[str]) -> Stamp:
    """Return the stamp of an environment for the checkout as it is now, on the running interpreter."""
    version = ".".join(map(str, sys.version_info[:3]))
    return Stamp(root, f"{INTERPRETER} {version}", names, (root / "pyproject.toml").read_bytes())


def say(message: str) -> None:
    """Print a line of progress."""
    print(f"vhlo_tools: {message}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def locked(venv: Path) -> Iterator[int]:
    """Hold the lock of an environment folder, and give its file descriptor.

    The lock file also marks the folder as ours: only such a folder, or an empty one, is ever cleared.
    """
    venv.mkdir(parents=True, exist_ok=True)
    lock_path = venv / LOCK_NAME
    if not lock_path.exists() and any(entry.name != LOCK_NAME for entry in venv.iterdir()):
        raise BootstrapError(
            f"{venv} was not made by this script: remove it, or name another folder in VHLO_TOOLS_VENV"
        )
    with lock_path.open("a") as lock:
        wait_for(lock, venv)
        yield lock.fileno()


def wait_for(lock: IO[str], venv: Path) -> None:
    """Take an exclusive lock, and say so if another process has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"waiting for another run that is making {venv}")
        fcntl.flock(lock, fcntl.LOCK_EX)


def ensure_environment(venv: Path, wanted: Stamp) -> None:
    """Make, extend or repair the environment, unless it already does."""
    present = Stamp.read(venv)
    if present is not None and present.covers(wanted):
        return
    if venv.is_symlink() and present is not None and present.root != wanted.root:
        raise BootstrapError(
            f"{venv} is a link to the environment of {present.root}: remove the link, or name another folder in "
            "VHLO_TOOLS_VENV"
        )
    with locked(venv) as lock:
        present = Stamp.read(venv)  # another run may have made it while we waited
        if present is not None and present.covers(wanted):
            return
        if present is not None and present.can_become(wanted):
            (venv / STAMP_NAME).unlink()
            wanted = replace(wanted, names=wanted.names | present.names)
        else:
            create(venv, lock)
        install(venv, wanted, lock)
        wanted.write(venv)


def create(venv: Path, lock: int) -> None:
    """Make the bare environment, in place of whatever an earlier run left there."""
    say(f"making {venv} with Python {sys.version.split()[0]}")
    for entry in venv.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != LOCK_NAME:
            entry.unlink()
    run([str(INTERPRETER), "-I", "-m", "venv", str(venv)], venv, lock, "Python's venv module failed")


def install(venv: Path, wanted: Stamp, lock: int) -> None:
    """Install the checkout into the environment, so that later edits of the code show."""
    groups = tomllib.loads(wanted.pyproject.decode()).get("dependency-groups", {})
    names = ",".join(sorted(wanted.names - groups.keys()))
    package = f".[{names}]" if names else "."
    beside = sorted({each for name in wanted.names & groups.keys() for each in requirements_of(name, groups)})
    say(f"installing {', '.join(['vhlo-tools', *sorted(wanted.names)])} and what they need (once)")
    python, uv = str(venv / "bin" / "python"), os.environ.get("VHLO_TOOLS_UV")
    told = uv_settings(python, lock) if uv else None
    if uv and told is not None:
        command, failure = [uv, "pip", "install", "--compile-bytecode", "--python", python], "uv could not install"
    else:
        command = [python, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        failure = "pip could not install"
    run([*command, "--quiet", "--editable", package, *beside], wanted.root, lock, f"{failure} the package", told)


def requirements_of(name: str, groups: Mapping[str, list[str | dict[str, str]]]) -> Iterator[str]:
    """Yield the requirements of a dependency group: the pip of Python 3.11 and 3.12 has no ``--group``."""
    for each in groups[name]:
        if isinstance(each, str):
            yield each
        else:
            yield from requirements_of(each["include-group"], groups)


def uv_settings(python: str, lock: int) -> dict[str, str] | None:
    """Return the variables that tell uv what pip is told by its variables and files.

    Args:
        python: A Python that has pip.
        lock: The lock of its environment, which pip inherits: it writes there what it compiles, as steps do.

    Returns:
        The variables; ``None`` if pip has a setting that uv cannot be told.
    """
    listing = [python, "-I", "-m", "pip", "--disable-pip-version-check", "config", "list"]
    settings = subprocess.run(listing, capture_output=True, text=True, pass_fds=[lock], check=False)
    if settings.returncode:
        return None
    found: dict[str, str] = {}
    # `global.index-url='...'`, `install.index-url='...'` and, for PIP_INDEX_URL, `:env:.index-url='...'`.
    lines = [line.partition("=") for line in settings.stdout.splitlines()]
    for section in ("global.", "install.", ":env:."):
        found |= {
            name.removeprefix(section): ast.literal_eval(value) for name, _, value in lines if name.startswith(section)
        }
    if other := set(found) - set(UV_SETTINGS) - INDIFFERENT:
        say(f"pip installs, for uv knows nothing like its settings {', '.join(sorted(other))}")
        return None
    told = {UV_SETTINGS[name]: value for name, value in found.items() if name in UV_SETTINGS}
    if "UV_FIND_LINKS" in told:
        told["UV_FIND_LINKS"] = ",".join(told["UV_FIND_LINKS"].split())
    # As pip does, which takes the best of all indexes.
    return {"UV_INDEX_STRATEGY": "unsafe-best-match", **told}


def run(command: list[str], cwd: Path, lock: int, failure: str, variables: Mapping[str, str] | None = None) -> None:
    """Run a step with its output on standard error, and with more environment variables.

    The step inherits the lock: if this process is killed, the lock lasts until the step has ended too, and no other
    run clears the folder under its hands.
    """
    environment = {**os.environ, **(variables or {})}
    step = subprocess.run(
        command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, pass_fds=[lock], check=False
    )
    if step.returncode:
        raise BootstrapError(f"{failure} (exit code {step.returncode}, see above); run it again when that is mended")


def enter(venv: Path, command: str, arguments: list[str]) -> NoReturn:
    """Become a command of the environment."""
    program = str(venv / "bin" / command)
    os.execv(program, [program, *arguments])


def main() -> int:
    """Make the environment and become the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--venv", type=Path, required=True, help="folder of the environment")
    parser.add_argument(
        "--with",
        action="append",
        default=[],
        dest="names",
        metavar="NAME",
        help="extra or dependency group, installed too",
    )
    parser.add_argument("command", help="command of the environment to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the command")
    options = parser.parse_args()
    venv = options.venv.absolute()
    try:
        ensure_environment(venv, wanted_stamp(ROOT, frozenset(options.names)))
        enter(venv, options.command, options.arguments)
    except BootstrapError as error:
        say(str(error))
    except OSError as error:
        say(f"cannot set up {venv}: {error}")
    except KeyboardInterrupt:
        say("interrupted; the next run starts over")
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
