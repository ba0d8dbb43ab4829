"""Externalization: constants become arguments of the entry function."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from os import PathLike
from typing import Final

from vhlo_tools.artifact.artifact import Artifact
from vhlo_tools.artifact.constants import FoundConstant, RegionOp, StoredTensor, find_constants, named_constants
from vhlo_tools.artifact.entry_function import functions_in
from vhlo_tools.artifact.extraction import too_large, write_tensors
from vhlo_tools.bytecode import (
    AttributeLayout,
    Attributes,
    Block,
    BlockArgument,
    File,
    Head,
    Operation,
    Printer,
    Tables,
    Value,
    Values,
    attributes_of,
    blocks_in,
    change_attributes,
    collect_garbage,
    heads_in,
    program_name,
    read_orders,
    write_orders,
)
from vhlo_tools.documents import read_json
from vhlo_tools.errors import InvalidInputError, MalformedArtifactError
from vhlo_tools.files import Chunk, place, write_atomically
from vhlo_tools.records import dataclass

# Record in a file of weights of the constants from which they come, for restoration

_KEY: Final = "vhlo_tools.constants"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Moved:
    """A constant that became an argument.

    Attributes:
        argument: The number of the argument.
        tensor: The name of its value in the file; constants with one value share it again after restoration.
        path: Its path in the program, for display.
        position: Its position: the numbers of region, block and op, from the function inwards.
        type: The type of the argument, as text.
        element: The element type of the value.
        shape: The shape of the value.
        form: The form of the elements in the artifact: whole, splat, packed.
        splat: For a splat, the bytes of the element, as hexadecimal digits.
        digest: The SHA-256 of the elements.
    """

    argument: int
    tensor: str
    path: str
    position: tuple[int, ...]
    type: str
    element: str
    shape: tuple[int, ...]
    form: str
    splat: str
    digest: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """The externalized constants of a function.

    Attributes:
        function: The function.
        arguments: The number of its arguments before.
        moved: The constants, in the order of their arguments.
    """

    function: str
    arguments: int
    moved: tuple[Moved, ...]

    def to_metadata(self) -> dict[str, str]:
        """Return the record as metadata of a file of tensors."""
        return {_KEY: json.dumps({"format": _FORMAT, **asdict(self)})}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str], name: str) -> Provenance:
        """Return the record in the metadata of the file ``name``.

        Raises:
            InvalidInputError: If there is no record, or it is damaged or of another format.
        """
        if _KEY not in metadata:
            raise InvalidInputError(
                f"{name} was not written by `vhlo constants externalize`: it has no record of constants"
            )
        try:
            held = read_json(metadata[_KEY])
            if held["format"] != _FORMAT:
                raise InvalidInputError(
                    f"{name} has format {held['format']} of a newer version of vhlo: expected {_FORMAT}"
                )
            moved = tuple(
                Moved(**{**each, "position": tuple(each["position"]), "shape": tuple(each["shape"])})
                for each in held["moved"]
            )
            record = cls(held["function"], held["arguments"], moved)
            record._check()
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInputError(f"{name} is damaged: its record of constants cannot be read: {error}") from error
        return record

    def _check(self) -> None:
        numbers = [self.arguments, *(number for each in self.moved for number in (*each.position, *each.shape))]
        if not isinstance(self.function, str):
            raise ValueError("expected the name of a function")
        if any(not isinstance(number, int) or isinstance(number, bool) or number < 0 for number in numbers):
            raise ValueError("expected a non-negative integer")
        for index, each in enumerate(self.moved):
            texts = (each.tensor, each.path, each.type, each.element, each.form, each.splat, each.digest)
            if not all(isinstance(text, str) for text in texts) or len(each.shape) > 100:
                raise ValueError("expected a string")
            if each.argument != self.arguments + index or len(each.position) < 3 or len(each.position) % 3:
                raise ValueError(f"{each.path} has no valid position")
            bytes.fromhex(each.splat)


# Editing of a function's arguments: its type and argument attributes, and a check for callers

_NAMES_SHOWN: Final = 8
#: The attributes of ops that name functions.
_CALLS: Final = ("callee", "called_computations", "decomposition")
#: The attributes of a module with a value for each argument of its main function.
_OF_ARGUMENTS: Final = ("mhlo.xla_entry_computation_parameter_layouts", "mhlo.xla_entry_computation_parameter_tiles")


@dataclass(slots=True)
class SignatureEditor:
    """Editor of the arguments of a function without callers in its program."""

    file: File
    tables: Tables
    name: str
    op: Operation
    holder: RegionOp  # place of the function's op
    entry: Block  # block of the function's arguments

    def set_types(self, kept: int, added: Sequence[int]) -> set[int]:
        """Set the types to those of the first ``kept`` arguments and ``added``; return attributes that the op lost."""
        attributes = attributes_of(self.file, self.op)
        holder, kind = self._type(attributes)
        inputs, outputs = kind.fields
        new = self.tables.add("type", replace(kind, fields=(inputs[:kept] + tuple(added), outputs)))
        changed = {"function_type": self.tables.add("attribute", replace(holder, fields=(new,)))}
        array = self._value(attributes, "arg_attrs", "array_v1")
        if elements := array.field("elements"):
            empty = self.tables.structure("attribute", {"attribute": "dict_v1", "elements": ()})
            elements = elements[:kept] + (empty,) * len(added)
            changed["arg_attrs"] = self.tables.add("attribute", replace(array, fields=(elements,)))
        return change_attributes(self.file, self.tables, self.op, changed)

    def check(self) -> None:
        attributes = attributes_of(self.file, self.op)
        _, kind = self._type(attributes)
        described = self._value(attributes, "arg_attrs", "array_v1").field("elements")
        number = len(self.entry.arguments)
        if len(kind.field("inputs")) != number or len(described) not in (0, number):
            raise self._malformed(
                f"@{self.name} has {number} arguments, but its type or argument attributes are for another number"
            )

    def _type(self, attributes: Attributes) -> tuple[Value, Value]:
        holder = self._value(attributes, "function_type", "type_v1")
        kind = self.file.decode("type", holder.field("value"))
        if kind is None or kind.name != "func_v1":
            raise self._malformed(f"@{self.name} does not have a function type")
        return holder, kind

    def layout(self) -> AttributeLayout:
        """Some producers put all attributes into dictionaries, whatever the version of the format."""
        return AttributeLayout(self.file, self.tables, in_properties=self.op.properties is not None)

    def _value(self, attributes: Attributes, name: str, kind: str) -> Value:
        index = attributes.get(name)
        value = self.file.decode("attribute", index) if index is not None else None
        if value is None or value.name != kind:
            raise self._malformed(f"@{self.name} has no {name}")
        return value

    def _malformed(self, message: str) -> MalformedArtifactError:
        return self.file.attributes[self.op.location].malformed(message)


def edit_signature(file: File, holders: Sequence[RegionOp], name: str) -> SignatureEditor:
    """Raise ``InvalidInputError`` if other code depends on the number of the function's arguments."""
    named: dict[str, Operation] = {}
    for each in functions_in(file):
        named.setdefault(each.name, each.op)
    if name not in named:
        others = ", ".join(f"@{other}" for other in islice(named, _NAMES_SHOWN))
        raise InvalidInputError(f"the program has no function @{name}; it has {others or 'none'}")
    op = named[name]
    if len(op.regions) != 1 or not op.regions[0].blocks:
        raise InvalidInputError(f"the function @{name} has no body")
    # One of the heads that differ in types alone.
    heads = {(head.name, head.properties, head.attributes): head for head in heads_in(file.program)}
    for head in heads.values():
        if name in _called(file, head):
            raise InvalidInputError(f"@{name} is called by other functions, which would have to pass new arguments")
        if file.op_name(head.name) == "builtin.module":
            held = attributes_of(file, head)
            if said := [key for key in _OF_ARGUMENTS if key in held]:
                raise InvalidInputError(
                    f"the module attribute {said[0]} has one entry for each argument of @{name}, "
                    f"so its arguments cannot change"
                )
    holder = next(each for each in holders if each.place.op is op)
    editor = SignatureEditor(file, Tables(file), name, op, holder, op.regions[0].blocks[0])
    editor.check()
    return editor


def _called(file: File, op: Head) -> Iterator[str]:
    """Yield the functions named by an op."""
    name = file.op_name(op.name)
    if name.startswith("builtin.") or (op.attributes is None and op.properties is None):
        return
    attributes = attributes_of(file, op)
    for key in _CALLS:
        pending, seen = [attributes[key]] if key in attributes else [], set[int]()
        while pending:
            index = pending.pop()
            if index in seen:
                continue
            seen.add(index)
            pending += file.elements(index) or ()
            if (callee := file.text(index)) is not None:
                yield callee


# Externalization: constants become arguments of the entry function, and their values a file beside the artifact

# Ops whose regions may use values from outside in any consumer; compilers expect other regions to use none.
_OPEN: Final = ("stablehlo.case", "stablehlo.if", "stablehlo.while")

#: A constant with its path and its value.
_Named = tuple[str, FoundConstant, StoredTensor]


@dataclass(frozen=True, slots=True)
class Externalized:
    """A program whose constants became arguments.

    Attributes:
        artifact: The program.
        record: The externalized constants: for each new argument, its number and the name of its tensor in the file.
        tensors: The tensors, by name.
        notes: The reasons why constants remain.
    """

    artifact: Artifact
    record: Provenance
    tensors: dict[str, StoredTensor]
    notes: tuple[str, ...]

    def weights(self) -> Iterator[Chunk]:
        """Yield the file of weights, in the format of safetensors, in pieces that are never in memory together."""
        return write_tensors(self.tensors, self.record.to_metadata())

    def save_weights(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the file of weights, completely or not at all.

        Raises:
            FileExistsError: If ``path`` exists and ``force`` is not set.
            OSError: If the file cannot be written.
        """
        write_atomically(place(path), self.weights(), force=force)


def externalize(
    artifact: Artifact, *, min_size: int, function: str, wanted: Callable[[StoredTensor], bool] = lambda _: True
) -> Externalized:
    """Convert the wanted constants of a function with at least ``min_size`` bytes to arguments of a copy."""
    file = artifact.copy_of_file()
    constants, holders = find_constants(file, for_editing=True)
    entry = edit_signature(file, holders, function)
    large = [each for each in named_constants(file, artifact.name, constants) if each[2].bytes >= min_size]
    start = entry.holder.position
    inside = [each for each in large if each[1].position[: len(start)] == start and wanted(each[2])]
    reasons = {path: _reason_to_stay(file, entry, found, tensor) for path, found, tensor in inside}
    chosen = [each for each in inside if reasons[each[0]] is None]
    notes = [f"{path} remains a constant: {reason}" for path, reason in reasons.items() if reason is not None]
    if others := len(large) - len(inside):
        notes.append(f"constants of functions other than @{function}, which were not externalized: {others}")
    record, tensors = _record(file, entry, chosen)
    if not chosen:
        return Externalized(artifact, record, tensors, tuple(notes))
    dropped = _move(entry, [found for _, found, _ in chosen])
    collect_garbage(file, entry.tables, dropped)
    sizes = {found.value: len(tensor.data) for _, found, tensor in chosen}
    left = ((file.decode("attribute", index), size) for index, size in sizes.items())
    if kept := [size for value, size in left if value is not None and value.name == "tensor_v1"]:
        notes.append(
            f"values that other attributes or functions also use, and that remain in the artifact: "
            f"{len(kept)}, {sum(kept)} bytes"
        )
    return Externalized(artifact.edited(file), record, tensors, tuple(notes))


def _reason_to_stay(file: File, entry: SignatureEditor, found: FoundConstant, tensor: StoredTensor) -> str | None:
    if not found.plain:
        return "it has attributes that arguments cannot have"
    if reason := too_large(tensor):
        return reason
    for op in _around(entry, found):
        name = program_name(file.op_name(op.name))
        if name not in _OPEN:
            return f"it is in {name}, whose regions should not use values from outside"
    return None


def _around(entry: SignatureEditor, found: FoundConstant) -> Iterator[Operation]:
    """Yield the ops that contain a constant, up to its function."""
    at = found.place.around
    while at is not None and at.op is not entry.op:
        yield at.op
        at = at.around


def _record(file: File, entry: SignatureEditor, chosen: Sequence[_Named]) -> tuple[Provenance, dict[str, StoredTensor]]:
    printer, before = Printer(file), len(entry.entry.arguments)
    names: dict[int, str] = {}
    tensors: dict[str, StoredTensor] = {}
    digests: dict[str, str] = {}
    moved = []
    for number, (path, found, tensor) in enumerate(chosen):
        name = names.setdefault(found.value, path)
        if name not in tensors:
            tensors[name] = tensor
            _, digests[name] = tensor.identify()
        moved.append(
            Moved(
                argument=before + number,
                tensor=name,
                path=path,
                position=found.position[len(entry.holder.position) :],
                type=printer.builtin_tensor(found.place.op.results[0])[0],
                element=tensor.element,
                shape=tensor.shape,
                form=tensor.form,
                splat=bytes(tensor.data).hex() if tensor.form == "splat" else "",
                digest=digests[name],
            )
        )
    return Provenance(entry.name, before, tuple(moved)), tensors


def _move(entry: SignatureEditor, chosen: Sequence[FoundConstant]) -> set[int]:
    """Convert constants to arguments, and return the attributes that ops no longer have."""
    values = Values(entry.op, entry.holder.reach)
    block, before = entry.entry, len(entry.entry.arguments)
    orders = read_orders(block)
    for number, found in enumerate(chosen):
        op = found.place.op
        values.of(block).append(values.of(op)[0])
        block.arguments.append(BlockArgument(op.results[0], op.location))
        orders += [order._replace(value=before + number) for order in op.use_lists]
        for around in _around(entry, found):
            around.isolated = False
    write_orders(block, orders)
    gone = {id(found.place.op) for found in chosen}
    for each in [inner for region in entry.op.regions for top in region.blocks for inner in blocks_in(top)]:
        each.operations = [op for op in each.operations if id(op) not in gone]
    values.number()
    lost = entry.set_types(before, [found.place.op.results[0] for found in chosen])
    # In old versions of the format, the value is in a dictionary.
    lost |= {found.place.op.attributes for found in chosen if found.place.op.attributes is not None}
    return lost | {found.value for found in chosen}
