"""What the arguments and results of an artifact's entry function are called: read from its bytes, and written.

Arguments are called by the names that their locations begin with, as JAX writes them, and results by the attribute
``jax.result_info``. A name is written the same way, so that it comes along wherever the program goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from vhlo_tools.aliasing import NamedValue
from vhlo_tools.artifact.entry_function import EntryFunction, find_entry, replace_dictionaries, text_of
from vhlo_tools.bytecode import Block, File
from vhlo_tools.compat.places import Places
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.retargeting.leftovers import clear_leftovers
from vhlo_tools.retargeting.tables import Tables

__all__ = ["read_parameters", "read_results", "write_names"]

_RESULT: Final = "jax.result_info"
# How deep locations are looked into for a name.
_DEEPEST: Final = 16


def read_parameters(file: File, entry: EntryFunction, places: Places) -> tuple[NamedValue, ...]:
    """Return what the arguments of a function are called, and where they stand in the user's source."""
    block = _body(entry)
    # What has no body has no arguments with locations.
    locations = [argument.location for argument in block.arguments] if block else []
    found = [NamedValue(_name(file, each), None if each is None else places.source(each)) for each in locations]
    missing = [NamedValue()] * (len(entry.parameters) - len(found))
    return tuple([*found, *missing][: len(entry.parameters)])


def read_results(entry: EntryFunction) -> tuple[NamedValue, ...]:
    """Return what the results of a function are called."""
    return tuple(NamedValue(_result_name(entry, attributes)) for attributes in entry.result_attributes)


def write_names(file: File, parameters: Mapping[int, str], results: Mapping[int, str]) -> None:
    """Name arguments and results of the entry function.

    Args:
        file: The bytes of the program, which are edited.
        parameters: The names by the numbers of arguments; others keep theirs.
        results: The names by the numbers of results; others keep theirs.

    Raises:
        InvalidProgramError: If there is no entry function with such arguments and results.
        MalformedArtifactError: If the program is damaged.
    """
    entry = find_entry(file)
    block = _body(entry) if entry else None
    if entry is None or block is None or not _has(parameters, block.arguments) or not _has(results, entry.results):
        raise InvalidProgramError("the program has no function main with the arguments and results that are named")
    tables = Tables(file)
    for number, name in parameters.items():
        argument = block.arguments[number]
        block.arguments[number] = replace(argument, location=_named(file, tables, name, argument.location))
    changed = [
        {**held, _RESULT: tables.vhlo("string_v1", tables.string(results[number]))} if number in results else held
        for number, held in enumerate(entry.result_attributes)
    ]
    if changed != entry.result_attributes:
        clear_leftovers(file, tables, replace_dictionaries(file, tables, entry, "res_attrs", changed))


def _has(numbers: Mapping[int, str], values: Sequence[object]) -> bool:
    return all(0 <= number < len(values) for number in numbers)


def _body(entry: EntryFunction) -> Block | None:
    return next((block for region in entry.op.regions for block in region.blocks), None)


def _named(file: File, tables: Tables, name: str, location: int | None) -> int:
    """Return a location with a name, in place of the one that it begins with."""
    held = file.decode("attribute", location) if location is not None else None
    child = held.field("child") if held is not None and held.name == "name" else location
    if child is None:
        child = tables.builtin("unknown")
    return tables.builtin("name", tables.builtin("string", tables.string(name)), child)


def _name(file: File, location: int | None) -> str | None:
    """Return the name that a location begins with, if it does."""
    for _ in range(_DEEPEST):
        value = file.decode("attribute", location) if location is not None else None
        if value is None or value.name not in ("name", "callsite", "fused"):
            return None
        if value.name == "name":
            return text_of(file, value.field("name"))
        held = value.field("locations") if value.name == "fused" else (value.field("callee"),)
        location = held[0] if held else None
    return None


def _result_name(entry: EntryFunction, attributes: Mapping[str, int]) -> str | None:
    index = attributes.get(_RESULT)
    value = entry.reader.attribute(index) if index is not None else None
    return value if isinstance(value, str) and value else None
