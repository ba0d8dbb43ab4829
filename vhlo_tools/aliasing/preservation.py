"""Comparison of the aliases of a program with those of a reference: lost and changed aliases and donors.

Aliases are compared by their meaning to XLA. The form, on arguments or on the module, makes no difference, and
attributes that XLA ignores do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from vhlo_tools.aliasing.alias_entries import Donor
from vhlo_tools.aliasing.alias_lint import CHANGED, LOST, finding_of
from vhlo_tools.aliasing.shapes import format_index
from vhlo_tools.errors import AliasError

if TYPE_CHECKING:
    from vhlo_tools.aliasing.alias_entries import Alias
    from vhlo_tools.aliasing.program_aliases import ProgramAliases
    from vhlo_tools.aliasing.shapes import Signature
    from vhlo_tools.findings import Finding

_LOST_REMEDY = "alias them again with `vhlo alias set`, or find the step that rewrote the program"
_CHANGED_REMEDY = "check that it is intended: callers donate the inputs that the reference program specifies"
_DONOR_REMEDY = "donate it again with `vhlo alias set`, or find the step that rewrote the program"


def compare_aliases(program: ProgramAliases, reference: ProgramAliases) -> list[Finding]:
    """Return warnings about aliases of ``reference`` that ``program`` lacks or declares differently.

    New aliases are no findings, because no caller relied on them, except must-aliases, which fail if a caller does not
    donate. Aliases of custom calls are compared by the targets of the calls, because rewriting changes their paths.
    """
    one, other = program.declared.signature, reference.declared.signature
    if one != other:
        raise AliasError(f"aliases of programs with other signatures cannot be compared: {_difference(one, other)}")
    found = [*_aliases(program, reference), *_donors(program, reference), *_calls(program, reference)]
    return [*found, *_new(program, reference)]


def _aliases(program: ProgramAliases, reference: ProgramAliases) -> Iterator[Finding]:
    held = {each.output_index: each for each in program.declared.aliases}
    given = set(program.declared.donors)
    for alias in dict.fromkeys(reference.declared.aliases):
        now = held.get(alias.output_index)
        if now == alias:
            continue
        was = f"output {format_index(alias.output_index)} was {_over(reference, alias)}"
        if now is not None:
            message, feature = f"{was}, and is {_over(program, now)}", CHANGED
        elif Donor(alias.parameter_number, alias.parameter_index) in given:
            message, feature = f"{was}, which is now donated without an output", CHANGED
        else:
            message, feature = f"{was}, and no longer is", LOST
        remedy = _LOST_REMEDY if feature == LOST else _CHANGED_REMEDY
        yield finding_of(program, feature, alias.parameter_number, message, remedy)


def _donors(program: ProgramAliases, reference: ProgramAliases) -> Iterator[Finding]:
    given = set(program.declared.donors)
    aliases = {(each.parameter_number, each.parameter_index): each for each in program.declared.aliases}
    for donor in dict.fromkeys(reference.declared.donors):
        if donor in given:
            continue
        was = f"{_parameter(reference, donor)} was donated for any output"
        alias = aliases.get((donor.parameter_number, donor.parameter_index))
        if alias is None:
            yield finding_of(program, LOST, donor.parameter_number, f"{was}, and no longer is", _DONOR_REMEDY)
        else:
            message = f"{was}, and is aliased with output {format_index(alias.output_index)}, {alias.kind}"
            yield finding_of(program, CHANGED, donor.parameter_number, message, _CHANGED_REMEDY)


def _new(program: ProgramAliases, reference: ProgramAliases) -> Iterator[Finding]:
    outputs = {each.output_index for each in reference.declared.aliases}
    for alias in dict.fromkeys(program.declared.aliases):
        if alias.kind == "must-alias" and alias.output_index not in outputs:
            message = f"output {format_index(alias.output_index)} had no alias, and is {_over(program, alias)}"
            yield finding_of(program, CHANGED, alias.parameter_number, message, _CHANGED_REMEDY)


def _calls(program: ProgramAliases, reference: ProgramAliases) -> Iterator[Finding]:
    left = Counter((call.target, alias) for call in program.calls for alias in call.aliases)
    for call in reference.calls:
        for alias in call.aliases:
            left[call.target, alias] -= 1
            if left[call.target, alias] < 0:
                message = (
                    f"result {format_index(alias.output_index)} of the call of {call.target} at {call.path} was "
                    f"aliased with operand {alias.parameter_number} at {format_index(alias.parameter_index)}, and no "
                    f"call of that target has this alias any more"
                )
                yield finding_of(program, LOST, None, message, "add it again with `vhlo alias set --call`")


def _over(program: ProgramAliases, alias: Alias) -> str:
    return f"written over {_parameter(program, alias)}, {alias.kind}"


def _parameter(program: ProgramAliases, entry: Alias | Donor) -> str:
    number = entry.parameter_number
    name = program.parameters[number].name if 0 <= number < len(program.parameters) else None
    index = f" at {format_index(entry.parameter_index)}" if entry.parameter_index else ""
    return f"parameter {number}{index}{f' ({name})' if name else ''}"


def _difference(one: Signature, other: Signature) -> str:
    if len(one.parameters) != len(other.parameters):
        return f"one has {len(one.parameters)} parameters, the other {len(other.parameters)}"
    for number, (a, b) in enumerate(zip(one.parameters, other.parameters, strict=True)):
        if a != b:
            return f"parameter {number} is {a} in one, {b} in the other"
    return f"the result is {one.result} in one, {other.result} in the other"
