"""Statements of a manifest about the program in a file, read from the bytes without MLIR."""

from __future__ import annotations

from heapq import nlargest
from typing import Any, Final

# The reader of manifests reads the types of fields when it runs.
from vhlo_tools.aliasing import Alias, Donor
from vhlo_tools.artifact import Artifact, other_dialects
from vhlo_tools.externalization import list_constants
from vhlo_tools.records import dataclass

#: Constants of so many bytes have a digest of their own: weights, but not what an op needs, such as a shape.
LARGE: Final = 1 << 10
#: Of more constants, the largest have one.
MOST_CONSTANTS: Final = 4096

_ENTRY: Final = "main"


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of the function ``main``, in StableHLO syntax, as ``vhlo inspect`` shows them."""

    arguments: tuple[str, ...]
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConstantDigest:
    """A constant.

    Attributes:
        path: Its path in the program, as ``vhlo constants list`` shows it.
        type: Its type, in StableHLO syntax.
        bytes: The size of all its elements in bytes.
        sha256: The digest of its elements, the same for equal constants.
    """

    path: str
    type: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Contents:
    """Statements about a program; the attributes are those of :class:`vhlo_tools.manifests.Manifest`."""

    producer: str
    version: str
    bytecode_version: int
    readable_since: str
    downgradable_to: str
    features: tuple[str, ...]
    other_dialects: tuple[str, ...]
    signature: Signature | None
    aliases: tuple[Alias, ...]
    donors: tuple[Donor, ...]
    constants: tuple[ConstantDigest, ...]

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def contents_of(artifact: Artifact) -> Contents:
    requirements, inventory = artifact.requirements(), artifact.inventory()
    main = next((each for each in inventory.functions if each.name == _ENTRY), None)
    return Contents(
        producer=artifact.producer,
        version=str(artifact.version),
        bytecode_version=artifact.bytecode_version,
        readable_since=str(requirements.readable_since),
        downgradable_to=str(requirements.downgradable_to),
        features=tuple(sorted({each.id for each in requirements.features})),
        other_dialects=tuple(sorted(other_dialects(artifact))),
        signature=Signature(main.arguments, main.results) if main else None,
        aliases=inventory.aliases,
        donors=inventory.donors,
        constants=_large_constants(artifact),
    )


def _large_constants(artifact: Artifact) -> tuple[ConstantDigest, ...]:
    found = list(enumerate(list_constants(artifact, min_size=LARGE)))
    if len(found) > MOST_CONSTANTS:
        # Of equal size, the first; then again in the order of the program.
        found = sorted(nlargest(MOST_CONSTANTS, found, key=lambda item: (item[1].bytes, -item[0])))
    return tuple(ConstantDigest(each.path, each.type, each.bytes, each.digest) for _, each in found)
