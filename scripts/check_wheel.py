"""Build the sdist and the wheel, install the wheel as a user would, and check that it is whole and works.

A checkout finds its data beside the package, so only an installed wheel shows whether the data was packed. The wheel is
built from the sdist, which shows the same of the sdist; so is then the wheel with compiled modules, which takes the
place of the first. ``scripts/smoke.py`` is run in an environment of each Python that the package says it is for, as far
as the machine has them, and in one with neither jaxlib nor numpy. Run it with the Python of the development
environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from vhlo_tools.releases import find_interpreters

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ((3, 11), (3, 12), (3, 13))
#: What the package requires that runs wherever Python does; the rest are numpy, ml_dtypes and jaxlib.
PURE = ("click", "msgspec", "packaging", "pathspec", "rich")
LIST_SPECS = """
from vhlo_tools.spec.data import dialect_specs

def files(folder, prefix=""):
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from files(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name

print(*sorted(files(dialect_specs())), sep="\\n")
"""


#: Prints the number of files that the wheel has parsed; those that a command would keep do not count.
READ_SNAPSHOT = """
import sys
sys.dont_write_bytecode = True
from vhlo_tools.spec import data as snapshot
from vhlo_tools.spec.data import dialect_specs

snapshot.kept_place = lambda: None
print(len(snapshot.read_tables(dialect_specs())))
"""


class WheelError(Exception):
    """The wheel lacks something, or a step on the way to it failed."""


def check_wheel(root: Path, work: Path) -> None:
    """Build in ``work`` from the checkout ``root``, and raise WheelError unless the installed wheel is whole."""
    print("building sdist and wheel", flush=True)
    output(work, sys.executable, "-m", "build", "--outdir", str(work / "dist"), str(root))
    (wheel,) = (work / "dist").glob("*.whl")

    print(f"installing {wheel.name} into a fresh environment", flush=True)
    programs = work / "environment" / "bin"
    python = str(programs / "python")
    output(work, sys.executable, "-m", "venv", str(programs.parent))
    output(work, python, "-I", "-m", "pip", "--disable-pip-version-check", "--quiet", "install", str(wheel))

    installed = output(work, python, "-I", "-c", LIST_SPECS).splitlines()
    specs = root / "dialect_specs"
    missing = {path.relative_to(specs).as_posix() for path in specs.rglob("*.*") if path.is_file()} - set(installed)
    if missing:
        raise WheelError(f"{wheel.name} lacks files of dialect_specs/: {', '.join(sorted(missing))}")
    if output(work, python, "-I", "-c", READ_SNAPSHOT).strip() != str(len(list(specs.rglob("*.toml")))):
        raise WheelError(f"{wheel.name} lacks the parsed files of dialect_specs/, or has those of others")
    if not output(work, str(programs / "vhlo"), "targets").strip():
        raise WheelError("`vhlo targets` of the installed wheel printed nothing")
    page = work / "page.html"
    output(work, str(programs / "vhlo"), "report", str(root / "examples/keras_mlp.mlirbc"), "-o", str(page))
    # Who builds without npm has pages without pictures, and was told so.
    if shutil.which("npm") and "elkjs" not in page.read_text(encoding="utf-8"):
        raise WheelError(f"{wheel.name} lacks what draws graphs in pages: see scripts/page_assets.py")
    print(
        f"{wheel.name} is whole: {len(installed)} files of dialect_specs; `vhlo targets` and `vhlo report` run",
        flush=True,
    )
    smoke(root, work, python)
    check_compiled_wheel(root, work, programs)
    check_pythons(root, work, wheel)


def check_pythons(root: Path, work: Path, wheel: Path) -> None:
    """Install the wheel under each other Python of this machine, and where there is no binding, and try it there."""
    interpreters = find_interpreters(PYTHONS[0])
    for number, version in enumerate(PYTHONS):
        shown = f"{version[0]}.{version[1]}"
        if (interpreter := interpreters.get(version)) is None:
            print(f"this machine has no CPython {shown}: the wheel was not tried under it", flush=True)
            continue
        if version != sys.version_info[:2]:
            python = environment(work / shown, interpreter)
            output(work, python, "-I", "-m", "pip", "--quiet", "install", "--no-compile", str(wheel))
            smoke(root, work, python)
        if number == 0:
            python = environment(work / "pure", interpreter)
            for what in ([f"{wheel}", "--no-deps"], PURE):
                output(work, python, "-I", "-m", "pip", "--quiet", "install", "--no-compile", *what)
            smoke(root, work, python, "--without-bindings")


def environment(place: Path, interpreter: Path | str) -> str:
    """Make an environment with pip, and return its Python."""
    output(place.parent, str(interpreter), "-m", "venv", str(place))
    return str(place / "bin" / "python")


def smoke(root: Path, work: Path, python: str, *options: str) -> None:
    """Try the package that an environment has, and raise WheelError unless it works."""
    print(output(work, python, str(root / "scripts" / "smoke.py"), *options).strip(), flush=True)


def check_compiled_wheel(root: Path, work: Path, programs: Path) -> None:
    """Build the wheel with compiled modules from the sdist in ``work``, and raise WheelError unless both do the same.

    Args:
        root: The checkout.
        work: The folder with the sdist.
        programs: The programs of an environment with the other wheel, which this one replaces.
    """
    vhlo, outputs = str(programs / "vhlo"), [work / "plain.mlirbc", work / "compiled.mlirbc"]
    example = work / "example.mlirbc"
    output(work, vhlo, "serialize", str(root / "examples/saxpy.mlir"), "--target", "1.9.0", "-o", str(example))
    output(work, vhlo, "retarget", str(example), "--target", "0.14.0", "-o", str(outputs[0]))
    (sdist,) = (work / "dist").glob("*.tar.gz")
    print(f"building the wheel with compiled modules from {sdist.name}", flush=True)
    folder, python = work / "compiled", str(programs / "python")
    wheel = build_compiled(sdist, folder)
    output(work, python, "-I", "-m", "pip", "--quiet", "install", "--force-reinstall", "--no-deps", str(wheel))
    if not output(work, vhlo, "--version").endswith("(compiled)\n"):
        raise WheelError(f"{wheel.name} was built with VHLO_TOOLS_COMPILE=1, but its modules are not compiled")
    output(work, vhlo, "retarget", str(example), "--target", "0.14.0", "-o", str(outputs[1]))
    if len({path.read_bytes() for path in outputs}) != 1:
        raise WheelError(f"`vhlo retarget` of {wheel.name} writes other bytes than without compiled modules")
    print(f"{wheel.name} writes the same")


def build_compiled(source: Path, folder: Path) -> Path:
    """Return the wheel with compiled modules, built from a checkout or an sdist into ``folder``."""
    if source.is_dir():
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(source)]
    else:
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            str(folder),
            str(source),
        ]
    output(source.parent, *command, variables={"VHLO_TOOLS_COMPILE": "1"})
    (wheel,) = folder.glob("*.whl")
    return wheel


def output(cwd: Path, *command: str, variables: Mapping[str, str] | None = None) -> str:
    """Run a command away from the checkout, with further variables, and return its standard output."""
    result = subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(variables or {})},
    )
    if result.returncode:
        raise WheelError(f"{' '.join(command)} failed ({result.returncode}):\n{result.stdout}{result.stderr}")
    return result.stdout


def main() -> int:
    """Check the wheel of this checkout."""
    with tempfile.TemporaryDirectory(prefix="vhlo-tools-wheel-") as work:
        try:
            check_wheel(ROOT, Path(work))
        except WheelError as error:
            print(f"check_wheel: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
