"""Run tests of what is compiled, and of what walks over it, on compiled modules: ``compiled.py [PYTEST ARGUMENT ...]``.

A wheel with compiled modules is built from the checkout, and unpacked into a folder that stands before the checkout on
the path of the tests. Paths among the arguments take the place of :data:`TESTS`. Run it with the Python of the
development environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from check_wheel import WheelError, build_compiled, output

ROOT = Path(__file__).resolve().parents[1]
#: What reads, writes and walks over programs, and what gives it hostile bytes.
TESTS = (
    "tests/artifact",
    "tests/bytecode",
    "tests/cli/test_main.py",
    "tests/conformance/test_fuzz.py",
    "tests/conformance/test_fuzz_regressions.py",
)
_CHECK = "from vhlo_tools.bytecode import is_compiled; print(is_compiled())"


def main() -> int:
    """Build the wheel and run the tests."""
    arguments = sys.argv[1:]
    named = [each for each in arguments if (ROOT / each.partition("::")[0]).exists()]
    with tempfile.TemporaryDirectory(prefix="vhlo-tools-compiled-") as work:
        package = Path(work) / "package"
        # Without the folder in which Python is started, which is the checkout.
        variables = {"PYTHONPATH": str(package), "PYTHONSAFEPATH": "1"}
        try:
            with zipfile.ZipFile(build_compiled(ROOT, Path(work) / "dist")) as wheel:
                wheel.extractall(package)
            if output(ROOT, sys.executable, "-c", _CHECK, variables=variables) != "True\n":
                raise WheelError("the tests would run on modules that are not compiled")
        except WheelError as error:
            print(f"compiled: {error}", file=sys.stderr)
            return 1
        options = ["-p", "no:cacheprovider", "-n", "auto", "--dist", "worksteal", "-m", "not releases"]
        command = [sys.executable, "-m", "pytest", *options, *arguments, *([] if named else TESTS)]
        return subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
