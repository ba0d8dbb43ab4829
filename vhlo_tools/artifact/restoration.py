"""Restoration: externalized arguments become constants again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, get_args

from vhlo_tools.artifact.artifact import Artifact
from vhlo_tools.artifact.constants import Form, StoredTensor, element_size, find_constants, pack, structure_of
from vhlo_tools.artifact.externalization import Moved, Provenance, SignatureEditor, edit_signature
from vhlo_tools.artifact.extraction import TensorFile
from vhlo_tools.bytecode import (
    Entry,
    File,
    Operation,
    OpName,
    Printer,
    Values,
    collect_garbage,
    read_orders,
    varint,
    write_orders,
)
from vhlo_tools.errors import InvalidInputError, MalformedArtifactError
from vhlo_tools.files import View
from vhlo_tools.spec import encodings_of, property_slots

_CONSTANT: Final = "vhlo.constant_v1"


def restore(artifact: Artifact, weights: TensorFile) -> Artifact:
    """Undo :func:`vhlo_tools.artifact.externalize`; the result has views into ``weights``."""
    record = Provenance.from_metadata(weights.metadata, weights.name)
    file = artifact.copy_of_file()
    entry = edit_signature(file, find_constants(file, for_editing=True)[1], record.function)
    _check_arguments(file, entry, record, weights.name)
    if not record.moved:
        return artifact
    # Constants that shared their value share it again.
    values = {(each.tensor, each.form, each.splat): _value_of(each, weights) for each in record.moved}
    indices = _add_values(file, entry, record)
    dropped = _move(file, entry, record, indices, weights.name)
    # Before the values are filled in: they are views into another file, and cannot be decoded.
    collect_garbage(file, entry.tables, dropped)
    for key, index in indices.items():
        empty, data = file.attributes[index], values[key]
        head = bytes(empty.data)[: -len(varint(0))] + varint(len(data))
        file.attributes[index] = empty._replace(data=head, rest=data)
    return artifact.edited(file)


#: The identity of a value: the name of its tensor, its form, and the bytes of a splat.
_Key = tuple[str, str, str]


def _check_arguments(file: File, entry: SignatureEditor, record: Provenance, name: str) -> None:
    arguments, printer = entry.entry.arguments, Printer(file)
    expected = record.arguments + len(record.moved)
    if len(arguments) != expected:
        raise InvalidInputError(
            f"@{entry.name} has {len(arguments)} arguments, but {name} belongs to a function with {expected}"
        )
    for each in record.moved:
        found = printer.builtin_tensor(arguments[each.argument].type)[0]
        if found != each.type:
            raise InvalidInputError(
                f"argument {each.argument} of @{entry.name} is {found}, but {name} has {each.type} for it"
            )


def _value_of(moved: Moved, weights: TensorFile) -> View:
    """Return a value in its form in the artifact; it must be equal to the externalized one."""
    found = weights.tensors.get(moved.tensor)
    if found is None:
        raise InvalidInputError(f"{weights.name} has no tensor {moved.tensor}")
    size = element_size(moved.element)
    if size is None or moved.form not in get_args(Form):
        raise InvalidInputError(f"{weights.name} has {moved.form} elements of {moved.element}, which is not supported")
    whole = StoredTensor(moved.element, size, moved.shape, "whole", found)
    if whole.bytes != len(found):
        raise InvalidInputError(
            f"{moved.tensor} in {weights.name} has {len(found)} bytes: expected {whole.bytes} of {moved.type}"
        )
    try:
        tensor = _in_form(whole, moved)
        is_equal = tensor.identify()[1] == moved.digest
    except ValueError:
        is_equal = False
    if not is_equal:
        raise InvalidInputError(
            f"{moved.tensor} in {weights.name} contains other elements than those externalized from {moved.path}: "
            f"expected SHA-256 {moved.digest}"
        )
    return tensor.data


def _in_form(whole: StoredTensor, moved: Moved) -> StoredTensor:
    """Return a value in its former form; raise ``ValueError`` if it cannot have this form."""
    if moved.form == "packed":
        return replace(whole, form="packed", data=pack(whole.data))
    if moved.form == "whole":
        return whole
    splat = replace(whole, form="splat", data=memoryview(bytes.fromhex(moved.splat)))
    if len(splat.data) != splat.size or not splat.holds(whole.data):
        raise ValueError("its elements differ")
    return splat


def _add_values(file: File, entry: SignatureEditor, record: Provenance) -> dict[_Key, int]:
    """Add an attribute without elements for each value, and return their indices."""
    encoding = next(each for each in encodings_of("vhlo", "attribute").values() if each.name == "tensor_v1")
    dialect = next((index for index in range(len(file.dialects.names)) if file.dialect(index) == "vhlo"), None)
    if dialect is None:
        raise MalformedArtifactError("the file does not declare the dialect vhlo", section="dialect")
    printer = Printer(file)
    indices: dict[_Key, int] = {}
    for each in record.moved:
        key = (each.tensor, each.form, each.splat)
        if key in indices:
            continue
        kind = entry.entry.arguments[each.argument].type
        if printer.builtin_tensor(kind)[1:] != (each.shape, each.element):
            # A quantized constant: its value has the storage type.
            structure = {"type": "tensor_v1", "shape": each.shape, "element": structure_of(each.element)}
            kind = entry.tables.structure("type", structure)
        indices[key] = len(file.attributes)
        file.attributes.append(Entry(dialect, True, varint(encoding.code) + varint(kind) + varint(0)))
    return indices


def _move(file: File, entry: SignatureEditor, record: Provenance, indices: Mapping[_Key, int], name: str) -> set[int]:
    """Convert arguments to constants, and return the attributes that the function no longer has."""
    values, block = Values(entry.op, entry.holder.reach), entry.entry
    arguments, orders = block.arguments[record.arguments :], read_orders(block)
    tokens = values.of(block)[record.arguments :]
    del block.arguments[record.arguments :], values.of(block)[record.arguments :]
    write_orders(block, [order for order in orders if (order.value or 0) < record.arguments])
    layout, slots, op_name = entry.layout(), property_slots(_CONSTANT), _name_of_constants(file, entry)
    made = []
    for each, argument, token in zip(record.moved, arguments, tokens, strict=True):
        location = argument.location if argument.location is not None else entry.tables.builtin("unknown")
        op = Operation(op_name, location, results=(argument.type,))
        index = indices[each.tensor, each.form, each.splat]
        op.properties, op.attributes = layout.write({"value": index}, {}, slots, op)
        op.use_lists = tuple(order._replace(value=None) for order in orders if order.value == each.argument)
        values.of(op).append(token)
        made.append((each, op))
    for each, op in made:
        _insert(entry.op, each.position, op, f"{each.path} of {name}")
    try:
        values.number()
    except ValueError as error:
        raise InvalidInputError(f"{name} belongs to another artifact: {error}") from error
    return entry.set_types(record.arguments, ())


def _insert(function: Operation, position: tuple[int, ...], op: Operation, what: str) -> None:
    """Insert ``op`` at the former position of a constant; constants earlier in the text are already in place."""
    holder = function
    for at in range(0, len(position), 3):
        region, number, index = position[at : at + 3]
        blocks = holder.regions[region].blocks if region < len(holder.regions) else []
        ops = blocks[number].operations if number < len(blocks) else None
        is_last = at + 3 == len(position)
        if ops is None or index > len(ops) - (not is_last):
            raise InvalidInputError(f"there is no location for {what}: the weights belong to another artifact")
        if is_last:
            ops.insert(index, op)
        else:
            holder = ops[index]


def _name_of_constants(file: File, entry: SignatureEditor) -> int:
    """Return the op name of constants, which is added if the file no longer has it."""
    ops = file.dialects.ops
    for index in range(len(ops)):
        if file.op_name(index) == _CONSTANT:
            return index
    dialect, _, name = _CONSTANT.partition(".")
    of = next(index for index in range(len(file.dialects.names)) if file.dialect(index) == dialect)
    ops.append(OpName(of, entry.tables.string(name)))
    return len(ops) - 1
