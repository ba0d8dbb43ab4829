"""Generated tests for the changes of a version: one file for each change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from vhlo_tools.dialect.samples import sample_holding
from vhlo_tools.dialect.scaffold import templates
from vhlo_tools.dialect.scaffold.changes import NewAttribute, NewCase, NewKind, NewOp
from vhlo_tools.dialect.scaffold.document import Edit
from vhlo_tools.errors import InvalidSpecificationError

if TYPE_CHECKING:
    from vhlo_tools.dialect.encodings import EntryKind
    from vhlo_tools.dialect.scaffold.changes import NewEntry
    from vhlo_tools.dialect.specification import Specification
    from vhlo_tools.version import Version


class Generator:
    """Generator of the tests for a version; by default in ``tests/dialect`` beside the folder, or ``tests`` in it."""

    def __init__(self, specs: Specification, tests: Path | None, before: Version, version: Version) -> None:
        folder = Path(str(specs.folder))
        beside = folder.parent / "tests" / "dialect"
        self._specs = specs
        self._tests = tests or (beside if beside.is_dir() else folder / "tests")
        self._fixed = {
            "before": str(before),
            "version": str(version),
            "specs": Path(os.path.relpath(folder.resolve(), self._tests.resolve())).as_posix(),
        }
        # Bytes are read and written by the specification beside the package only.
        self._has_bytes = (folder.parent / "vhlo_tools" / "__init__.py").is_file()
        self._before = before

    def test_of(self, change: NewEntry, feature: str, newer: str = "", default: str = "") -> Edit | None:
        """Return the test file of a change; ``None`` if no op can contain the new type, attribute or case.

        ``newer`` is the first op version with a new attribute, and ``default`` the id of the value that older ones
        imply.
        """
        match change:
            case NewOp(name=name):
                template = templates.presence(self._has_bytes)
                return self._edit(f"{name}_v1", template, f"The op {name}", feature, name=f"{name}_v1")
            case NewAttribute():
                return self._attribute(change, feature, newer, default)
            case NewKind(kind=kind, name=name):
                held = f'sample_structure(SPECS, "{kind}", "{name}")'
                return self._held(kind, f"{name}_{kind}", f"The {kind} {name}", feature, held)
            case NewCase(enum=enum, name=name):
                held = f'{{"attribute": "{enum}", "case": "{name}"}}'
                return self._held("attribute", f"{enum}_{name}", f"{name} of {enum}", feature, held)

    def _held(self, kind: EntryKind, file: str, what: str, feature: str, held: str) -> Edit | None:
        try:
            sample_holding(self._specs, {kind: ""}, self._before)
        except LookupError:
            return None
        return self._edit(file, templates.presence(self._has_bytes, held), what, feature)

    def _attribute(self, change: NewAttribute, feature: str, newer: str, default: str) -> Edit:
        stem, _, number = newer.rpartition("_v")
        names = {
            "op": change.op,
            "attribute": change.name,
            "default": default,
            "newer": newer,
            "older": f"{stem}_v{int(number) - 1}",
        }
        what = f"{change.name} of {newer}"
        return self._edit(f"{newer}_{change.name}", templates.attribute(self._has_bytes), what, feature, **names)

    def _edit(self, file: str, template: templates.Template, what: str, feature: str, **names: str) -> Edit:
        path = self._tests / f"test_{file.lower().replace('-', '_')}.py"
        if path.exists():
            raise InvalidSpecificationError(f"{path} already exists: move it away, or give another folder with --tests")
        text = template.substitute(what=what, feature=feature, **names, **self._fixed)
        return Edit(path, None, text)
