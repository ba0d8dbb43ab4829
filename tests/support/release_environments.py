"""Code run in environments of released packages, which `scripts/environments.py` makes and keeps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from vhlo_tools.releases import ReleaseProcess, clean_environment

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "environments.py"


@cache
def python_of(release: str) -> str:
    """Return the Python of an environment that holds a release, such as ``jaxlib==0.4.31``."""
    made = subprocess.run([sys.executable, SCRIPT, release], capture_output=True, text=True, check=False)
    if made.returncode:
        raise RuntimeError(made.stderr)
    return made.stdout.strip()


def run_in(
    release: str,
    program: str | Path,
    *arguments: str | Path,
    input: bytes | None = None,  # noqa: A002  (as subprocess.run calls it)
    timeout: float | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run Python code in such an environment, isolated (``-I``): no folder and no variable of ours leads elsewhere.

    Args:
        release: The release.
        program: The code itself, or the path of a script.
        arguments: What the program finds in ``sys.argv[1:]``.
        input: What it reads from its standard input; nothing if absent.
        timeout: Seconds after which it is killed and ``subprocess.TimeoutExpired`` raised.

    Returns:
        The ended process with its exit code and all its output; a failure of the program raises nothing.
    """
    start = [str(program)] if isinstance(program, Path) else ["-c", program]
    command = [python_of(release), "-I", *start, *map(str, arguments)]
    variables = clean_environment()
    return subprocess.run(command, input=input or b"", capture_output=True, timeout=timeout, check=False, env=variables)


def read_by(
    release: str, artifacts: Iterable[bytes], *, text: bool = True, timeout: float = 120.0
) -> list[dict[str, str]]:
    """Return what a release makes of each artifact within seconds: its ``text``, if asked for, or an ``error``."""
    with ReleaseProcess(release, timeout=timeout) as process:
        answers = [process.read(artifact, text=text) for artifact in artifacts]
    return [
        # What cannot be parsed again was read: contexts of releases before 0.4.24 do not know quantized types.
        {"text": answer.value or ""} if answer.succeeded or answer.failed == "parse" else {"error": answer.words}
        for answer in answers
    ]
