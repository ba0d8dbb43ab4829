"""Run by hatchling when it builds a wheel: adds what is made from the sources.

What pages contain and npm has, for an sdist and a checkout too: ``scripts/page_assets.py``.

The parsed files of ``dialect_specs/``, as a module. Without it, an installed command would parse them on every run:
``vhlo_tools/spec/data.py`` says more.

And, where the environment has ``VHLO_TOOLS_COMPILE=1``, the modules that ``pyproject.toml`` lists, compiled by mypyc.
They stand beside their sources, which Python then passes over: ``docs/developing.md`` says more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Run where the sources are, with their paths as arguments. The name of the library that all share is that of a module.
_COMPILE = """
import sys
from setuptools import setup
from mypyc.build import mypycify

checks = ["--ignore-missing-imports", "--follow-imports=silent"]
extensions = mypycify([*checks, *sys.argv[1:]], opt_level="3", group_name="vhlo_tools.bytecode.compiled")
setup(name="compiled", packages=[], ext_modules=extensions, script_args=["--quiet", "build_ext", "--inplace"])
"""


class BuildHook(BuildHookInterface[Any]):  # type: ignore[misc]  # a package of the build alone
    """Makes the snapshot and the compiled modules, in a folder that is gone after the build."""

    def dependencies(self) -> list[str]:
        """Return what compiling needs."""
        return list(self.config.get("compilers", ())) if _is_compiling() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them to the files of a wheel; an editable one reads the checkout, which keeps its own snapshot."""
        root = Path(self.root)
        self._fetch(root)
        if version == "editable" or self.target_name != "wheel":
            return
        self._folder = TemporaryDirectory(prefix="vhlo-tools-")
        made = Path(self._folder.name)
        # The package needs no other for this; the environment of a build has none.
        sys.path.insert(0, str(root))
        from vhlo_tools.spec.data import SHIPPED, files_below, snapshot_source

        snapshot = made / f"{SHIPPED}.py"
        snapshot.write_text(snapshot_source(files_below(root / "dialect_specs")), encoding="utf-8")
        build_data["force_include"][str(snapshot)] = f"vhlo_tools/spec/{SHIPPED}.py"
        if _is_compiling():
            for built in _compiled(root, made / "compiled", self.config["compiled"]):
                build_data["force_include"][str(built)] = built.relative_to(made / "compiled").as_posix()
            build_data.update(pure_python=False, infer_tag=True)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made for the build."""
        if version != "editable" and self.target_name == "wheel":
            self._folder.cleanup()

    def _fetch(self, root: Path) -> None:
        """Fetch what pages contain, which is packed with the sources; who has no npm builds a package without it."""
        sys.path.insert(0, str(root / "scripts"))
        from page_assets import AssetError, ensure_assets

        try:
            ensure_assets(root)
        except AssetError as error:
            self.app.display_warning(f"{error}; the pages of `vhlo report` will have no picture of the graph")


def _is_compiling() -> bool:
    return os.environ.get("VHLO_TOOLS_COMPILE", "0") not in ("", "0")


def _compiled(root: Path, folder: Path, modules: list[str]) -> Iterator[Path]:
    """Compile modules in a copy of the package, so that nothing appears in the checkout, and yield the files."""
    shutil.copytree(root / "vhlo_tools", folder / "vhlo_tools", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run([sys.executable, "-c", _COMPILE, *modules], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(
            f"the modules cannot be compiled; without VHLO_TOOLS_COMPILE none is:\n{done.stdout}{done.stderr}"
        )
    for suffix in (".so", ".pyd"):
        yield from (folder / "vhlo_tools").rglob(f"*{suffix}")
