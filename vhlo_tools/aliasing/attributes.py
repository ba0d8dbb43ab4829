"""Aliases and donors in MLIR: attributes of arguments, of the module and of calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from vhlo_tools.aliasing.config import Alias, AliasConfig, Declared, Donor, Problem
from vhlo_tools.aliasing.shapes import Tuple, format_index
from vhlo_tools.errors import AliasError
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.aliasing.config import Form
    from vhlo_tools.aliasing.shapes import Signature
    from vhlo_tools.findings import SourceLocation

# Attributes as plain Python values, independent of their origin: bytes of an artifact, or an MLIR module


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit attribute, whose only information is its presence."""


@dataclass(frozen=True, slots=True)
class Other:
    """An attribute of a kind that is not used for aliases."""

    text: str


#: An attribute. A tuple is an array, or a tensor of rank 1, of 64-bit integers; a list contains attributes. Integers
#: have any width, and are negative if MLIR reads them as negative numbers of that width.
Plain: TypeAlias = "bool | int | str | tuple[int, ...] | Unit | Other | list[Plain] | dict[str, Plain]"

_SHOWN = 60


def integer(value: Plain | None) -> int | None:
    """Return what XLA reads as an integer. To MLIR, a boolean is a signed integer of one bit: ``true`` is -1."""
    if isinstance(value, bool):
        return -int(value)
    return value if isinstance(value, int) else None


def describe(value: Plain) -> str:
    """Return an attribute approximately in MLIR syntax, shortened."""
    text = _text(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _text(value: Plain) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return f'"{value}"'
        case tuple():
            return f"array<i64: {', '.join(map(str, value))}>" if value else "array<i64>"
        case list():
            return f"[{', '.join(map(describe, value))}]"
        case dict():
            return f"{{{', '.join(f'{key} = {describe(each)}' for key, each in value.items())}}}"
        case Unit():
            return "unit"
        case Other():
            return value.text


# Aliases and donors in MLIR: attributes of arguments, of the module, and of calls
#
# They are read by ``xla/hlo/translate/mhlo_to_hlo/mlir_hlo_to_hlo.cc`` in openxla/xla; its behaviour on attributes of
# other types was measured with jaxlib 0.10.2 and 0.12.0.1.

_OUTPUT: Final = "tf.aliasing_output"
_DONOR: Final = "jax.buffer_donor"
_ALIASES: Final = "mhlo.input_output_alias"
# Nothing writes this attribute, and XLA does not read it.
_UNREAD: Final = "mhlo.buffer_donor"

#: The alias attributes of arguments.
ARGUMENT_ATTRIBUTES: Final = (_OUTPUT, _DONOR, _UNREAD)
#: The alias attributes of the module.
MODULE_ATTRIBUTES: Final = (_ALIASES, _UNREAD)

#: The only kind that is not read as must-alias.
_MAY: Final = "may_alias"
_MUST: Final = "must_alias"

_ENTRY: Final = (
    'expected {alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 0 : i64}, '
    "output_index = array<i64>}"
)


@dataclass(frozen=True, slots=True)
class AliasAttributes:
    arguments: tuple[Mapping[str, Plain], ...]  # attributes of each argument, by name
    module: Mapping[str, Plain]


def read_declared(
    signature: Signature, arguments: Sequence[Mapping[str, Plain]], module: Mapping[str, Plain]
) -> Declared:
    """Read declared aliases and donors, valid or not; other attributes are skipped."""
    problems: list[Problem] = []
    entries = [
        entry
        for parameter, attributes in enumerate(arguments)
        for entry in _of_argument(signature, parameter, attributes, problems)
    ]
    aliases = tuple(_of_module(module, problems))
    return Declared(signature, tuple(entries), aliases, tuple(problems))


def _is_alone(signature: Signature) -> bool:
    """Whether the result is not an element of a tuple of results; it may itself be a tuple."""
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
            message = f"argument {parameter} is aliased with result {output}, but the only result has number 0"
            problems.append(Problem("malformed", parameter, message, f"write {_OUTPUT} = 0 : i32"))
        else:
            # For a single result, 0 denotes the result itself, and is not an index.
            yield Alias((output,) if output or not _is_alone(signature) else (), parameter)
    if _DONOR in attributes:
        # Its value does not matter: any boolean declares a donor.
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
        entry = each if isinstance(each, dict) else {}
        alias = entry.get("alias")
        held = alias if isinstance(alias, dict) else {}
        output, index = entry.get("output_index"), held.get("parameter_index")
        parameter = integer(held.get("parameter_number"))
        if "kind" in held and isinstance(output, tuple) and isinstance(index, tuple) and parameter is not None:
            # Any other kind, even a number, is read as must-alias.
            yield Alias(output, parameter, index, "may-alias" if held["kind"] == _MAY else "must-alias")
        else:
            # XLA checks neither the fields nor their types, and misinterprets them.
            message = f"entry {number} of {_ALIASES} is malformed and may crash XLA: {describe(each)}"
            problems.append(Problem("malformed", None, message, _ENTRY))


def _ignored(name: str, value: Plain, argument: int | None, expected: str) -> Problem:
    holder = "the module" if argument is None else f"argument {argument}"
    message = f"{name} of {holder} is {describe(value)}, which XLA silently ignores"
    return Problem("ignored", argument, message, f"make it {expected}, or remove it")


def _unread(argument: int | None) -> Problem:
    holder = "the module" if argument is None else f"argument {argument}"
    message = f"{_UNREAD} of {holder} is silently ignored by XLA"
    return Problem("ignored", argument, message, f"write {_DONOR} = true on the argument instead")


def encode_aliases(config: AliasConfig, form: Form | None = None) -> AliasAttributes:
    """By default aliases are on arguments if that can express all; donors always are."""
    chosen = form or ("argument" if fits(config, "argument") else "module")
    if refused := next(_refused(config, chosen), None):
        raise AliasError(refused)
    arguments: list[dict[str, Plain]] = [{} for _ in config.signature.parameters]
    module: dict[str, Plain] = {}
    for donor in config.donors:
        arguments[donor.parameter_number][_DONOR] = True
    if chosen == "module" and config.aliases:
        module[_ALIASES] = [
            {
                "alias": {
                    "kind": _MAY if alias.kind == "may-alias" else _MUST,
                    "parameter_index": alias.parameter_index,
                    "parameter_number": alias.parameter_number,
                },
                "output_index": alias.output_index,
            }
            for alias in config.aliases
        ]
    elif chosen == "argument":
        for alias in config.aliases:
            arguments[alias.parameter_number][_OUTPUT] = alias.output_index[0] if alias.output_index else 0
    return AliasAttributes(tuple(arguments), module)


def fits(config: AliasConfig, form: Form) -> bool:
    return next(_refused(config, form), None) is None


def _refused(config: AliasConfig, form: Form) -> Iterator[str]:
    for donor in config.donors:
        if donor.parameter_index:
            yield (
                f"{_DONOR} applies to whole arguments, but parameter {donor.parameter_number} is donated at "
                f"{format_index(donor.parameter_index)}: only buffer_donor of HLO can express this"
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
        f"{_OUTPUT} cannot express {what}, which the alias of output {format_index(alias.output_index)} requires: use "
        f"{_ALIASES} of the module (the form module)"
    )


def read_call(aliases: Iterable[Mapping[str, Plain]]) -> tuple[Alias, ...]:
    """Return the aliases of a custom call, as must-aliases, because the called function relies on them.

    The fields are those of ``#stablehlo.output_operand_alias``.
    """
    found = []
    for each in aliases:
        output, operand, index = (each.get(key) for key in _CALL_FIELDS)
        if isinstance(output, tuple) and isinstance(operand, int) and isinstance(index, tuple):
            found.append(Alias(output, operand, index, "must-alias"))
    return tuple(found)


_CALL_FIELDS: Final = ("output_tuple_indices", "operand_index", "operand_tuple_indices")


def encode_call(aliases: Iterable[Alias]) -> list[dict[str, Plain]]:
    """May-aliases are an error, because calls cannot express them."""
    found = list(aliases)
    if any(alias.kind != "must-alias" for alias in found):
        raise AliasError("output_operand_aliases of a custom call can only express must-alias")
    return [
        dict(zip(_CALL_FIELDS, (alias.output_index, alias.parameter_number, alias.parameter_index), strict=True))
        for alias in found
    ]


# Reading and writing of a program's aliases in any store of its attributes: bytes, or an MLIR module


def entry_name(names: Collection[str]) -> str | None:
    """Return the name of the function that XLA enters: ``main``, or the only one."""
    return "main" if "main" in names else next(iter(names)) if len(names) == 1 else None


class AliasStore(Protocol):
    """Alias attributes, as plain values, of the entry function of a program and its module."""

    @property
    def name(self) -> str:
        """Name of the function."""

    @property
    def signature(self) -> Signature:
        """Signature in XLA shapes."""

    def argument_aliases(self) -> Sequence[Mapping[str, Plain]]:
        """Return the alias attributes of each argument."""

    def module_aliases(self) -> Mapping[str, Plain]:
        """Return the alias attributes of the module."""

    def set_argument_aliases(self, arguments: Sequence[Mapping[str, Plain]]) -> None:
        """Replace the alias attributes of each argument."""

    def set_module_aliases(self, gone: Sequence[str], added: Mapping[str, Plain]) -> None:
        """Remove the attributes ``gone`` from the module, and add others."""


def declared_in(store: AliasStore) -> Declared:
    """Return declared aliases and donors, valid or not."""
    return read_declared(store.signature, store.argument_aliases(), store.module_aliases())


def set_aliases(store: AliasStore | None, config: AliasConfig, form: Form | None = None) -> None:
    """``form`` is by default the present one, or else one that can express the aliases."""
    if store is None:
        if config:
            raise AliasError("the program has no function main, so it cannot have aliases")
        return
    if store.signature != config.signature:
        raise AliasError(
            f"the aliases are for the signature {config.signature}, but @{store.name} has the signature "
            f"{store.signature}"
        )
    held = declared_in(store).form
    encoded = encode_aliases(config, form or (held if held and fits(config, held) else None))
    store.set_argument_aliases(encoded.arguments)
    # An empty list, which a conversion from HLO leaves, declares nothing and may remain.
    said = {name: value for name, value in store.module_aliases().items() if name in MODULE_ATTRIBUTES}
    gone = [name for name, value in said.items() if name in encoded.module or value != []]
    if gone or encoded.module:
        store.set_module_aliases(gone, encoded.module)


# Aliases of a whole program: its entry function, with the names in the user's source, and its custom calls


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A parameter or a result.

    Attributes:
        name: Its name in the user's source, if it was recorded.
        location: Its location there.
    """

    name: str | None = None
    location: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class CallAliases:
    """The aliases of a custom call: the results that are written over operands.

    Attributes:
        path: Its path in the program, as in findings.
        target: The target of the call.
        signature: The shapes of its operands and results.
        aliases: Its aliases, all of kind ``must-alias``.
        location: Its location in the user's source.
    """

    path: str
    target: str
    signature: Signature
    aliases: tuple[Alias, ...]
    location: SourceLocation | None = None

    def config(self) -> AliasConfig:
        """Return its aliases.

        Raises:
            AliasError: If they violate a rule.
        """
        return AliasConfig(self.signature, self.aliases)


@dataclass(frozen=True, slots=True)
class ProgramAliases:
    """The aliases and donors declared in a program.

    Attributes:
        function: The name of its entry function; ``None`` if it has none.
        declared: The declarations of that function.
        parameters: Its parameters.
        results: Its results.
        calls: The custom calls with aliases of their own.
    """

    function: str | None
    declared: Declared
    parameters: tuple[NamedValue, ...] = ()
    results: tuple[NamedValue, ...] = ()
    calls: tuple[CallAliases, ...] = ()
