"""Externalization: constants become arguments of the entry function, and their values a file beside the artifact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Final

from vhlo_tools.artifact import Artifact
from vhlo_tools.bytecode import (
    BlockArgument,
    File,
    Operation,
    Printer,
    Values,
    blocks_in,
    collect_garbage,
    program_name,
    read_orders,
    write_orders,
)
from vhlo_tools.externalization.constant_uses import FoundConstant, find_constants
from vhlo_tools.externalization.extracting import too_large
from vhlo_tools.externalization.listing import named_constants
from vhlo_tools.externalization.provenance import Moved, Provenance
from vhlo_tools.externalization.safetensors import write_tensors
from vhlo_tools.externalization.signature_editing import SignatureEditor, edit_signature
from vhlo_tools.externalization.tensors import StoredTensor
from vhlo_tools.files import Chunk, place, write_atomically
from vhlo_tools.records import dataclass

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


def externalize(artifact: Artifact, *, min_size: int, function: str) -> Externalized:
    """Convert the constants of a function with at least ``min_size`` bytes to arguments of a copy."""
    file = artifact.copy_of_file()
    constants, holders = find_constants(file)
    entry = edit_signature(file, holders, function)
    large = [each for each in named_constants(file, artifact.name, constants) if each[2].bytes >= min_size]
    start = entry.holder.position
    inside = [each for each in large if each[1].position[: len(start)] == start]
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
    if kept := [size for index, size in sizes.items() if _is_value(file, index)]:
        notes.append(
            f"values that other attributes or functions also use, and that remain in the artifact: "
            f"{len(kept)}, {sum(kept)} bytes"
        )
    return Externalized(artifact.edited(file), record, tensors, tuple(notes))


def _is_value(file: File, index: int) -> bool:
    value = file.decode("attribute", index)
    return value is not None and value.name == "tensor_v1"


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
