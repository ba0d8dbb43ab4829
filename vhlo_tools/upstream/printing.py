"""Print modules according to options.

Source: ``mlir/lib/IR/AsmPrinter.cpp`` in llvm/llvm-project.
"""

from __future__ import annotations

from typing import Any, Final

from vhlo_tools.upstream.arguments import Arguments, Option

#: Options for printing.
PRINTING: Final = (
    Option("mlir-print-op-generic", "Print the generic op form"),
    Option("mlir-print-debuginfo", "Print debug info in MLIR output"),
    Option("mlir-pretty-debuginfo", "Print pretty debug info in MLIR output"),
    Option("mlir-print-local-scope", "Print with local scope and inline information (eliding aliases)"),
    Option(
        "mlir-elide-elementsattrs-if-larger",
        'Elide ElementsAttrs with "..." that have more elements than the given upper limit',
        "value",
        "uint",
        is_number=True,
    ),
    Option(
        "mlir-elide-resource-strings-if-larger",
        "Elide printing value of resources if string is too long in chars",
        "value",
        "uint",
        is_number=True,
    ),
    Option("mlir-print-assume-verified", "Skip op verification when using custom printers", is_hidden=True),
    Option("mlir-print-skip-regions", "Skip regions when printing ops", is_hidden=True),
    Option("mlir-use-nameloc-as-prefix", "Print SSA IDs using NameLocs as prefixes", is_hidden=True),
)

#: The names of these options in the bindings.
_SETTINGS: Final = {
    "mlir-print-op-generic": "print_generic_op_form",
    "mlir-print-debuginfo": "enable_debug_info",
    "mlir-pretty-debuginfo": "pretty_debug_info",
    "mlir-print-local-scope": "use_local_scope",
    "mlir-elide-elementsattrs-if-larger": "large_elements_limit",
    "mlir-elide-resource-strings-if-larger": "large_resource_limit",
    "mlir-print-assume-verified": "assume_verified",
    "mlir-print-skip-regions": "skip_regions",
    "mlir-use-nameloc-as-prefix": "use_name_loc_as_prefix",
}


def settings_of(arguments: Arguments) -> dict[str, Any]:
    """Return the given printing options, by their names in the bindings."""
    settings: dict[str, Any] = {}
    for option in PRINTING:
        if option.name in arguments.values:
            key = _SETTINGS[option.name]
            settings[key] = arguments.number(option.name) if option.is_number else arguments.flag(option.name)
    return settings


def printed(operation: Any, settings: dict[str, Any]) -> str:
    text: str = operation.operation.get_asm(**settings)
    if '"check.expect_' in text and not settings.get("print_generic_op_form"):
        from vhlo_tools.upstream.check_dialect.pretty_printing import pretty_checks

        text = pretty_checks(text)
    return text.rstrip("\n") + "\n"
