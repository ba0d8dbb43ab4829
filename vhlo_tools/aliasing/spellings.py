"""How MLIR spells aliases and donors: in attributes of arguments, of the module, and of calls.

What reads them is ``xla/hlo/translate/mhlo_to_hlo/mlir_hlo_to_hlo.cc`` in openxla/xla, and what it does with attributes
of other types was measured with jaxlib 0.10.2 and 0.12.0.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from vhlo_tools.aliasing.config import Alias, AliasConfig, Donor
from vhlo_tools.aliasing.declared import Declared, Form, Problem
from vhlo_tools.aliasing.shapes import Signature, Tuple, format_index
from vhlo_tools.aliasing.values import Plain, describe, integer
from vhlo_tools.errors import AliasError

__all__ = [
    "ARGUMENT_ATTRIBUTES",
    "MODULE_ATTRIBUTES",
    "Spelled",
    "fits",
    "read_call",
    "read_declared",
    "spell",
    "spell_call",
]

_OUTPUT: Final = "tf.aliasing_output"
_DONOR: Final = "jax.buffer_donor"
_ALIASES: Final = "mhlo.input_output_alias"
# Nothing writes it, and XLA reads it nowhere.
_UNREAD: Final = "mhlo.buffer_donor"

#: The attributes of arguments that are about aliases.
ARGUMENT_ATTRIBUTES: Final = (_OUTPUT, _DONOR, _UNREAD)
#: Those of the module.
MODULE_ATTRIBUTES: Final = (_ALIASES, _UNREAD)

#: The one word that is not taken for must-alias.
_MAY: Final = "may_alias"
_MUST: Final = "must_alias"

_ENTRY: Final = (
    'expected {alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 0 : i64}, '
    "output_index = array<i64>}"
)


@dataclass(frozen=True, slots=True)
class Spelled:
    """Aliases and donors as attributes.

    Attributes:
        arguments: The attributes of each argument, by name.
        module: Those of the module.
    """

    arguments: tuple[Mapping[str, Plain], ...]
    module: Mapping[str, Plain]


def read_declared(
    signature: Signature, arguments: Sequence[Mapping[str, Plain]], module: Mapping[str, Plain]
) -> Declared:
    """Read what attributes say of aliases and donors, right or wrong.

    Args:
        signature: The shapes of parameters and result.
        arguments: The attributes of each argument, by name; others than those of aliases are passed over.
        module: The attributes of the module.
    """
    problems: list[Problem] = []
    entries = [
        entry
        for parameter, attributes in enumerate(arguments)
        for entry in _of_argument(signature, parameter, attributes, problems)
    ]
    aliases = tuple(_of_module(module, problems))
    return Declared(signature, tuple(entries), aliases, tuple(problems))


def _is_alone(signature: Signature) -> bool:
    """Tell whether the result of a function stands in no tuple with others; it may be one itself."""
    return signature.results == 1 or not isinstance(signature.result, Tuple)


def _of_argument(
    signature: Signature, parameter: int, attributes: Mapping[str, Plain], problems: list[Problem]
) -> Iterator[Alias | Donor]:
    if _OUTPUT in attributes:
        value = attributes[_OUTPUT]
        output = integer(value)
        if output is None:
            problems.append(_ignored(_OUTPUT, value, parameter, "an integer, the number of a result"))
        elif output and signature.results == 1 and isinstance(signature.result, Tuple):
            message = f"argument {parameter} is aliased with result {output}, and there is one result, number 0"
            problems.append(Problem("malformed", parameter, message, f"write {_OUTPUT} = 0 : i32"))
        else:
            # Where there is one result, the number that stands for it is 0, and no index.
            yield Alias((output,) if output or not _is_alone(signature) else (), parameter)
    if _DONOR in attributes:
        # Whichever boolean it is: that there is one counts.
        if isinstance(attributes[_DONOR], bool):
            yield Donor(parameter)
        else:
            problems.append(_ignored(_DONOR, attributes[_DONOR], parameter, "a boolean"))
    if _UNREAD in attributes:
        problems.append(_unread(parameter))


def _of_module(attributes: Mapping[str, Plain], problems: list[Problem]) -> Iterator[Alias]:
    if _UNREAD in attributes:
        problems.append(_unread(None))
    value = attributes.get(_ALIASES, [])
    if not isinstance(value, list):
        problems.append(_ignored(_ALIASES, value, None, "an array"))
        return
    for number, each in enumerate(value):
        alias = _alias(each)
        if alias is None:
            problems.append(_malformed(number, each))
        else:
            yield alias


def _alias(entry: Plain) -> Alias | None:
    """Return what an entry of the module says; ``None`` if it lacks a field, or one is of another type.

    XLA looks at neither, and takes one for the other.
    """
    alias = entry.get("alias") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(alias, dict) or "kind" not in alias:
        return None
    output, index = entry.get("output_index"), alias.get("parameter_index")
    parameter = integer(alias.get("parameter_number"))
    if not isinstance(output, tuple) or not isinstance(index, tuple) or parameter is None:
        return None
    # Any other word, and a number too, is read as must-alias.
    return Alias(output, parameter, index, "may-alias" if alias["kind"] == _MAY else "must-alias")


def _ignored(name: str, value: Plain, argument: int | None, expected: str) -> Problem:
    holder = "the module" if argument is None else f"argument {argument}"
    message = f"{name} of {holder} is {describe(value)}, which XLA silently ignores"
    return Problem("ignored", argument, message, f"make it {expected}, or remove it")


def _unread(argument: int | None) -> Problem:
    holder = "the module" if argument is None else f"argument {argument}"
    message = f"{_UNREAD} of {holder} is silently ignored by XLA"
    return Problem("ignored", argument, message, f"write {_DONOR} = true on the argument instead")


def _malformed(number: int, entry: Plain) -> Problem:
    message = f"entry {number} of {_ALIASES} is {describe(entry)}, of which XLA's reader may die"
    return Problem("malformed", None, message, _ENTRY)


def spell(config: AliasConfig, form: Form | None = None) -> Spelled:
    """Return the attributes that say what ``config`` says.

    Args:
        config: The aliases and donors. Donors are attributes of arguments in every form.
        form: Where to write the aliases, by default on arguments if that can say them all.

    Raises:
        AliasError: If the form cannot say it; the message names the one that can.
    """
    chosen = form or ("argument" if fits(config, "argument") else "module")
    if refused := next(_refused(config, chosen), None):
        raise AliasError(refused)
    arguments: list[dict[str, Plain]] = [{} for _ in config.signature.parameters]
    module: dict[str, Plain] = {}
    for donor in config.donors:
        arguments[donor.parameter_number][_DONOR] = True
    if chosen == "module" and config.aliases:
        module[_ALIASES] = [_entry(alias) for alias in config.aliases]
    elif chosen == "argument":
        for alias in config.aliases:
            arguments[alias.parameter_number][_OUTPUT] = alias.output_index[0] if alias.output_index else 0
    return Spelled(tuple(arguments), module)


def fits(config: AliasConfig, form: Form) -> bool:
    """Tell whether ``form`` can say what ``config`` says."""
    return next(_refused(config, form), None) is None


def _refused(config: AliasConfig, form: Form) -> Iterator[str]:
    for donor in config.donors:
        if donor.parameter_index:
            yield (
                f"{_DONOR} is said of whole arguments, and parameter {donor.parameter_number} is given away at "
                f"{format_index(donor.parameter_index)}: only buffer_donor of HLO can say that"
            )
    for alias in config.aliases if form == "argument" else ():
        if alias.kind == "must-alias":
            yield _cannot(alias, "must-alias")
        elif alias.parameter_index:
            yield _cannot(
                alias, f"the index {format_index(alias.parameter_index)} in parameter {alias.parameter_number}"
            )
        elif len(alias.output_index) > (0 if _is_alone(config.signature) else 1):
            yield _cannot(alias, f"the index {format_index(alias.output_index)} within one result")


def _cannot(alias: Alias, what: str) -> str:
    return (
        f"{_OUTPUT} cannot say {what}, as the alias of output {format_index(alias.output_index)} has it: "
        f"{_ALIASES} of the module can (the form module)"
    )


def _entry(alias: Alias) -> dict[str, Plain]:
    return {
        "alias": {
            "kind": _MAY if alias.kind == "may-alias" else _MUST,
            "parameter_index": alias.parameter_index,
            "parameter_number": alias.parameter_number,
        },
        "output_index": alias.output_index,
    }


def read_call(aliases: Iterable[Mapping[str, Plain]]) -> tuple[Alias, ...]:
    """Return the aliases of a custom call: which of its results are written over which of its operands.

    Such an alias is one that must be: what is called relies on it.

    Args:
        aliases: The entries of ``output_operand_aliases``, each with the fields of
            ``#stablehlo.output_operand_alias``.
    """
    found = []
    for each in aliases:
        output, operand, index = (each.get(key) for key in _CALL_FIELDS)
        if isinstance(output, tuple) and isinstance(operand, int) and isinstance(index, tuple):
            found.append(Alias(output, operand, index, "must-alias"))
    return tuple(found)


_CALL_FIELDS: Final = ("output_tuple_indices", "operand_index", "operand_tuple_indices")


def spell_call(aliases: Iterable[Alias]) -> list[dict[str, Plain]]:
    """Return the entries of ``output_operand_aliases`` that say that a custom call has these aliases.

    Raises:
        AliasError: If one is a may-alias, for which calls have no word.
    """
    found = list(aliases)
    if any(alias.kind != "must-alias" for alias in found):
        raise AliasError("output_operand_aliases of a custom call says must-alias, and nothing else")
    return [
        dict(zip(_CALL_FIELDS, (alias.output_index, alias.parameter_number, alias.parameter_index), strict=True))
        for alias in found
    ]
