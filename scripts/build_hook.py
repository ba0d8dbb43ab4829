"""Run by hatchling when it builds a wheel: adds the parsed files of ``dialect_specs/`` as a module.

Without it, an installed command would parse them on every run: ``vhlo_tools/dialect/snapshot.py`` says more.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

__all__ = ["SnapshotHook"]


class SnapshotHook(BuildHookInterface[Any]):  # type: ignore[misc]  # a package of the build alone
    """Makes the snapshot, in a folder that is gone after the build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the snapshot to the files of a wheel; an editable one reads the checkout, which keeps its own."""
        if version == "editable":
            return
        root = Path(self.root)
        # The package needs no other for this; the environment of a build has none.
        sys.path.insert(0, str(root))
        from vhlo_tools.dialect.snapshot import SHIPPED, files_below, snapshot_source

        self._folder = TemporaryDirectory(prefix="vhlo-tools-")
        made = Path(self._folder.name) / f"{SHIPPED}.py"
        made.write_text(snapshot_source(files_below(root / "dialect_specs")), encoding="utf-8")
        build_data["force_include"][str(made)] = f"vhlo_tools/dialect/{SHIPPED}.py"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made for the build."""
        if version != "editable":
            self._folder.cleanup()
