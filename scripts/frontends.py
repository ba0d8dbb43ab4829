"""Run the tests of integrations with their real packages: `frontends.py [NAME ...]`, by default all.

Each name has an environment of its own, `.venv-NAME` in the checkout, with nothing in it but this package, extras,
dependency groups and pytest. `torch-newest` is the newest torch that pip resolves, with torch-mlir. Keras is tested in
each environment of a framework, with that framework as its backend. `scale` is what work on very many files needs:
tables, clusters, remote stores; what signs manifests is tested there too. The engine `iree` is tested in the
environment of JAX, on whose primitives it is tried, and so are plugins of PJRT. `pages` opens pages in Chromium, which
`scripts/find_chromium.py` finds or installs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = Path("tests") / "frontends"
FRAMEWORKS = ("jax", "torch", "tensorflow")
#: The newest release that pip resolves, with what does not bound it.
NEWEST = "torch-newest"
NAMES = (*FRAMEWORKS, NEWEST, "scale", "pages")
#: The extras and dependency groups of an environment, beside pytest and, for a framework, Keras.
PARTS = {
    "jax": ("jax", "jax-test", "iree", "iree-test", "plugin-test"),
    "torch": ("torch", "torchax", "torch-test"),
    "tensorflow": ("tensorflow",),
    NEWEST: ("torch",),
    "scale": ("distributed", "releases", "remote", "remote-test", "scale-test", "signing"),
    "pages": ("browser-test", "model-explorer", "notebook-test", "svg"),
}
#: The folders of tests of an environment, where they are not that of its name alone.
FOLDERS = {
    "jax": ("jax", "iree", "plugin"),
    NEWEST: ("torch_newest",),
    "pages": ("pages", "viewers"),
    "scale": ("scale", "signing"),
}


def bootstrap(name: str) -> tuple[list[str], dict[str, str]]:
    """Return the command that makes the environment of a name, if it is not there, and runs what follows in it.

    And the variables that it needs.
    """
    keras = ("keras",) if name in FRAMEWORKS else ()
    parts = [word for part in ("frontend-test", *PARTS[name], *keras) for word in ("--with", part)]
    variables = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    if name != NEWEST:
        # As a URL, for pip takes a space to separate two files.
        variables["PIP_CONSTRAINT"] = (ROOT / TESTS / "constraints.txt").as_uri()
    if keras:
        variables["KERAS_BACKEND"] = name
    command = [sys.executable, "-I", "scripts/bootstrap.py", "--venv", str(ROOT / f".venv-{name}"), *parts]
    return command, {**os.environ, **variables}


def prepare(name: str) -> int:
    """Make the environment of one name, if it is not there; return the exit code."""
    command, variables = bootstrap(name)
    return subprocess.run([*command, "python", "--version"], cwd=ROOT, env=variables, check=False).returncode


def run_tests(name: str, arguments: list[str]) -> int:
    """Run the tests of one name in its environment, made now if it is not there; return pytest's exit code."""
    command, variables = bootstrap(name)
    # A framework takes seconds to import, and its tests compute: two processes, which share single tests, otherwise one
    # would wait minutes for the other's longest file. Clusters and servers are shared by the tests of a file, which
    # mostly wait for them.
    sharing = ("4", "loadfile") if name == "scale" else ("2", "worksteal")
    pytest = ["python", "-m", "pytest", "-p", "no:cacheprovider", "-n", sharing[0], "--dist", sharing[1]]
    keras = ("keras",) if name in FRAMEWORKS else ()
    pytest += [*(str(TESTS / folder) for folder in (*FOLDERS.get(name, (name,)), *keras)), *arguments]
    return subprocess.run([*command, *pytest], cwd=ROOT, env=variables, check=False).returncode


def main() -> int:
    """Run the tests of the environments that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--prepare", action="store_true", help="only make the environments")
    options, arguments = parser.parse_known_args()
    names = options.names or NAMES
    failed = [name for name in names if (prepare(name) if options.prepare else run_tests(name, arguments))]
    if failed:
        print(f"frontends: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
