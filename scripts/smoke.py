"""Try an installed vhlo_tools as a user would: ``python smoke.py [--without-bindings]``, by the Python that has it.

It needs the folder ``examples/`` beside the one that it stands in, and nothing else of a checkout. What needs no MLIR
must do its work with neither numpy nor jaxlib, as if they were not installed; other commands must then say what is
missing. ``--without-bindings`` tries only this.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
# Not `-m`: the folder of a checkout is no place to look in.
RUN = "import sys; from vhlo_tools.cli.entry import main; sys.exit(main())"
#: Hides what is not to be needed.
ALONE = (
    "import sys\n"
    "class Refuse:\n"
    "    def find_spec(self, name, path=None, target=None):\n"
    "        if name.partition('.')[0] in ('jaxlib', 'numpy', 'ml_dtypes'):\n"
    "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
    "sys.meta_path.insert(0, Refuse())\n"
)


class SmokeError(Exception):
    """A command did not do what it must."""


def vhlo(folder: Path, *arguments: str, code: int = 0, alone: bool = False) -> str:
    """Run a command, and return what it prints; raise SmokeError unless it exits with ``code``, without a traceback."""
    # No word of another checkout, and no screen that is narrower than the words.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"COLUMNS": "200", "PYTHONUTF8": "1", "VHLO_TOOLS_CACHE": str(folder / "cache")}
    command = [sys.executable, "-I", "-X", "utf8", "-c", ALONE + RUN if alone else RUN, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=600
    )
    said = done.stdout + done.stderr
    if done.returncode != code or "Traceback" in said:
        raise SmokeError(f"vhlo {' '.join(arguments)}: exit code {done.returncode}, expected {code}:\n{said}")
    return said


def expect(condition: bool, what: str) -> None:
    """Raise SmokeError unless a condition holds."""
    if not condition:
        raise SmokeError(what)


def try_bytes(folder: Path) -> None:
    """Try what needs no bindings."""
    artifact = folder / "keras_mlp.mlirbc"
    artifact.write_bytes((EXAMPLES / "keras_mlp.mlirbc").read_bytes())
    exported = folder / "symbolic.jax_export"
    exported.write_bytes((EXAMPLES / "symbolic_export.jax_export").read_bytes())

    def run(*arguments: str, code: int = 0) -> str:
        return vhlo(folder, *arguments, code=code, alone=True)

    version = json.loads(run("inspect", artifact.name, "--format", "json"))["version"]
    expect(
        "jax" in run("inspect", exported.name).lower(), "`vhlo inspect` does not say that a file is one of jax.export"
    )
    run("check", artifact.name, "--readable-by", "jaxlib==0.8.3")
    expect("0.9.0" in run("targets", "0.9.0"), "`vhlo targets` does not name a version")
    run("retarget", artifact.name, "--target", "0.14.0", "-o", "older.mlirbc")
    run("retarget", "older.mlirbc", "--target", version, "-o", "again.mlirbc")
    run("diff", artifact.name, "again.mlirbc")
    older = (folder / "older.mlirbc").read_bytes()
    expect((folder / "again.mlirbc").read_bytes() != older, "`vhlo retarget` changed nothing")
    run("retarget", "--strip-debug-info", artifact.name, "-o", "small.mlirbc")
    run("deserialize", artifact.name, "--emit", "vhlo", "-o", "program.mlir")
    expect("vhlo." in (folder / "program.mlir").read_text(encoding="utf-8"), "there is no VHLO in the text")
    run("alias", "show", artifact.name)
    run("constants", "list", artifact.name)
    run("manifest", "write", artifact.name)
    run("manifest", "check", artifact.name)
    expect("dot_general" in run("spec", "show", "dot_general"), "`vhlo spec show` does not show an op")

    (folder / "cut.mlirbc").write_bytes(artifact.read_bytes()[:100])
    expect("cut.mlirbc" in run("inspect", "cut.mlirbc", code=2), "a damaged file is not named")

    store = folder / "store"
    store.mkdir()
    for name in ("a.mlirbc", "b.mlirbc"):
        (store / name).write_bytes(artifact.read_bytes())
    run("migrate", "store", "--target", "0.14.0")
    expect(
        {path.read_bytes() for path in store.glob("*.mlirbc")} == {older},
        "`vhlo migrate` does not write what `vhlo retarget` does",
    )
    for command in (["serialize", str(EXAMPLES / "saxpy.mlir"), "-o", "x.mlirbc"], ["run", artifact.name]):
        expect("is not installed" in run(*command, code=2), f"`vhlo {command[0]}` does not say what is missing")


def try_programs(folder: Path) -> None:
    """Try what needs bindings: a program written, read, run and compared."""
    saxpy = str(EXAMPLES / "saxpy.mlir")
    vhlo(folder, "serialize", saxpy, "--target", "1.9.0", "-o", "saxpy.mlirbc")
    expect("stablehlo." in vhlo(folder, "deserialize", "saxpy.mlirbc"), "there is no StableHLO in the text")
    expect("ok for" in vhlo(folder, "check", saxpy, "--target", "12w"), "`vhlo check` says nothing of a good program")
    vhlo(folder, "retarget", "saxpy.mlirbc", "--target", "0.14.0", "-o", "older.saxpy.mlirbc")
    for engine in ("reference", "xla"):
        said = vhlo(folder, "run", "older.saxpy.mlirbc", "--engine", engine, *INPUTS)
        expect("7" in said, f"`vhlo run` on {engine} computes something else:\n{said}")
    vhlo(folder, "verify", "saxpy.mlirbc", "older.saxpy.mlirbc")


#: The inputs of saxpy: 2 * [3, 3, 3, 3] + [1, 1, 1, 1].
INPUTS = ("-i", "2.0", "-i", "[3.0, 3.0, 3.0, 3.0]", "-i", "[1.0, 1.0, 1.0, 1.0]")


def main(arguments: Sequence[str] | None = None) -> int:
    """Try it."""
    parser = argparse.ArgumentParser(description="try an installed vhlo_tools")
    parser.add_argument("--without-bindings", action="store_true", help="try only what needs no MLIR")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="vhlo-tools-smoke-") as name:
        folder = Path(name)
        try:
            version = vhlo(folder, "--version").strip()
            try_bytes(folder)
            if not options.without_bindings:
                try_programs(folder)
        except SmokeError as error:
            print(f"smoke: {error}", file=sys.stderr)
            return 1
    tried = "without bindings" if options.without_bindings else "with bindings"
    print(f"{version} works on Python {sys.version.split()[0]}, {tried}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
