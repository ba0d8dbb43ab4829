"""Parts of the input parsed, the ``check`` dialect too, which no provider has."""

from __future__ import annotations

import re
from typing import Any, Final

from vhlo_tools.bindings.toolbox import Toolbox
from vhlo_tools.opt.sources import as_file
from vhlo_tools.opt.tool import Job

__all__ = ["parse"]

_CHECK: Final = re.compile(rb"\bcheck\.expect_|\0check\0")

_UNREGISTERED: Final = (
    "operation being parsed with an unregistered dialect. If this is intended, please use -allow-unregistered-dialect "
    "with the MLIR tool used"
)


def parse(toolbox: Toolbox, job: Job, *, is_single: bool = False) -> Any | None:
    """Return a part of the input as an op; ``None`` if it is none, which was said.

    Args:
        toolbox: The bindings.
        job: The part, and the context.
        is_single: Whether the only op in it is not put into a module.
    """
    source, context = job.source, job.context
    data = None
    has_checks = _CHECK.search(source.data) is not None
    if has_checks and not source.is_bytecode:
        from vhlo_tools.opt.check_text import generic_checks

        data = generic_checks(source.text).encode()
    lenient = has_checks and not context.allow_unregistered_dialects
    if lenient:
        context.allow_unregistered_dialects = True
    # Bytecode always has one.
    if is_single and not source.is_bytecode:
        text = source.data if data is None else data
        operation = toolbox.parse_op(context, text.decode(errors="replace"), source.name)
    else:
        with as_file(source, data) as path:
            if path != source.name:
                job.names[path] = source.name
            operation = toolbox.parse_file(context, path)
    if operation is None or (lenient and not _is_registered(toolbox, operation)):
        return None
    return operation


def _is_registered(toolbox: Toolbox, operation: Any) -> bool:
    """Tell whether all ops but those of ``check`` are registered; say which is not."""
    for op in toolbox.provider.walk(operation):
        name = str(op.name)
        if not name.startswith("check.") and not op.context.is_registered_operation(name):
            op.location.emit_error(_UNREGISTERED)
            return False
    return True
