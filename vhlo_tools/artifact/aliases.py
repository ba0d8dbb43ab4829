"""Reader and writer of the aliases and donors in the bytes of an artifact, and of its custom calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from vhlo_tools.aliasing import (
    ARGUMENT_ATTRIBUTES,
    MODULE_ATTRIBUTES,
    CallAliases,
    Declared,
    Problem,
    ProgramAliases,
    Signature,
    Tuple,
    declared_in,
    set_aliases,
)
from vhlo_tools.artifact.entry_function import (
    PlainReader,
    PlainWriter,
    entry_of,
    find_entry,
    functions_in,
    read_parameters,
    read_results,
    replace_dictionaries,
)
from vhlo_tools.bytecode import Tables, attributes_of, collect_garbage
from vhlo_tools.errors import AliasError
from vhlo_tools.findings import Finding
from vhlo_tools.spec import find_op_version, newest_version

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Alias, AliasConfig, Form, Plain
    from vhlo_tools.artifact.entry_function import EntryFunction
    from vhlo_tools.bytecode import Block, File, Place

# Aliases of the custom calls in an artifact: the results that are written over operands

_VHLO: Final = "vhlo."
_CALL: Final = f"{_VHLO}custom_call_v"
_ALIAS: Final = "output_operand_alias_v1"
_SLOT: Final = "output_operand_aliases"
# The fields of an alias in StableHLO, and their names in VHLO.
_FIELDS: Final = {
    "output_tuple_indices": "outputTupleIndices",
    "operand_index": "operandIndex",
    "operand_tuple_indices": "operandTupleIndices",
}
# The largest number of calls listed in a message.
_SHOWN: Final = 8


def read_calls(file: File, name: str) -> tuple[CallAliases, ...]:
    """Return all custom calls with their aliases, except those of :func:`unknown_calls`."""
    # Imported here because most programs have no custom calls.
    from vhlo_tools.aliasing import read_call
    from vhlo_tools.bytecode import SourceLocations

    places, reader = SourceLocations(file, name), PlainReader(file)
    found: list[CallAliases] = []

    def look(place: Place, values: list[int]) -> None:
        attributes = attributes_of(file, place.op)
        held = [file.decode("attribute", each) for each in file.elements(attributes.get(_SLOT)) or ()]
        entries = [
            {name: value.field(field) for name, field in _FIELDS.items()} if value and value.name == _ALIAS else {}
            for value in held
        ]
        shapes = tuple(reader.shape(values[operand]) for operand in place.op.operands)
        said = CallAliases(
            path=places.path(place),
            target=file.text(attributes.get("call_target_name")) or "",
            signature=Signature.of_results(shapes, tuple(map(reader.shape, place.op.results))),
            aliases=read_call(entries),
            location=places.source(place.op.location),
        )
        found.append(said)

    _visit_calls(file, file.program, look)
    return tuple(found)


def _visit_calls(
    file: File, top: Block, call: Callable[[Place, list[int]], None], *, for_editing: bool = False
) -> None:
    named = {index for index, name in _call_names(file) if find_op_version(name.removeprefix(_VHLO)) is not None}
    if named:
        from vhlo_tools.bytecode import visit

        visit(top, call, lambda head: head.name in named, for_editing=for_editing)


def _call_names(file: File) -> Iterator[tuple[int, str]]:
    names = ((index, file.op_name(index)) for index in range(len(file.dialects.ops)))
    return ((index, name) for index, name in names if name.startswith(_CALL))


def unknown_calls(file: File) -> list[Finding]:
    """Return notes on custom calls of versions that the specification lacks, whose aliases are not read."""
    unknown = [name for _, name in _call_names(file) if find_op_version(name.removeprefix(_VHLO)) is None]
    return [
        Finding(
            feature=name,
            level="note",
            kind="op",
            message=f"{name} is unknown: the data of vhlo_tools end at StableHLO {newest_version()}, and its aliases "
            "were not examined",
            op=name,
            remedy="update vhlo_tools",
            unknown=True,
        )
        for name in dict.fromkeys(unknown)
    ]


def matching_calls(calls: Iterable[CallAliases], call: str) -> list[CallAliases]:
    """Return the one call at the path ``call``, or else all calls of the target ``call``."""
    known = list(calls)
    found = [each for each in known if each.path == call] or [each for each in known if each.target == call]
    if not found:
        shown = [f"{each.path} of {each.target}" for each in known[:_SHOWN]]
        shown += [f"and {len(known) - _SHOWN} more"] * (len(known) > _SHOWN)
        raise AliasError(
            f"there is no custom call {call}: expected a path or a target; the program has {', '.join(shown)}"
            if known
            else f"there is no custom call {call}: the program has no custom calls"
        )
    return found


def write_call_aliases(file: File, aliases: Mapping[str, Iterable[Alias]], name: str) -> None:
    """Replace aliases, given by path or target of calls; duplicates are written once."""
    # Imported here because most programs are only read.
    from vhlo_tools.aliasing import call_violations, encode_call
    from vhlo_tools.bytecode import SourceLocations, change_attributes

    calls = {call.path: call for call in read_calls(file, name)}
    wanted = {
        found.path: tuple(dict.fromkeys(each))
        for call, each in aliases.items()
        for found in matching_calls(calls.values(), call)
    }
    tables = Tables(file)
    lost: set[int] = set()
    for path, each in wanted.items():
        said = replace(calls[path], aliases=each)
        if broken := call_violations(said):
            raise AliasError(f"the call of {said.target} at {path}: {broken[0].message}: {broken[0].remedy}")
    places = SourceLocations(file, name)

    def write(place: Place, values: list[int]) -> None:
        if (each := wanted.get(places.path(place))) is not None:
            elements = tuple(tables.vhlo(_ALIAS, *entry.values()) for entry in encode_call(each))
            lost.update(change_attributes(file, tables, place.op, {_SLOT: tables.vhlo("array_v1", elements)}))

    _visit_calls(file, file.ir, write, for_editing=True)
    collect_garbage(file, tables, lost)


# Reader and writer of the aliases and donors in the bytes of an artifact, without MLIR


def read_aliases(file: File, name: str = "the artifact", *, calls: bool = True, names: bool = True) -> ProgramAliases:
    """Return all declared aliases and donors, valid or not. ``names`` are those of parameters and results."""
    functions = tuple(functions_in(file, bodies=names))
    entry = entry_of(functions)
    found = tuple(each for each in read_calls(file, name) if each.aliases) if calls else ()
    entered = f"only enters @{entry.name}" if entry else "finds no function main"
    ignored = tuple(
        Problem(
            "ignored",
            None,
            f"{name} of argument {number} of @{function.name} is silently ignored: XLA {entered}",
            "set it on the function main, or remove it",
        )
        for function in functions
        if function is not entry and function.has_argument_attributes
        for number, held in enumerate(function.arguments)
        for name in ARGUMENT_ATTRIBUTES
        if name in held
    )
    if entry is None:
        return ProgramAliases(None, Declared(Signature((), Tuple(())), problems=ignored), calls=found)
    declared = declared_in(_ArtifactStore(file, entry))
    declared = replace(declared, problems=(*declared.problems, *ignored))
    if not names:
        return ProgramAliases(entry.name, declared, calls=found)
    # Imported here because most programs are read for their aliases alone.
    from vhlo_tools.bytecode import SourceLocations

    parameters = read_parameters(file, entry, SourceLocations(file, name))
    return ProgramAliases(entry.name, declared, parameters, read_results(entry), found)


def mentions_aliases(file: File) -> bool:
    """Whether a program may declare aliases, judged by its tables alone; most do not, and need not be decoded."""
    names = {name.encode() for name in (*ARGUMENT_ATTRIBUTES, *MODULE_ATTRIBUTES)}
    if not names.isdisjoint(file.strings):
        return True
    return any(_call_names(file)) and any(True for _ in file.called("attribute", "vhlo", _ALIAS))


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
        self.name = entry.name
        self.signature = entry.signature
        self._file = file
        self._entry = entry
        self._lost: set[int] = set()

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self._file)

    @cached_property
    def _writer(self) -> PlainWriter:
        return PlainWriter(self._tables)

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
            collect_garbage(self._file, self._tables, self._lost)


def _without(held: Mapping[str, int], names: Collection[str]) -> dict[str, int]:
    return {name: index for name, index in held.items() if name not in names}
