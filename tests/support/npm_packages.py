"""Files of packages of npm, fetched once into the cache: what reads here what others wrote."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory


def npm_file(package: str, member: str) -> Path:
    """Return a file of a package, which npm fetches if it is not in the cache.

    Args:
        package: The package with its version: `axe-core@4.14.1`.
        member: The path of the file in it.
    """
    cache = Path(os.environ.get("VHLO_TOOLS_CACHE") or Path.home() / ".cache" / "vhlo-tools")
    kept = cache / package.replace("@", "-").replace("/", "-").lstrip("-") / Path(member).name
    if not kept.exists():
        npm = shutil.which("npm")
        assert npm is not None, f"npm, which fetches {package}, is not on this machine: install node and npm"
        kept.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache) as folder:
            command = [npm, "pack", "--silent", package]
            packed = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
            (archive,) = packed.stdout.split()
            with tarfile.open(fileobj=io.BytesIO(Path(folder, archive).read_bytes())) as files:
                held = files.extractfile(f"package/{member}")
                assert held is not None, f"{package} has no {member}"
                # Renamed, for several processes may do this at a time.
                made = Path(folder, "made")
                made.write_bytes(held.read())
            made.replace(kept)
    return kept
