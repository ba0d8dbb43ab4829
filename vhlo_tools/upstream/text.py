"""Text of MLIR: parsing and printing with upstream's options."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import Any, Final

from vhlo_tools.bindings import FilePosition, MlirSession, location_kind, relocate_arguments
from vhlo_tools.upstream.arguments import Arguments, Option
from vhlo_tools.upstream.guard import reading
from vhlo_tools.upstream.sources import SourceText, as_file
from vhlo_tools.upstream.tool import Job

# Parse parts of the input, including the ``check`` dialect, which no provider has

_CHECK: Final = re.compile(rb"\bcheck\.expect_|\0check\0")

_UNREGISTERED: Final = (
    "operation being parsed with an unregistered dialect. If this is intended, please use -allow-unregistered-dialect "
    "with the MLIR tool used"
)


def parse(toolbox: MlirSession, job: Job, *, is_single: bool = False) -> Any | None:
    """Return ``None`` after an error, which was emitted; ``is_single`` leaves out the module around an op."""
    source, context = job.source, job.context
    data = None
    has_checks = _CHECK.search(source.data) is not None
    if has_checks and not source.is_bytecode:
        from vhlo_tools.upstream.check_syntax import generic_checks
        from vhlo_tools.upstream.pipelines import MismatchError

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
            # Text may take long by right.
            with reading(len(source.data)) if source.is_bytecode else nullcontext():
                operation = toolbox.parse_file(context, path)
            if operation is not None and path != source.name:
                _name(toolbox, operation, path, source.name)
    if operation is None or (has_checks and not _is_good(toolbox, operation, lenient)):
        return None
    return operation


def _name(toolbox: MlirSession, operation: Any, path: str, name: str) -> None:
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


def _is_good(toolbox: MlirSession, operation: Any, lenient: bool) -> bool:
    """Return whether ops of ``check`` are valid, and all others registered; emit an error for the first that is not.

    ``lenient`` means that unregistered ops were accepted only because of ``check``.
    """
    from vhlo_tools.upstream.check_dialect import is_good_check

    for op in toolbox.provider.walk(operation):
        name = str(op.name)
        if name.startswith("check."):
            if not is_good_check(op):
                return False
        elif lenient and not op.context.is_registered_operation(name):
            op.location.emit_error(_UNREGISTERED)
            return False
    return True


# Print modules according to options
#
# Source: ``mlir/lib/IR/AsmPrinter.cpp`` in llvm/llvm-project.

#: Options for printing, by their names in the bindings.
_SETTINGS: Final = {
    "print_generic_op_form": Option("mlir-print-op-generic", "Print the generic op form"),
    "enable_debug_info": Option("mlir-print-debuginfo", "Print debug info in MLIR output"),
    "pretty_debug_info": Option("mlir-pretty-debuginfo", "Print pretty debug info in MLIR output"),
    "use_local_scope": Option(
        "mlir-print-local-scope", "Print with local scope and inline information (eliding aliases)"
    ),
    "large_elements_limit": Option(
        "mlir-elide-elementsattrs-if-larger",
        'Elide ElementsAttrs with "..." that have more elements than the given upper limit',
        "value",
        "uint",
        is_number=True,
    ),
    "large_resource_limit": Option(
        "mlir-elide-resource-strings-if-larger",
        "Elide printing value of resources if string is too long in chars",
        "value",
        "uint",
        is_number=True,
    ),
    "assume_verified": Option(
        "mlir-print-assume-verified", "Skip op verification when using custom printers", is_hidden=True
    ),
    "skip_regions": Option("mlir-print-skip-regions", "Skip regions when printing ops", is_hidden=True),
    "use_name_loc_as_prefix": Option(
        "mlir-use-nameloc-as-prefix", "Print SSA IDs using NameLocs as prefixes", is_hidden=True
    ),
}
PRINTING: Final = tuple(_SETTINGS.values())


def settings_of(arguments: Arguments) -> dict[str, Any]:
    return {
        key: arguments.number(option.name) if option.is_number else arguments.flag(option.name)
        for key, option in _SETTINGS.items()
        if option.name in arguments.values
    }


def printed(operation: Any, settings: dict[str, Any]) -> str:
    text: str = operation.operation.get_asm(**settings)
    if '"check.expect_' in text and not settings.get("print_generic_op_form"):
        from vhlo_tools.upstream.check_syntax import pretty_checks

        text = pretty_checks(text)
    return text.rstrip("\n") + "\n"
