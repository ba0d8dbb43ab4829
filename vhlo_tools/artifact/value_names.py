"""Reader and writer of the names of arguments and results of an artifact's entry function.

The name of an argument is the one with which its location begins, as JAX writes it, and the name of a result is the
attribute ``jax.result_info``. Names are written in the same form, so that they survive all transformations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from vhlo_tools.aliasing import NamedValue
from vhlo_tools.artifact.entry_function import find_entry, replace_dictionaries
from vhlo_tools.bytecode import Tables, collect_garbage
from vhlo_tools.errors import InvalidProgramError

if TYPE_CHECKING:
    from vhlo_tools.artifact.entry_function import EntryFunction
    from vhlo_tools.bytecode import File, Places

_RESULT: Final = "jax.result_info"
# The depth to which locations are searched for a name.
_DEEPEST: Final = 16


def read_parameters(file: File, entry: EntryFunction, places: Places) -> tuple[NamedValue, ...]:
    """Return the names of arguments, and their locations in the user's source."""
    block = entry.body
    # A declaration has no arguments with locations.
    locations = [argument.location for argument in block.arguments] if block else []
    found = [NamedValue(_name(file, each), None if each is None else places.source(each)) for each in locations]
    missing = [NamedValue()] * (len(entry.types[0]) - len(found))
    return tuple([*found, *missing][: len(entry.types[0])])


def read_results(entry: EntryFunction) -> tuple[NamedValue, ...]:
    return tuple(NamedValue(_result_name(entry, attributes)) for attributes in entry.results)


def write_names(file: File, parameters: Mapping[int, str], results: Mapping[int, str]) -> None:
    """Name arguments and results of the entry function by number; others keep theirs."""
    entry = find_entry(file)
    block = entry.body if entry else None
    if entry is None or block is None or not _has(parameters, block.arguments) or not _has(results, entry.types[1]):
        raise InvalidProgramError("the program has no function main with the arguments and results that are named")
    tables = Tables(file)
    for number, name in parameters.items():
        argument = block.arguments[number]
        block.arguments[number] = argument._replace(location=_named(file, tables, name, argument.location))
    changed = [
        {**held, _RESULT: tables.vhlo("string_v1", tables.string(results[number]))} if number in results else held
        for number, held in enumerate(entry.results)
    ]
    if changed != entry.results:
        collect_garbage(file, tables, replace_dictionaries(file, tables, entry, "res_attrs", changed))


def _has(numbers: Mapping[int, str], values: Sequence[object]) -> bool:
    return all(0 <= number < len(values) for number in numbers)


def _named(file: File, tables: Tables, name: str, location: int | None) -> int:
    """The name replaces the one with which the location begins, if any."""
    held = file.decode("attribute", location) if location is not None else None
    child = held.field("child") if held is not None and held.name == "name" else location
    if child is None:
        child = tables.builtin("unknown")
    return tables.builtin("name", tables.builtin("string", tables.string(name)), child)


def _name(file: File, location: int | None) -> str | None:
    for _ in range(_DEEPEST):
        value = file.decode("attribute", location) if location is not None else None
        if value is None or value.name not in ("name", "callsite", "fused"):
            return None
        if value.name == "name":
            return file.text(value.field("name"))
        held = value.field("locations") if value.name == "fused" else (value.field("callee"),)
        location = held[0] if held else None
    return None


def _result_name(entry: EntryFunction, attributes: Mapping[str, int]) -> str | None:
    index = attributes.get(_RESULT)
    value = entry.reader.attribute(index) if index is not None else None
    return value if isinstance(value, str) and value else None
