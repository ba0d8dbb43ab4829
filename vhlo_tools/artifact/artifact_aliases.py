"""Reader and writer of the aliases and donors in the bytes of an artifact, without MLIR."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from vhlo_tools.aliasing import (
    ARGUMENT_ATTRIBUTES,
    MODULE_ATTRIBUTES,
    Declared,
    Problem,
    ProgramAliases,
    Signature,
    Tuple,
    declared_in,
    set_aliases,
)
from vhlo_tools.artifact.call_aliases import has_call_aliases, read_calls
from vhlo_tools.artifact.entry_function import entry_of, find_entry, functions_in

if TYPE_CHECKING:
    from vhlo_tools.aliasing import (
        AliasConfig,
        Form,
        Plain,
    )
    from vhlo_tools.artifact.entry_function import EntryFunction
    from vhlo_tools.artifact.plain_attributes import PlainWriter
    from vhlo_tools.bytecode import File, Tables


def read_aliases(file: File, name: str = "the artifact", *, calls: bool = True, names: bool = True) -> ProgramAliases:
    """Return all declared aliases and donors, valid or not. ``names`` are those of parameters and results."""
    functions = tuple(functions_in(file, bodies=names))
    entry = entry_of(functions)
    found = tuple(each for each in read_calls(file, name) if each.aliases) if calls else ()
    ignored = tuple(_elsewhere(functions, entry))
    if entry is None:
        return ProgramAliases(None, Declared(Signature((), Tuple(())), problems=ignored), calls=found)
    declared = declared_in(_ArtifactStore(file, entry))
    declared = replace(declared, problems=(*declared.problems, *ignored))
    if not names:
        return ProgramAliases(entry.name, declared, calls=found)
    # Imported here, as are the next, because most programs are read for their aliases alone.
    from vhlo_tools.artifact.value_names import read_parameters, read_results
    from vhlo_tools.bytecode import Places

    parameters = read_parameters(file, entry, Places(file, name))
    return ProgramAliases(entry.name, declared, parameters, read_results(entry), found)


def _elsewhere(functions: Iterable[EntryFunction], entry: EntryFunction | None) -> Iterator[Problem]:
    """Yield alias attributes on functions other than the one that XLA enters."""
    entered = f"only enters @{entry.name}" if entry else "finds no function main"
    for function in functions:
        if function is entry or not function.has_argument_attributes:
            continue
        for number, held in enumerate(function.arguments):
            for name in (each for each in ARGUMENT_ATTRIBUTES if each in held):
                message = f"{name} of argument {number} of @{function.name} is silently ignored: XLA {entered}"
                yield Problem("ignored", None, message, "set it on the function main, or remove it")


def mentions_aliases(file: File) -> bool:
    """Whether a program may declare aliases, judged by its tables alone; most do not, and need not be decoded."""
    names = {name.encode() for name in (*ARGUMENT_ATTRIBUTES, *MODULE_ATTRIBUTES)}
    if not names.isdisjoint(file.strings):
        return True
    return has_call_aliases(file)


def write_aliases(file: File, config: AliasConfig, form: Form | None = None) -> None:
    """Replace aliases and donors; ``form`` is by default the present one, or else one that can express them."""
    entry = find_entry(file)
    store = None if entry is None else _ArtifactStore(file, entry)
    set_aliases(store, config, form)
    if store is not None:
        store.finish()


class _ArtifactStore:
    """The alias attributes in the bytes of a program."""

    def __init__(self, file: File, entry: EntryFunction) -> None:
        self._file = file
        self._entry = entry
        self._lost: set[int] = set()

    @cached_property
    def _tables(self) -> Tables:
        from vhlo_tools.bytecode import Tables

        return Tables(self._file)

    @cached_property
    def _writer(self) -> PlainWriter:
        from vhlo_tools.artifact.plain_attributes import PlainWriter

        return PlainWriter(self._tables)

    @property
    def name(self) -> str:
        return self._entry.name

    @property
    def signature(self) -> Signature:
        return self._entry.signature

    def argument_aliases(self) -> list[dict[str, Plain]]:
        return [self._plain(each, ARGUMENT_ATTRIBUTES) for each in self._entry.arguments]

    def module_aliases(self) -> dict[str, Plain]:
        return self._plain(self._entry.module_attributes, MODULE_ATTRIBUTES)

    def _plain(self, held: Mapping[str, int], names: tuple[str, ...]) -> dict[str, Plain]:
        return {name: self._entry.reader.attribute(held[name]) for name in names if name in held}

    def set_argument_aliases(self, arguments: Sequence[Mapping[str, Plain]]) -> None:
        changed = [
            {**_without(held, ARGUMENT_ATTRIBUTES), **{key: self._writer.argument(each) for key, each in new.items()}}
            for held, new in zip(self._entry.arguments, arguments, strict=True)
        ]
        if changed != self._entry.arguments:
            from vhlo_tools.artifact.entry_function import replace_dictionaries

            self._lost |= replace_dictionaries(self._file, self._tables, self._entry, "arg_attrs", changed)

    def set_module_aliases(self, gone: Sequence[str], added: Mapping[str, Plain]) -> None:
        op = self._entry.module
        held = self._file.dictionary(op.attributes, errors="surrogateescape") or {}
        new = {name: self._writer.module(value) for name, value in added.items()}
        self._lost |= {op.attributes} if op.attributes is not None else set()
        op.attributes = self._tables.dictionary({**_without(held, gone), **new})

    def finish(self) -> None:
        """Collect entries to which nothing refers any more."""
        if self._lost:
            from vhlo_tools.bytecode import collect_garbage

            collect_garbage(self._file, self._tables, self._lost)


def _without(held: Mapping[str, int], names: Collection[str]) -> dict[str, int]:
    return {name: index for name, index in held.items() if name not in names}
