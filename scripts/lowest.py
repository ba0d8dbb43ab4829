"""Run tests of the core with the lowest versions that ``pyproject.toml`` allows: ``lowest.py [PYTEST ARGUMENT ...]``.

The environment, ``.venv-lowest``, has the lowest version of every direct dependency, of the extra ``jax`` and of the
group ``test``, on the oldest Python of this machine that is supported. It is made by uv, for pip has no such
resolution. What is tested is what depends on versions: :data:`TESTS`; paths among the arguments take their place.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import uv
from packaging.requirements import Requirement

from vhlo_tools.releases import find_interpreters

ROOT = Path(__file__).resolve().parents[1]
#: What calls jaxlib, numpy, click and the others in ways of its own. Left out is what is built of these, what reads and
#: writes bytes alone, what runs other releases, and what takes long for its number of programs.
TESTS = (
    "tests/test_errors.py",
    "tests/files/test_atomic_writes.py",
    "tests/test_version.py",
    "tests/test_without_bindings.py",
    "tests/aliasing",
    "tests/artifact",
    "tests/bindings",
    "tests/bytecode/test_identity.py",
    "tests/bytecode/test_printing.py",
    "tests/bytecode/test_text_types.py",
    "tests/cli/test_alias.py",
    "tests/cli/test_check.py",
    "tests/cli/test_completion.py",
    "tests/cli/test_conversion.py",
    "tests/cli/test_inspect.py",
    "tests/cli/test_run.py",
    "tests/cli/test_spec.py",
    "tests/cli/test_targets.py",
    "tests/compat",
    "tests/conversion/test_serialization.py",
    "tests/spec",
    "tests/spec_tools",
    "tests/execution/test_probes.py",
    "tests/execution/reference/test_known_calls.py",
    "tests/execution/reference/test_reference.py",
    "tests/execution/xla/test_host_callbacks.py",
    "tests/gate/test_settings.py",
    "tests/integrations",
    "tests/program/test_hlo_loading.py",
    "tests/conversion",
    "tests/upstream",
)


#: Run in the environment, with requirements as arguments: says which of them is not there.
_CHECK = """
import sys
from importlib.metadata import version
from packaging.version import Version
wrong = [f"{name} is {version(name)}, not {lowest}" for name, lowest in (each.split("==") for each in sys.argv[1:])
         if Version(version(name)) != Version(lowest)]
sys.exit("lowest: the environment has not the lowest versions: " + "; ".join(wrong) if wrong else 0)
"""


def bounds() -> dict[str, str]:
    """Return the lowest version of each dependency of the package, by its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = {}
    for requirement in map(Requirement, project["dependencies"]):
        (lowest,) = (each.version for each in requirement.specifier if each.operator == ">=")
        found[requirement.name.lower().replace("_", "-")] = lowest
    return found


def main() -> int:
    """Make the environment, if it is not there, and run the tests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--prepare", action="store_true", help="only make the environment")
    options, arguments = parser.parse_known_args()
    *_, interpreter = find_interpreters((3, 11)).values()
    names = ["--with", "test", "--with", "jax"]
    command = [str(interpreter), "-I", "scripts/bootstrap.py", "--venv", str(ROOT / ".venv-lowest"), *names]
    variables = {
        **os.environ,
        "UV_RESOLUTION": "lowest-direct",
        "VHLO_TOOLS_UV": os.environ.get("VHLO_TOOLS_UV") or uv.find_uv_bin(),
    }

    def run(*arguments: str) -> int:
        return subprocess.run([*command, "python", *arguments], cwd=ROOT, env=variables, check=False).returncode

    if status := run("-c", _CHECK, *(f"{name}=={lowest}" for name, lowest in bounds().items())):
        return status
    if options.prepare:
        return 0
    named = [each for each in arguments if (ROOT / each.partition("::")[0]).exists()]
    tests = ["-m", "not releases", *arguments, *([] if named else ["--length=short", *TESTS])]
    return run("-m", "pytest", "-p", "no:cacheprovider", "-n", "auto", "--dist", "worksteal", *tests)


if __name__ == "__main__":
    sys.exit(main())
