"""Functions of an artifact, the entry function of XLA, and the attributes of arguments and results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from vhlo_tools.aliasing import Signature, entry_name
from vhlo_tools.artifact.plain_attributes import PlainReader
from vhlo_tools.bytecode import attributes_of, function_types

if TYPE_CHECKING:
    from vhlo_tools.bytecode import Block, File, Operation, Tables

_FUNCTION: Final = "vhlo.func_v"


class EntryFunction:
    """A function of a program, and the module that contains it; each part is read on first access."""

    def __init__(self, file: File, module: Operation, op: Operation, name: str) -> None:
        self.file = file
        self.module = module
        self.op = op
        self.name = name

    @cached_property
    def reader(self) -> PlainReader:
        return PlainReader(self.file)

    @cached_property
    def attributes(self) -> Mapping[str, int]:
        return attributes_of(self.file, self.op)

    @cached_property
    def module_attributes(self) -> Mapping[str, int]:
        return attributes_of(self.file, self.module)

    @cached_property
    def types(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Types of arguments and results; empty without a function type."""
        return function_types(self.file, self.attributes.get("function_type")) or ((), ())

    @cached_property
    def signature(self) -> Signature:
        inputs, outputs = self.types
        return Signature.of_results(tuple(map(self.reader.shape, inputs)), tuple(map(self.reader.shape, outputs)))

    @cached_property
    def arguments(self) -> list[Mapping[str, int]]:
        return self._dictionaries("arg_attrs", 0)

    @cached_property
    def results(self) -> list[Mapping[str, int]]:
        return self._dictionaries("res_attrs", 1)

    @property
    def body(self) -> Block | None:
        """Block of the arguments; ``None`` for a declaration."""
        return next((block for region in self.op.regions for block in region.blocks), None)

    @property
    def has_argument_attributes(self) -> bool:
        return bool(self.file.elements(self.attributes.get("arg_attrs")))

    def _dictionaries(self, key: str, side: int) -> list[Mapping[str, int]]:
        """Return an array of dictionaries; one of another length than the values reads as empty dictionaries."""
        number = len(self.types[side])
        elements = self.file.elements(self.attributes.get(key)) or ()
        # The names must survive unchanged when the attributes are written again.
        found = [self.file.dictionary(each, errors="surrogateescape") or {} for each in elements]
        return found if len(found) == number else [{} for _ in range(number)]


def functions_in(file: File, *, bodies: bool = True) -> Iterator[EntryFunction]:
    """Without ``bodies`` less of the program is decoded."""
    for module in (file.ir if bodies else file.outline).operations:
        for region in module.regions:
            for op in (op for block in region.blocks for op in block.operations):
                if file.op_name(op.name).startswith(_FUNCTION):
                    yield EntryFunction(file, module, op, file.text(attributes_of(file, op).get("sym_name")) or "")


def find_entry(file: File) -> EntryFunction | None:
    """Return the function that XLA enters: ``main``, or the only one."""
    return entry_of(functions_in(file))


def entry_of(functions: Iterable[EntryFunction]) -> EntryFunction | None:
    named = {each.name: each for each in functions}
    name = entry_name(named)
    return None if name is None else named[name]


def replace_dictionaries(
    file: File, tables: Tables, entry: EntryFunction, key: str, dictionaries: Sequence[Mapping[str, int]]
) -> set[int]:
    """Replace ``arg_attrs`` or ``res_attrs`` (``key``), and return the attributes that the function no longer has."""
    # Imported here because most programs are only read.
    from vhlo_tools.bytecode import change_attributes

    # If all dictionaries are empty, the library writes an empty array.
    indices = tuple(_dictionary(tables, each) for each in dictionaries) if any(dictionaries) else ()
    return change_attributes(file, tables, entry.op, {key: tables.vhlo("array_v1", indices)})


def _dictionary(tables: Tables, held: Mapping[str, int]) -> int:
    pairs = sorted(held.items(), key=lambda pair: pair[0].encode("utf-8", "surrogateescape"))
    vhlo = tables.vhlo
    return vhlo("dict_v1", tuple((vhlo("string_v1", tables.string(name)), each) for name, each in pairs))
