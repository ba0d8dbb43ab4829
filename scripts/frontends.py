"""Run the tests of integrations with their real frameworks: `frontends.py [NAME ...]`, by default all.

Each framework has an environment of its own, `.venv-NAME` in the checkout, with nothing in it but this package, the
extras and pytest. Keras is tested in each of them, with that framework as its backend.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = Path("tests") / "frontends"
NAMES = ("jax", "torch", "tensorflow")
#: What the tests of a framework need beside it.
EXTRAS = {"jax": ("jax-test",), "torch": ("torchax", "torch-test")}


def run_tests(name: str, arguments: list[str]) -> int:
    """Run the tests of one framework in its environment, made now if it is not there; return pytest's exit code."""
    extras = [word for extra in (*EXTRAS.get(name, ()), "frontend-test", "keras", name) for word in ("--extra", extra)]
    bootstrap = [sys.executable, "-I", "scripts/bootstrap.py", "--venv", str(ROOT / f".venv-{name}"), *extras]
    # A framework takes seconds to import: two processes are enough, and each runs whole files.
    pytest = ["python", "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile"]
    pytest += [str(TESTS / name), str(TESTS / "keras"), *arguments]
    settings = {
        # As a URL, for pip takes a space to separate two files.
        "PIP_CONSTRAINT": (ROOT / TESTS / "constraints.txt").as_uri(),
        "KERAS_BACKEND": name,
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    return subprocess.run([*bootstrap, *pytest], cwd=ROOT, env={**os.environ, **settings}, check=False).returncode


def main() -> int:
    """Run the tests of the frameworks that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME", help=", ".join(NAMES))
    options, arguments = parser.parse_known_args()
    failed = [name for name in options.names or NAMES if run_tests(name, arguments)]
    if failed:
        print(f"frontends: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
