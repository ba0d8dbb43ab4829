"""Lines of the user's source from which nodes of exported programs come."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vhlo_tools.findings import SourceLocation

if TYPE_CHECKING:
    from torch.fx import Node

_FRAME: Final = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)


def user_line(node: Node) -> SourceLocation | None:
    """Return the innermost line outside of torch, or else the innermost in torch."""
    frames = [(each["file"], int(each["line"])) for each in _FRAME.finditer(node.meta.get("stack_trace") or "")]
    outside = [frame for frame in frames if not frame[0].startswith(_folder_of_torch())]
    return SourceLocation(*(outside or frames)[-1]) if frames else None


def described(node: Node) -> str:
    """Return the op of a node with its line: ``aten.roll.default at model.py:7``."""
    line = user_line(node)
    return f"{node.target} at {line}" if line else str(node.target)


@cache
def _folder_of_torch() -> str:
    import torch

    return str(Path(torch.__file__).parent)
