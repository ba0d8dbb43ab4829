"""Parts of the input parsed, the ``check`` dialect too, which no provider has."""

from __future__ import annotations

import re
from typing import Any, Final

from vhlo_tools.bindings.toolbox import Place, Toolbox
from vhlo_tools.opt.sources import Source, as_file
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
        from vhlo_tools.opt.scanner import MismatchError

        try:
            changed = generic_checks(source.text)
        except MismatchError as error:
            toolbox.emit_error(context, str(error), _place(source, error.position))
            return None
        data = None if changed == source.text else changed.encode()
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
            if operation is not None and path != source.name:
                _name(toolbox, operation, path, source.name)
    if operation is None or (has_checks and not _is_good(toolbox, operation, lenient)):
        return None
    return operation


def _name(toolbox: Toolbox, operation: Any, path: str, name: str) -> None:
    """Have locations say ``name`` where they say ``path``."""
    ir = toolbox.provider.ir

    def named(location: Any) -> Any:
        if isinstance(location, ir.FileLineColLoc) and location.filename == path:
            return ir.Location.file(name, location.start_line, location.start_col, location.context)
        return location

    for op in toolbox.provider.walk(operation):
        op.location = named(op.location)
        for block in (block for region in op.regions for block in region.blocks):
            for argument in block.arguments:
                argument.set_location(named(argument.location))


def _place(source: Source, position: int) -> Place:
    """Return the place in a source of a position in its text."""
    before = source.text[:position]
    return Place(source.name, before.count("\n") + 1, position - before.rfind("\n"))


def _is_good(toolbox: Toolbox, operation: Any, lenient: bool) -> bool:
    """Tell whether ops of ``check`` are as they must be, and all others registered; say which is not.

    Args:
        toolbox: The bindings.
        operation: What they are in.
        lenient: Whether unregistered ones were let pass only for these.
    """
    from vhlo_tools.opt.check_ops import is_good_check

    for op in toolbox.provider.walk(operation):
        name = str(op.name)
        if name.startswith("check."):
            if not is_good_check(op):
                return False
        elif lenient and not op.context.is_registered_operation(name):
            op.location.emit_error(_UNREGISTERED)
            return False
    return True
