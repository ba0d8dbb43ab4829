"""Write edits: all of them, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vhlo_tools.files import write_atomically

if TYPE_CHECKING:
    from vhlo_tools.dialect.scaffold.document import Edit


def write_edits(edits: Sequence[Edit]) -> None:
    """If writing one file fails, those already written are restored."""
    written: list[Edit] = []
    try:
        for edit in edits:
            edit.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(edit.path, [edit.after.encode()], force=edit.before is not None)
            written.append(edit)
    except BaseException:
        for edit in reversed(written):
            if edit.before is None:
                edit.path.unlink()
            else:
                write_atomically(edit.path, [edit.before.encode()], force=True)
        raise
