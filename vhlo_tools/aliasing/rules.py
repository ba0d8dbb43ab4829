"""Rules for aliases: lint, custom calls, and comparison with those of a reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from vhlo_tools.aliasing.config import AliasViolation, Donor
from vhlo_tools.aliasing.shapes import Array, Tuple, format_index, leaves, subshape
from vhlo_tools.errors import AliasError
from vhlo_tools.findings import Finding

if TYPE_CHECKING:
    from vhlo_tools.aliasing.attributes import CallAliases, ProgramAliases
    from vhlo_tools.aliasing.config import Alias, Rule
    from vhlo_tools.aliasing.shapes import Shape, Signature
    from vhlo_tools.findings import Level

# Rules for aliases of a custom call
#
# They are those of ``CustomCallOp::verify`` in openxla/stablehlo (``stablehlo/dialect/StablehloOps.cpp``), which
# permits several aliases of one value.

_REMEDY = "alias a result with an operand of the same type and shape"


def call_violations(call: CallAliases) -> list[AliasViolation]:
    """Return the first violation of each alias of a custom call."""
    broken = (_violation(call, alias) for alias in call.aliases)
    return [each for each in broken if each is not None]


def _violation(call: CallAliases, alias: Alias) -> AliasViolation | None:
    number, operands = alias.parameter_number, call.signature.parameters
    exists = 0 <= number < len(operands)
    output = subshape(call.signature.result, alias.output_index)
    held = subshape(operands[number], alias.parameter_index) if exists else None
    result, operand = format_index(alias.output_index), f"operand {number} at {format_index(alias.parameter_index)}"
    if output is None:
        message = f"there is no result {result}: the result is {call.signature.result}"
        return AliasViolation("output-index", alias, message, _REMEDY)
    if not exists:
        message = f"there is no operand {number}: the call has {len(operands)}"
        return AliasViolation("parameter-number", alias, message, _REMEDY)
    if held is None:
        message = f"there is no {operand}: its shape is {operands[number]}"
        return AliasViolation("parameter-index", alias, message, _REMEDY)
    if not _compatible(output, held):
        return AliasViolation("shape", alias, f"result {result} is {output}, but {operand} is {held}", _REMEDY)
    return None


def _compatible(one: Shape, other: Shape) -> bool:
    """Whether two shapes can be equal, treating dynamic sizes as unknown."""
    if isinstance(one, Array) and isinstance(other, Array):
        sizes = zip(one.sizes, other.sizes, strict=False)
        fit = all(a == b or a is None or b is None for a, b in sizes)
        return one.element == other.element and len(one.sizes) == len(other.sizes) and fit
    if isinstance(one, Tuple) and isinstance(other, Tuple):
        pairs = zip(one.elements, other.elements, strict=False)
        return len(one.elements) == len(other.elements) and all(_compatible(a, b) for a, b in pairs)
    return one == other


# Lint rules for the aliases of a program
#
# XLA rejects an *error* when it converts or compiles the program, or its reader may crash. XLA accepts a *warning*, but
# it is probably a mistake.

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
#: Findings of comparing two programs: see :mod:`vhlo_tools.aliasing.rules`.
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
    found = [
        finding_of(program, _OF_RULES[each.rule], each.entry.parameter_number, each.message, each.remedy)
        for each in broken
    ]
    for problem in program.declared.problems:
        feature = _MALFORMED if problem.kind == "malformed" else _IGNORED
        found.append(finding_of(program, feature, problem.argument, problem.message, problem.remedy))
    found += _warnings(program, {each.entry for each in broken})
    for call in program.calls:
        found += _of_call(call)
    return sorted(found, key=lambda each: ("error", "warning").index(each.level))


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


# Comparison of the aliases of a program with those of a reference: lost and changed aliases and donors
#
# Aliases are compared by their meaning to XLA. The form, on arguments or on the module, makes no difference, and
# attributes that XLA ignores do not count.

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
    outputs = {each.output_index for each in reference.declared.aliases}
    for alias in dict.fromkeys(program.declared.aliases):
        if alias.kind == "must-alias" and alias.output_index not in outputs:
            message = f"output {format_index(alias.output_index)} had no alias, and is {_over(program, alias)}"
            found.append(finding_of(program, CHANGED, alias.parameter_number, message, _CHANGED_REMEDY))
    return found


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
