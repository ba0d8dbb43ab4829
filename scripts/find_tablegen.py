"""Print the folder of an ``llvm-tblgen`` that has MLIR's files beside it, for ``PATH``.

It is the installed one; where there is none, Debian's or Ubuntu's packages are fetched with ``apt-get download`` and
unpacked into the cache of environments, 32 MB of them, which needs no root.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

LLVM: Final = "usr/lib/llvm-19"
# The sandbox is for root alone, who could not read in it what the package is downloaded to.
FETCH: Final = ("apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root")
#: What is taken from each package, by how its path begins, and the folder of it below that of LLVM.
PARTS: Final = {
    "llvm-19": (f"{LLVM}/bin/llvm-tblgen", "bin"),
    "libmlir-19-dev": (f"{LLVM}/include/mlir/", "include/mlir"),
    "libz3-4": ("usr/lib/", "lib"),
}


def installed() -> Path | None:
    """Return the folder of the installed program, if there is one with MLIR's files."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from vhlo_tools.errors import InvalidSpecificationError
    from vhlo_tools.spec_tools import find_tablegen

    try:
        return find_tablegen().program.parent
    except InvalidSpecificationError:
        return None


def unpack(package: str, begin: str, folder: Path) -> None:
    """Unpack the files of a package whose paths begin so, TableGen's, programs and libraries alone, into a folder."""
    with TemporaryDirectory() as place:
        subprocess.run([*FETCH, package], cwd=place, check=True, stdout=sys.stderr, timeout=600)
        (fetched,) = Path(place).glob("*.deb")
        data = subprocess.run(["dpkg-deb", "--fsys-tarfile", fetched], check=True, capture_output=True, timeout=600)
    with tarfile.open(fileobj=io.BytesIO(data.stdout)) as files:
        for file in files:
            path = file.name.removeprefix("./")
            if not file.isfile() or not path.startswith(begin) or ("/include/" in path and not path.endswith(".td")):
                continue
            # The program finds its libraries beside it; the name by which it asks for one has one number.
            name = path.removeprefix(begin) if begin.endswith("mlir/") else Path(path).name
            made = folder / (name[: name.index(".so.") + 5] if ".so." in name else name)
            made.parent.mkdir(parents=True, exist_ok=True)
            content = files.extractfile(file)
            assert content is not None
            made.write_bytes(content.read())
            made.chmod(file.mode)


def fetch(cache: Path) -> Path:
    """Fetch the program, unless it was; return its folder."""
    place = cache / "llvm-tblgen-19"
    if not place.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache) as making:
            for package, (begin, folder) in PARTS.items():
                unpack(package, begin, Path(making, "made", folder))
            Path(making, "made").rename(place)
    return place / "bin"


def main() -> int:
    """Find or fetch the program; return 1 if neither can be done here."""
    folder = installed()
    if folder is None:
        if missing := [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]:
            print(f"llvm-tblgen is not installed, and without {missing[0]} not fetched", file=sys.stderr)
            return 1
        try:
            folder = fetch(Path(os.environ.get("VHLO_TOOLS_CACHE") or Path.home() / ".cache" / "vhlo-tools"))
        except subprocess.CalledProcessError as error:
            print(f"llvm-tblgen is not installed, and could not be fetched: {error}", file=sys.stderr)
            return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
