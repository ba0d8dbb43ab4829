"""Aliases and donors in the bytes of an artifact: read, and written anew, without MLIR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vhlo_tools.aliasing import (
    ARGUMENT_ATTRIBUTES,
    MODULE_ATTRIBUTES,
    AliasConfig,
    Declared,
    Form,
    Plain,
    Problem,
    ProgramAliases,
    Signature,
    Tuple,
    fits,
    read_declared,
    spell,
)
from vhlo_tools.artifact.call_aliases import has_call_aliases, read_calls
from vhlo_tools.artifact.entry_function import EntryFunction, arguments_elsewhere, find_entry, replace_dictionaries
from vhlo_tools.artifact.plain_attributes import PlainReader, PlainWriter
from vhlo_tools.artifact.value_names import read_parameters, read_results
from vhlo_tools.bytecode import File
from vhlo_tools.compat.places import Places
from vhlo_tools.errors import AliasError
from vhlo_tools.retargeting.leftovers import clear_leftovers
from vhlo_tools.retargeting.tables import Tables

__all__ = ["mentions_aliases", "read_aliases", "write_aliases"]


def read_aliases(file: File, name: str = "the artifact", *, calls: bool = True) -> ProgramAliases:
    """Return what a program says of aliases and donors, right or wrong.

    Args:
        file: Its bytes.
        name: What it is called in messages.
        calls: Whether custom calls are looked for.

    Raises:
        MalformedArtifactError: If it is damaged.
    """
    entry = find_entry(file)
    found = tuple(each for each in read_calls(file, name) if each.aliases) if calls else ()
    ignored = tuple(_elsewhere(file, entry))
    if entry is None:
        return ProgramAliases(None, Declared(Signature((), Tuple(())), problems=ignored), calls=found)
    declared = _declared(entry)
    declared = replace(declared, problems=(*declared.problems, *ignored))
    return ProgramAliases(
        entry.name, declared, read_parameters(file, entry, Places(file, name)), read_results(entry), found
    )


def _elsewhere(file: File, entry: EntryFunction | None) -> Iterator[Problem]:
    """Yield what stands on arguments of functions that XLA does not enter."""
    for function, number, held in arguments_elsewhere(file, entry):
        for name in (each for each in ARGUMENT_ATTRIBUTES if each in held):
            entered = f"enters @{entry.name} only" if entry else "finds no function main to enter"
            message = f"{name} of argument {number} of @{function} is silently ignored: XLA {entered}"
            yield Problem("ignored", None, message, "say it of the function main, or remove it")


def mentions_aliases(file: File) -> bool:
    """Tell from the tables of a program whether it says anything of aliases; most say nothing, and are not read for it.

    Raises:
        MalformedArtifactError: If they are damaged.
    """
    names = {name.encode() for name in (*ARGUMENT_ATTRIBUTES, *MODULE_ATTRIBUTES)}
    if not names.isdisjoint(file.strings):
        return True
    return has_call_aliases(file)


def write_aliases(file: File, config: AliasConfig, form: Form | None = None) -> None:
    """Give a program the aliases and donors of ``config``, and no others.

    Args:
        file: Its bytes, which are edited.
        config: The aliases and donors.
        form: Where to write the aliases; by default where they are, or else where they can be.

    Raises:
        AliasError: If ``config`` is of another signature, or ``form`` cannot say it.
        MalformedArtifactError: If the program is damaged.
    """
    entry = find_entry(file)
    if entry is None:
        if config:
            raise AliasError("the program has no function main, and so nothing to alias")
        return
    signature = entry.signature
    if signature != config.signature:
        raise AliasError(
            f"the aliases are of another program: its signature is {_text(config.signature)}, and that of "
            f"@{entry.name} is {_text(signature)}"
        )
    held = _declared(entry).form
    spelled = spell(config, form or (held if held and fits(config, held) else None))
    _Editor(file, entry).write(spelled.arguments, spelled.module)


def _text(signature: Signature) -> str:
    return f"({', '.join(map(str, signature.parameters))}) -> {signature.result}"


def _declared(entry: EntryFunction) -> Declared:
    arguments = [_plain(entry.reader, each, ARGUMENT_ATTRIBUTES) for each in entry.arguments]
    return read_declared(entry.signature, arguments, _plain(entry.reader, entry.held, MODULE_ATTRIBUTES))


def _plain(reader: PlainReader, held: Mapping[str, int], names: tuple[str, ...]) -> dict[str, Plain]:
    return {name: reader.attribute(held[name]) for name in names if name in held}


class _Editor:
    """Replaces the attributes of aliases.

    Args:
        file: The file.
        entry: Its entry function.
    """

    def __init__(self, file: File, entry: EntryFunction) -> None:
        self._file = file
        self._entry = entry
        self._tables = Tables(file)
        self._writer = PlainWriter(self._tables)
        self._lost: set[int] = set()

    def write(self, arguments: tuple[Mapping[str, Plain], ...], module: Mapping[str, Plain]) -> None:
        """Give arguments and the module these attributes of aliases, and no others."""
        self._of_function(arguments)
        self._of_module(module)
        clear_leftovers(self._file, self._tables, self._lost)

    def _of_function(self, arguments: tuple[Mapping[str, Plain], ...]) -> None:
        entry = self._entry
        changed = [
            {**_without(held, ARGUMENT_ATTRIBUTES), **{key: self._writer.argument(each) for key, each in new.items()}}
            for held, new in zip(entry.arguments, arguments, strict=True)
        ]
        if changed == entry.arguments:
            return
        self._lost |= replace_dictionaries(self._file, self._tables, entry, "arg_attrs", changed)

    def _of_module(self, module: Mapping[str, Plain]) -> None:
        entry, op = self._entry, self._entry.module
        said = _plain(entry.reader, entry.held, MODULE_ATTRIBUTES)
        # An empty list, which HLO leaves behind, says nothing and may stay.
        gone = tuple(name for name, value in said.items() if name in module or value != [])
        if not gone and not module:
            return
        held = entry.reader.dictionary(op.attributes) if op.attributes is not None else {}
        changed = {
            **_without(held, gone),
            **{name: self._writer.module(value) for name, value in module.items()},
        }
        self._lost |= {op.attributes} if op.attributes is not None else set()
        op.attributes = self._tables.dictionary(changed)


def _without(held: Mapping[str, int], names: tuple[str, ...]) -> dict[str, int]:
    return {name: index for name, index in held.items() if name not in names}
