"""Write the table of the names that rooms export, from what their doors import for type checkers.

``doors.py`` writes ``vhlo_tools/exports.py``; ``doors.py --check`` exits with 1 if it is not what would be written. A
door is an ``__init__.py`` that calls ``lazy_exports``. It needs nothing that is installed.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TABLE: Final = ROOT / "vhlo_tools" / "exports.py"
_HEAD: Final = '''"""Names that rooms export, by their modules. Written by ``scripts/doors.py``."""

from typing import Final

EXPORTS: Final = {
'''


def exports() -> dict[str, dict[str, list[str]]]:
    """Return the names that each door exports, by their modules."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(ROOT.glob("vhlo_tools/**/__init__.py")):
        text = path.read_text(encoding="utf-8")
        if "lazy_exports(__name__)" not in text:
            continue
        blocks = (each for each in ast.parse(text).body if isinstance(each, ast.If))
        imports = (each for block in blocks for each in block.body if isinstance(each, ast.ImportFrom))
        door = ".".join(path.parent.relative_to(ROOT).parts)
        found[door] = {each.module or "": sorted(alias.name for alias in each.names) for each in imports}
    return found


def table() -> str:
    """Return the text of the table: a line for each module."""
    lines = [_HEAD]
    for door, modules in exports().items():
        lines.append(f'    "{door}": {{\n')
        lines += (f'        "{module}": "{" ".join(names)}",\n' for module, names in sorted(modules.items()))
        lines.append("    },\n")
    return "".join([*lines, "}\n"])


def main() -> int:
    """Write the table, or check it."""
    if sys.argv[1:] == ["--check"]:
        if TABLE.read_text(encoding="utf-8") == table():
            return 0
        print(f"{TABLE.relative_to(ROOT)} is not what the doors say: run scripts/doors.py")
        return 1
    TABLE.write_text(table(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
