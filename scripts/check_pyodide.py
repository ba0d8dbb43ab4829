"""Check the core that needs only the standard library under the CPython of Pyodide, which is 3.14, in node.

``check_pyodide.py [--every N]`` has ``scripts/bytes_core.py`` read and move every so many artifacts of the sample under
this Python and under that of Pyodide, and compares. It needs node and npm, which fetches Pyodide, 14 MB, into
the cache of environments once. There are no packages in it, neither numpy nor the bindings.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PYODIDE = "pyodide@314.0.7"
DRIVER = """
const [module, checkout, every] = process.argv.slice(2);
const { loadPyodide } = await import(module);
const python = await loadPyodide();
python.FS.mkdirTree("/checkout");
python.FS.mount(python.FS.filesystems.NODEFS, { root: checkout }, "/checkout");
python.globals.set("arguments", ["bytes_core.py", "/checkout", every].join(" "));
python.runPython(`
import runpy, sys
sys.dont_write_bytecode = True
sys.argv = arguments.split(" ")
runpy.run_path("/checkout/scripts/bytes_core.py", run_name="__main__")
`);
"""


def cache_folder() -> Path:
    """Return the folder in which Pyodide is kept, that of the toolkit."""
    return Path(os.environ.get("VHLO_TOOLS_CACHE") or Path.home() / ".cache" / "vhlo-tools")


def install(cache: Path) -> Path:
    """Install Pyodide with npm, unless it is there; return its module.

    Raises:
        FileNotFoundError: If npm is not on this machine.
    """
    folder = cache / PYODIDE.replace("@", "-")
    module = folder / "node_modules" / "pyodide" / "pyodide.mjs"
    if not module.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise FileNotFoundError("npm, which fetches Pyodide, is not on this machine: install node and npm")
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), PYODIDE]
        subprocess.run(command, check=True, stdout=sys.stderr, timeout=600)
    return module


def run(command: list[str], text: str = "") -> Any:
    """Run a command, and return the JSON of the last line that it prints."""
    ended = subprocess.run(command, input=text, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    return json.loads(ended.stdout.strip().splitlines()[-1])


def main() -> int:
    """Compare the answers of both Pythons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--every", type=int, default=10, help="take every so many artifacts (default: 10)")
    options = parser.parse_args()
    try:
        module = install(cache_folder())
        every = str(options.every)
        there = run(["node", "--input-type=module", "-", module.as_uri(), str(ROOT), every], DRIVER)
        here = run([sys.executable, "-I", "scripts/bytes_core.py", str(ROOT), every])
    except (OSError, subprocess.SubprocessError) as error:
        print(f"check_pyodide: {error}", file=sys.stderr)
        return 2
    files = here["files"]
    differ = [name for name in files if files[name] != there["files"].get(name)]
    for name in differ:
        print(f"{name}: {files[name]} here, {there['files'].get(name)} there")
    answers = sum(map(len, files.values()))
    print(f"{answers} answers on {len(files)} artifacts, Python {here['python']} and {there['python']}: ", end="")
    print(f"those on {len(differ)} artifacts differ" if differ else "the same")
    return 1 if differ or not files else 0


if __name__ == "__main__":
    sys.exit(main())
