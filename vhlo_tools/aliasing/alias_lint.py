"""Lint rules for the aliases of a program.

XLA rejects an *error* when it converts or compiles the program, or its reader may crash. XLA accepts a *warning*, but
it is probably a mistake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from vhlo_tools.aliasing.call_rules import call_violations
from vhlo_tools.aliasing.shapes import Array, format_index, leaves, subshape
from vhlo_tools.findings import Finding

if TYPE_CHECKING:
    from vhlo_tools.aliasing.alias_entries import Alias, Donor
    from vhlo_tools.aliasing.config import AliasViolation, Rule
    from vhlo_tools.aliasing.program_aliases import CallAliases, ProgramAliases
    from vhlo_tools.findings import Level

_OF_RULES: Final[dict[Rule, str]] = {
    "output-index": "alias_output_index",
    "parameter-number": "alias_parameter_number",
    "parameter-index": "alias_parameter_index",
    "output-twice": "alias_output_twice",
    "parameter-twice": "alias_parameter_twice",
    "size": "alias_size",
    "shape": "alias_shape",
    "donor-and-alias": "alias_and_donor",
}
_MALFORMED: Final = "alias_malformed"
_IGNORED: Final = "alias_ignored_attribute"
_REPLACED: Final = "alias_replaced"
_OTHER_ELEMENT: Final = "alias_other_element_type"
_OTHER_SHAPE: Final = "alias_other_shape"
_UNUSABLE: Final = "alias_unusable_donor"
#: Findings of comparing two programs: see :mod:`vhlo_tools.aliasing.preservation`.
LOST: Final = "alias_lost"
CHANGED: Final = "alias_changed"
#: A donation requested from a framework that it omitted from the program, which only the framework can report.
DROPPED: Final = "alias_donation_dropped"

#: The features of findings about aliases, each with its level.
ALIAS_FEATURES: Final[dict[str, Level]] = {
    **dict.fromkeys((*_OF_RULES.values(), _MALFORMED), "error"),
    **dict.fromkeys((_IGNORED, _REPLACED, _OTHER_ELEMENT, _OTHER_SHAPE, _UNUSABLE, LOST, CHANGED, DROPPED), "warning"),
}


def lint_aliases(program: ProgramAliases) -> list[Finding]:
    """Errors come first."""
    broken = program.declared.violations()
    found = [*_errors(program, broken), *_problems(program), *_warnings(program, {each.entry for each in broken})]
    for call in program.calls:
        found += _of_call(call)
    return sorted(found, key=lambda each: ("error", "warning").index(each.level))


def _errors(program: ProgramAliases, broken: Iterable[AliasViolation]) -> Iterator[Finding]:
    for each in broken:
        yield finding_of(program, _OF_RULES[each.rule], each.entry.parameter_number, each.message, each.remedy)


def _problems(program: ProgramAliases) -> Iterator[Finding]:
    for each in program.declared.problems:
        feature = _MALFORMED if each.kind == "malformed" else _IGNORED
        yield finding_of(program, feature, each.argument, each.message, each.remedy)


def _warnings(program: ProgramAliases, broken: Collection[Alias | Donor]) -> Iterator[Finding]:
    declared = program.declared
    for alias in declared.replaced:
        message = (
            f"the module has aliases of its own, which replace the alias of output {format_index(alias.output_index)} "
            f"with parameter {alias.parameter_number} in XLA"
        )
        remedy = "add it to mhlo.input_output_alias too, or remove tf.aliasing_output"
        yield finding_of(program, _REPLACED, alias.parameter_number, message, remedy)
    for alias in declared.aliases:
        if alias not in broken and (said := _misfit(program, alias)) is not None:
            yield finding_of(program, said[0], alias.parameter_number, *said[1:])
    for donor, size in _unusable(program):
        message = f"parameter {donor.parameter_number} is donated, but no unaliased output of {size} bytes can use it"
        remedy = (
            "donate a parameter that an output can use, or remove the donor: the caller loses the buffer without "
            "a benefit"
        )
        yield finding_of(program, _UNUSABLE, donor.parameter_number, message, remedy)


def _misfit(program: ProgramAliases, alias: Alias) -> tuple[str, str, str] | None:
    """Return feature, message and remedy if the arrays of an alias differ in element type or shape."""
    signature = program.declared.signature
    output = subshape(signature.result, alias.output_index)
    held = subshape(signature.parameters[alias.parameter_number], alias.parameter_index)
    if not isinstance(output, Array) or not isinstance(held, Array) or output == held:
        return None
    message = (
        f"output {format_index(alias.output_index)} is {output}, but parameter {alias.parameter_number} at "
        f"{format_index(alias.parameter_index)}, which it may overwrite, is {held}"
    )
    if output.element != held.element:
        return _OTHER_ELEMENT, message, "check that the intended parameter is aliased: the sizes may be equal by chance"
    return _OTHER_SHAPE, message, "check that the intended parameter is aliased: another shape may have another layout"


def _unusable(program: ProgramAliases) -> Iterator[tuple[Donor, int]]:
    """Yield donors without a remaining output of their size, with that size."""
    declared = program.declared
    taken = {alias.output_index for alias in declared.aliases}
    outputs = [shape for index, shape in leaves(declared.signature.result) if index not in taken]
    sizes = [shape.bytes for shape in outputs if isinstance(shape, Array)]
    if None in sizes:
        # An output with a dynamic size may match.
        return
    left = Counter(sizes)
    for donor in dict.fromkeys(declared.donors):
        held = subshape(declared.signature.parameters[donor.parameter_number], donor.parameter_index)
        if not isinstance(held, Array) or held.bytes is None:
            continue
        left[held.bytes] -= 1
        if left[held.bytes] < 0:
            yield donor, held.bytes


def _of_call(call: CallAliases) -> Iterator[Finding]:
    """Yield findings on aliases of a custom call that the StableHLO verifier rejects."""
    for each in call_violations(call):
        yield Finding(
            feature=_OF_RULES[each.rule],
            level="error",
            kind="alias",
            message=f"output_operand_aliases of the call of {call.target}: {each.message}",
            op="stablehlo.custom_call",
            location=call.location,
            remedy=each.remedy,
            path=call.path,
            function=call.path.partition("/")[0].removeprefix("@"),
        )


def finding_of(program: ProgramAliases, feature: str, parameter: int | None, message: str, remedy: str) -> Finding:
    """Return a finding about a parameter, given by number, or about the module."""
    exists = parameter is not None and 0 <= parameter < len(program.parameters)
    path = f"@{program.function} argument {parameter}" if exists else "module"
    return Finding(
        feature=feature,
        level=ALIAS_FEATURES[feature],
        kind="alias",
        message=message,
        location=program.parameters[parameter].location if parameter is not None and exists else None,
        remedy=remedy,
        path=path,
        function=program.function,
    )
