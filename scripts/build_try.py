"""Build the page in which one tries the toolkit without installing it: ``build_try.py [FOLDER]``.

By default into ``build/site/try``. It is ``site/try/`` with Pyodide, which npm fetches, and the package in an archive:
static files, which any server gives. Bindings are not in it, nor numpy: what it does needs neither.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from check_pyodide import ROOT, cache_folder, install
from page_assets import AssetError, ensure_assets

SOURCES: Final = ROOT / "site" / "try"
SAMPLE: Final = ROOT / "examples" / "keras_mlp.mlirbc"
#: What Pyodide needs to start, of its package.
PYODIDE_FILES: Final = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "pyodide-lock.json",
    "python_stdlib.zip",
)
#: Rooms of which nothing is asked in a browser: they need MLIR, numpy or processes.
_LEFT_OUT: Final = ("bindings", "cli", "integrations", "upstream")


def build(folder: Path) -> int:
    """Build the page; return the number of bytes that a browser loads.

    Args:
        folder: Where to; what is there is replaced.

    Raises:
        AssetError: If elkjs cannot be had.
        FileNotFoundError: If npm is not on this machine.
    """
    ensure_assets()
    pyodide = install(cache_folder()).parent
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SAMPLE, folder / SAMPLE.name)
    (folder / "pyodide").mkdir()
    for name in PYODIDE_FILES:
        shutil.copy(pyodide / name, folder / "pyodide" / name)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    with zipfile.ZipFile(folder / "vhlo_tools.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, name in _package():
            archive.write(path, name)
        archive.writestr("made.toml", f'version = "{version}"\n')
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _package() -> Iterator[tuple[Path, str]]:
    """Yield the files of the package, each with its name in the archive."""
    for path in sorted((ROOT / "vhlo_tools").rglob("*")):
        inside = path.relative_to(ROOT / "vhlo_tools")
        if path.is_file() and "__pycache__" not in inside.parts and inside.parts[0] not in _LEFT_OUT:
            yield path, f"vhlo_tools/{inside.as_posix()}"
    for path in sorted((ROOT / "dialect_specs").rglob("*")):
        if path.is_file():
            yield path, f"vhlo_tools/dialect_specs/{path.relative_to(ROOT / 'dialect_specs').as_posix()}"


def main() -> int:
    """Build the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "site" / "try")
    options = parser.parse_args()
    try:
        size = build(options.folder)
    except (OSError, AssetError, subprocess.SubprocessError) as error:
        print(f"build_try: {error}", file=sys.stderr)
        return 2
    print(f"{options.folder}: {size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
