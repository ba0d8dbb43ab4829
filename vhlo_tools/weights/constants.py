"""The constants of an artifact, listed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vhlo_tools.artifact import Artifact
from vhlo_tools.bytecode import File
from vhlo_tools.bytecode.printing import Printer
from vhlo_tools.compat.places import Places
from vhlo_tools.weights.survey import Found, find_constants
from vhlo_tools.weights.tensors import Tensor, read_tensor

__all__ = ["Constant", "list_constants", "named_constants"]


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a program.

    Attributes:
        path: Where it stands, from its function inwards, as :func:`vhlo_tools.diff` says it.
        shape: The sizes of its value.
        element_type: The type of its elements, as StableHLO spells it.
        bytes: How many bytes all elements take, each at least one.
        bytes_in_file: How many bytes they take in the file, where one may stand for all, and bits are packed.
        splat: Whether one element stands, or could stand, for all of several.
        digest: The SHA-256 of the elements as hexadecimal digits; equal constants have the same.
        uses: How often ops use it.
        shared_with: The path of the first constant that has its elements in the same place of the file; ``None`` if
            there is none before it.
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
        """Its type, as StableHLO spells it."""
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element_type}>"


def list_constants(artifact: Artifact, *, min_size: int = 0) -> list[Constant]:
    """Return the constants of ``artifact`` of at least so many bytes, in the order of its text.

    Raises:
        MalformedArtifactError: If it is damaged.
    """
    first: dict[int, str] = {}
    identities: dict[int, tuple[bool, str]] = {}
    result = []
    for path, found, tensor in named_constants(artifact.file, artifact.name, find_constants(artifact.file)[0]):
        shared = first.setdefault(found.value, path)
        if tensor.bytes < min_size:
            continue
        if found.value not in identities:
            identities[found.value] = tensor.identify()
        splat, digest = identities[found.value]
        result.append(
            Constant(
                path=path,
                shape=tensor.shape,
                element_type=tensor.element,
                bytes=tensor.bytes,
                bytes_in_file=len(tensor.data),
                splat=splat,
                digest=digest,
                uses=found.uses,
                shared_with=None if shared is path else shared,
            )
        )
    return result


def named_constants(file: File, name: str, constants: Iterable[Found]) -> list[tuple[str, Found, Tensor]]:
    """Return ``constants`` of ``file``, each with its path, which no other has, and its value."""
    places, printer = Places(file, name), Printer(file)
    tensors: dict[int, Tensor] = {}
    taken: set[str] = set()
    result = []
    for found in constants:
        if found.value not in tensors:
            tensors[found.value] = read_tensor(file, printer, found.value)
        path = places.path(found.place)
        if path in taken:
            # Blocks, and functions of nested modules, are no part of paths.
            path = f"{path}#{'.'.join(map(str, found.position))}"
        taken.add(path)
        result.append((path, found, tensors[found.value]))
    return result
