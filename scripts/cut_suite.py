"""Run the core of the suite with data that end at an older version: ``cut_suite.py VERSION [PYTEST ARGUMENT ...]``.

A jaxlib of tomorrow has versions of StableHLO that our data do not. That day is had today by taking the newest versions
out of the data and leaving the library as it is: a copy of the checkout, with what is not committed yet, gets the
specification as it was at VERSION (``vhlo_tools.spec_tools.cut``), and its tests run there with this interpreter. What
runs are the folders of :data:`CORE`, with ``--quick`` the files of :data:`QUICK`, or the paths among the arguments;
tests marked ``whole_data`` are left out. The exit code is that of pytest.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from vhlo_tools.errors import VhloToolsError
from vhlo_tools.spec import newest_version
from vhlo_tools.spec_tools import cut
from vhlo_tools.version import Version

ROOT: Final = Path(__file__).resolve().parents[1]
#: What runs: whatever reads, moves, explains or executes programs, and so meets what the library knows and we do not.
CORE: Final = (
    "tests/aliasing",
    "tests/artifact",
    "tests/bytecode",
    "tests/cli",
    "tests/compat",
    *sorted(str(each.relative_to(ROOT)) for each in (ROOT / "tests" / "conversion").glob("test_*.py")),
    "tests/execution",
    "tests/conversion/expansion/test_composites.py",
    "tests/conversion/expansion/test_narrow_floats.py",
    "tests/conversion/expansion/test_signatures.py",
    "tests/conversion/expansion/test_tangent.py",
    "tests/conversion/expansion/test_use.py",
    "tests/files",
    "tests/gate",
    "tests/program",
    "tests/stores",
    "tests/upstream",
    "tests/verification",
)
#: What does not run, and why: it would show nothing of that day, or nothing that the core does not show.
LEFT_OUT: Final[Mapping[str, str]] = {
    "artifacts": "the archive is of what releases wrote, and is compared with the whole data",
    "bindings": "calls the library, and asks the data only for releases to name",
    "conformance": "long comparisons of the whole data with the library",
    "corpus_tools": "makes the archive",
    "docs": "examples show the newest versions",
    "examples": "what made the examples",
    "conversion/expansion": "expansions are of features that the data must have; but for some of features that are old",
    "findings": "faults of libraries, each of a release that the data must have",
    "frontends": "frameworks, in environments of their own",
    "integrations": "needs frameworks for what a version changes",
    "mutation": "tests of tests",
    "programs": "no tests",
    "releases": "releases in environments",
    "scripts": "what a person runs, on the whole data",
    "site": "pages that are generated from the whole data",
    "spec": "tests the newest data themselves, version by version",
    "spec_tools": "tools for the newest data, which they compare with the library",
}
#: Of the core, what CI runs at each cut: every way by which a version goes in or out, without what takes long.
QUICK: Final = (
    "tests/aliasing",
    "tests/artifact/test_artifact.py",
    "tests/artifact/test_artifact_aliases.py",
    "tests/cli/test_alias.py",
    "tests/cli/test_check.py",
    "tests/cli/test_conversion.py",
    "tests/cli/test_inspect.py",
    "tests/compat/test_requirements.py",
    "tests/compat/test_target_grammar.py",
    "tests/conversion/test_serialization.py",
    "tests/execution/reference/test_reference.py",
    "tests/conversion/expansion/test_tangent.py",
    "tests/gate/test_evaluation.py",
    "tests/gate/test_fingerprints.py",
    "tests/gate/test_formats.py",
    "tests/stores/migration/test_migrate.py",
    "tests/program/test_attribute_encoding.py",
    "tests/artifact/retargeting/test_retarget.py",
    "tests/stores/test_watch.py",
    "tests/verification/test_engines.py",
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
    parser.add_argument("--quick", action="store_true", help="run what CI runs")
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
        is_named = any((ROOT / each.partition("::")[0]).exists() for each in arguments)
        paths = () if is_named else ("--length=short", *QUICK) if options.quick else CORE
        tests = ["-n", "auto", "--dist", "worksteal", "-m", "not whole_data", *arguments, *paths]
        # The copy comes before the checkout, where this package may be installed from.
        path = os.pathsep.join(filter(None, [str(copy), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests]
        return subprocess.run(command, cwd=copy, env={**os.environ, "PYTHONPATH": path}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
