"""Parse parts of the input, including the ``check`` dialect, which no provider has."""

from __future__ import annotations

import re
from typing import Any, Final

from vhlo_tools.bindings import FilePosition, Toolbox, location_kind, relocate_arguments
from vhlo_tools.upstream.sources import SourceText, as_file
from vhlo_tools.upstream.tool import Job

_CHECK: Final = re.compile(rb"\bcheck\.expect_|\0check\0")

_UNREGISTERED: Final = (
    "operation being parsed with an unregistered dialect. If this is intended, please use -allow-unregistered-dialect "
    "with the MLIR tool used"
)


def parse(toolbox: Toolbox, job: Job, *, is_single: bool = False) -> Any | None:
    """Return ``None`` after an error, which was emitted; ``is_single`` leaves out the module around an op."""
    source, context = job.source, job.context
    data = None
    has_checks = _CHECK.search(source.data) is not None
    if has_checks and not source.is_bytecode:
        from vhlo_tools.upstream.check_dialect.pretty_parsing import generic_checks
        from vhlo_tools.upstream.scanner import MismatchError

        try:
            changed = generic_checks(source.text)
        except MismatchError as error:
            toolbox.emit_error(context, str(error), _place(source, error.position))
            return None
        data = None if changed == source.text else changed.encode()
    lenient = has_checks and not context.allow_unregistered_dialects
    if lenient:
        context.allow_unregistered_dialects = True
    # Bytecode always contains a module.
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
    """Replace ``path`` with ``name`` in locations."""
    ir = toolbox.provider.ir

    def named(location: Any) -> Any:
        if location_kind(location) == "file" and location.filename == path:
            return ir.Location.file(name, location.start_line, location.start_col, location.context)
        return location

    for op in toolbox.provider.walk(operation):
        op.location = named(op.location)
        for block in (block for region in op.regions for block in region.blocks):
            relocate_arguments(block, [named(argument.location) for argument in block.arguments])


def _place(source: SourceText, position: int) -> FilePosition:
    before = source.text[:position]
    return FilePosition(source.name, before.count("\n") + 1, position - before.rfind("\n"))


def _is_good(toolbox: Toolbox, operation: Any, lenient: bool) -> bool:
    """Return whether ops of ``check`` are valid, and all others registered; emit an error for the first that is not.

    ``lenient`` means that unregistered ops were accepted only because of ``check``.
    """
    from vhlo_tools.upstream.check_dialect.check_ops import is_good_check

    for op in toolbox.provider.walk(operation):
        name = str(op.name)
        if name.startswith("check."):
            if not is_good_check(op):
                return False
        elif lenient and not op.context.is_registered_operation(name):
            op.location.emit_error(_UNREGISTERED)
            return False
    return True
