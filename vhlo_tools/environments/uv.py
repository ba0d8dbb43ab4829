"""Calls of uv, which installs packages and makes environments."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from vhlo_tools.errors import MissingExtraError, ReleaseEnvironmentError

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
    result = subprocess.run(command, cwd=folder, capture_output=True, env=_settings(), check=False)
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
            "an environment for a release is made by uv, which is not installed: pip install 'vhlo-tools[releases]'"
        ) from None
    return find_uv_bin()


def _settings() -> dict[str, str]:
    indexes = {ours: os.environ[pips] for ours, pips in _INDEX_SETTINGS.items() if pips in os.environ}
    return {**indexes, **clean_environment(), "UV_PYTHON_DOWNLOADS": "never"}
