"""A copy of a folder of specifications, or of all that a new version changes, to be extended or damaged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "dialect_specs"


def checkout_of(folder: Path) -> Path:
    """Make ``folder`` a copy of this checkout: of the specification, and of the tests of it; the rest is linked."""
    shutil.copytree(OURS, folder / "dialect_specs")
    shutil.copytree(ROOT / "tests" / "spec", folder / "tests" / "spec")
    for file in [*(ROOT / "tests").glob("*.py"), ROOT / "pyproject.toml"]:
        shutil.copy(file, folder / file.relative_to(ROOT))
    for name in ("vhlo_tools", "scripts", "tests/programs", "tests/support"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def run_in_checkout(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a copy, whose package reads the specification beside it."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    # Of all plugins of pytest, each of which takes time to import, `conftest.py` needs one.
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def copy_of(specs: Path, folder: Path) -> Path:
    return shutil.copytree(specs, folder / "specs")


def edit(file: Path, after: str, old: str, new: str) -> None:
    """Replace the first ``old`` behind ``after`` in a file by ``new``."""
    text = file.read_text()
    start = text.index(old, text.index(after) + len(after)) if after else text.index(old)
    file.write_text(text[:start] + new + text[start + len(old) :])


def remove_table(file: Path, after: str, header: str) -> None:
    """Remove the first table with ``header`` behind ``after``, up to the next blank line."""
    text = file.read_text()
    start = text.index(header, text.index(after) + len(after)) if after else text.index(header)
    end = text.find("\n\n", start)
    file.write_text(text[:start].rstrip() + "\n" + (text[end:] if end >= 0 else ""))
