"""The package as it was at a revision of git, beside which the present one is measured."""

from __future__ import annotations

import compileall
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[1]
#: What runs: the package and its data, and the benchmarks, which call what is in no other revision, with their helpers.
_PARTS: Final = ("vhlo_tools", "dialect_specs", "benchmarks", "tests")


@contextmanager
def package_at(revision: str | None) -> Iterator[Path | None]:
    """Give a folder with the package as it was at a revision, to be a process's `PYTHONPATH`; compiled to bytecode.

    Args:
        revision: A revision of git; ``None`` for none, of which ``None`` is given.

    Raises:
        SystemExit: If git knows no such revision.
    """
    if revision is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "package.tar")
        command = ["git", "-C", str(_ROOT), "archive", f"--output={archive}", revision, *_PARTS]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(
                f"bench: git has no package at {revision!r}: {done.stderr.strip()}. "
                "Expected a commit of this repository, such as one that `git log` shows."
            )
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        archive.unlink()
        compileall.compile_dir(folder, quiet=2)
        yield Path(folder)
