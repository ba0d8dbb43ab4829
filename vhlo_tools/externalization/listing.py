"""List of the constants of an artifact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vhlo_tools.artifact import Artifact
from vhlo_tools.bytecode import File, Places, Printer, without_collection
from vhlo_tools.externalization.constant_uses import FoundConstant, find_constants
from vhlo_tools.externalization.tensors import StoredTensor, read_tensor
from vhlo_tools.records import dataclass


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a program.

    Attributes:
        path: Its path in the program, from its function inwards, as in :func:`vhlo_tools.diff`.
        shape: The shape of its value.
        element_type: The type of its elements, in StableHLO syntax.
        bytes: The size of all elements in bytes, of which each takes at least one.
        bytes_in_file: Their size in the file, where one may represent all, and bits are packed.
        splat: Whether one element represents, or could represent, all of several.
        digest: The SHA-256 of the elements as hexadecimal digits; equal constants have equal digests.
        uses: The number of operands that use it.
        shared_with: The path of the first constant with the same stored elements; ``None`` if this is the first.
    """

    path: str
    shape: tuple[int, ...]
    element_type: str
    bytes: int
    bytes_in_file: int
    splat: bool
    digest: str
    uses: int
    shared_with: str | None = None

    @property
    def type(self) -> str:
        """Its type, in StableHLO syntax."""
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element_type}>"


def list_constants(artifact: Artifact, *, min_size: int = 0) -> list[Constant]:
    """In the order of the text."""
    with without_collection():
        return list(_listed(artifact, min_size))


def _listed(artifact: Artifact, min_size: int) -> Iterator[Constant]:
    first: dict[int, str] = {}
    # Of each value: its size, whether it is a splat, and its digest. Very many constants may share one.
    known: dict[int, tuple[int, bool, str]] = {}
    for path, found, tensor in named_constants(artifact.file, artifact.name, find_constants(artifact.file)[0]):
        shared = first.setdefault(found.value, path)
        if found.value not in known:
            size = tensor.bytes
            known[found.value] = (size, *(tensor.identify() if size >= min_size else (False, "")))
        size, splat, digest = known[found.value]
        if size >= min_size:
            yield Constant(
                path=path,
                shape=tensor.shape,
                element_type=tensor.element,
                bytes=size,
                bytes_in_file=len(tensor.data),
                splat=splat,
                digest=digest,
                uses=found.uses,
                shared_with=None if shared is path else shared,
            )


def named_constants(
    file: File, name: str, constants: Iterable[FoundConstant]
) -> list[tuple[str, FoundConstant, StoredTensor]]:
    """Return constants with unique paths and with values."""
    places, printer = Places(file, name), Printer(file)
    tensors: dict[int, StoredTensor] = {}
    taken: set[str] = set()
    result = []
    for found in constants:
        if found.value not in tensors:
            tensors[found.value] = read_tensor(file, printer, found.value)
        path = places.path(found.place)
        if path in taken:
            # Blocks, and functions of nested modules, are not part of paths.
            path = f"{path}#{'.'.join(map(str, found.position))}"
        taken.add(path)
        result.append((path, found, tensors[found.value]))
    return result
