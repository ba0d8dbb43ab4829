"""Run the core of the suite with data that end at an older version: ``cut_suite.py VERSION [PYTEST ARGUMENT ...]``.

A jaxlib of tomorrow has versions of StableHLO that our data do not. That day is had today by taking the newest versions
out of the data and leaving the library as it is: a copy of the checkout, with what is not committed yet, gets the
specification as it was at VERSION (``vhlo_tools.dialect.cut``), and its tests run there with this interpreter. What
runs are the folders of :data:`CORE`, or the paths among the arguments; tests marked ``whole_data`` are left out.
The exit code is that of pytest.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from vhlo_tools.dialect import cut, newest_version
from vhlo_tools.errors import VhloToolsError
from vhlo_tools.version import Version

ROOT: Final = Path(__file__).resolve().parents[1]
#: What runs: whatever reads, moves, explains or executes programs, and so meets what the library knows and we do not.
CORE: Final = (
    "tests/aliasing",
    "tests/artifact",
    "tests/bindings",
    "tests/bytecode",
    "tests/cli",
    "tests/compat",
    "tests/convert",
    "tests/dialect",
    "tests/differencing",
    "tests/execution",
    "tests/expansion",
    "tests/externalization",
    "tests/formats",
    "tests/gate",
    "tests/golden",
    "tests/legalize",
    "tests/manifests",
    "tests/migration",
    "tests/program",
    "tests/report",
    "tests/retargeting",
    "tests/rewriting",
    "tests/stores",
    "tests/upstream",
    "tests/verification",
)


def copy_checkout(destination: Path) -> None:
    """Copy what git lists of the checkout, and what it would list if it were added."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    named = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, named):
        source = ROOT / name
        if source.is_file():  # What is deleted and not committed is listed too.
            place = destination / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)


def main() -> int:
    """Make the copy, cut its data, and run the tests in it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("version", type=Version)
    options, arguments = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="vhlo-cut-") as folder:
        copy = Path(folder) / "checkout"
        copy_checkout(copy)
        shutil.rmtree(copy / "dialect_specs")
        try:
            cut(ROOT / "dialect_specs", options.version, copy / "dialect_specs")
        except VhloToolsError as error:
            parser.error(str(error))
        print(f"the data end at {options.version.minor_release}, not {newest_version()}", flush=True)
        named = [each for each in arguments if (ROOT / each.partition("::")[0]).exists()]
        tests = ["-n", "auto", "--dist", "worksteal", "-m", "not whole_data", *arguments, *([] if named else CORE)]
        # The copy comes before the checkout, where this package may be installed from.
        path = os.pathsep.join(filter(None, [str(copy), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests]
        return subprocess.run(command, cwd=copy, env={**os.environ, "PYTHONPATH": path}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
