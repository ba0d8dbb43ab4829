"""A manifest: the description of a file with an artifact, as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from heapq import nlargest
from os import PathLike
from typing import Any, Final

from vhlo_tools.aliasing import Alias, Donor
from vhlo_tools.artifact.artifact import Artifact, Making, other_dialects
from vhlo_tools.artifact.constants import list_constants
from vhlo_tools.artifact.jax_container import JaxContainer
from vhlo_tools.documents import read_json
from vhlo_tools.errors import ManifestError
from vhlo_tools.files import (
    MANIFEST_HEAD,
    Buffer,
    Chunk,
    FileRange,
    Kind,
    as_bytes,
    is_path,
    place,
    read_bytes,
    recognise,
    slices,
    view,
    write_atomically,
)
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.version import VhloToolsError

# Statements of a manifest about the program in a file, read from the bytes without MLIR

# The reader of manifests reads the types of fields when it runs.

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


def _contents_of(artifact: Artifact) -> dict[str, Any]:
    """Return what a :class:`Manifest` says of a program, by the names of its attributes."""
    requirements, inventory = artifact.requirements(), artifact.inventory()
    main = next((each for each in inventory.functions if each.name == _ENTRY), None)
    constants = list(enumerate(list_constants(artifact, min_size=LARGE)))
    if len(constants) > MOST_CONSTANTS:
        # Of equal size, the first; then again in the order of the program.
        constants = sorted(nlargest(MOST_CONSTANTS, constants, key=lambda item: (item[1].bytes, -item[0])))
    return {
        "producer": artifact.producer,
        "version": str(artifact.version),
        "bytecode_version": artifact.bytecode_version,
        "readable_since": str(requirements.readable_since),
        "downgradable_to": str(requirements.downgradable_to),
        "features": tuple(sorted({each.id for each in requirements.features})),
        "other_dialects": tuple(sorted(other_dialects(artifact))),
        "signature": Signature(main.arguments, main.results) if main else None,
        "aliases": inventory.aliases,
        "donors": inventory.donors,
        "constants": tuple(ConstantDigest(each.path, each.type, each.bytes, each.digest) for _, each in constants),
    }


# A manifest: the description of a file with an artifact, as JSON of which every byte is determined
#
# The last entry is a checksum of those before it. A manifest is read only if it is, to the last byte, what would be
# written for the values in it, so that damage to the manifest itself is found without the artifact. This protects from
# accidents; from an attacker, who can compute a checksum as well, only a signature does.

#: The version of the structure. A reader refuses any other: what it does not know, it cannot verify.
SCHEMA: Final = 1
#: The largest manifest that is read, in bytes; the largest that is written has some thousand constants.
_LARGEST: Final = 1 << 24
#: What another release of vhlo_tools may conclude differently about the same bytes.
_CONCLUSIONS: Final = frozenset({"readable_since", "downgradable_to", "features"})
_SHOWN: Final = 100

#: What a manifest describes: the path or the URL of a file, its bytes, or what was read from them.
Held = str | PathLike[str] | Buffer | Artifact | JaxContainer


@dataclass(frozen=True, slots=True)
class ManifestDifference:
    """Something that a file is not as its manifest says.

    Attributes:
        field: The name of the entry, such as ``sha256``.
        expected: What the manifest says, as text.
        found: What the file has, as text.
    """

    field: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.field}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a file with an artifact is.

    It depends on the bytes of the file, and on how they were made, alone: neither on the day nor on the machine.

    Attributes:
        kind: ``portable-artifact``, or ``jax-export`` for a jax.export file, of whose function the rest is.
        size: The size of the file in bytes.
        sha256: The SHA-256 of the file, as hexadecimal digits.
        producer: The producer in the header, ``StableHLO_v#.#.#``.
        version: The StableHLO version in the header.
        bytecode_version: The version of MLIR bytecode.
        readable_since: The oldest version whose readers accept the artifact.
        downgradable_to: The oldest version at which the program can be written unchanged.
        features: The ids of its features that not every version has, in alphabetical order.
        other_dialects: The dialects in it that are not part of StableHLO, in alphabetical order.
        signature: The types of ``main``; ``None`` if it has no such function.
        aliases: The input-output aliases of ``main``.
        donors: The buffer donors of ``main``.
        constants: The constants of at least 1,024 bytes, in the order of the program; of very many, the 4,096 largest.
        tool: The release of vhlo_tools that wrote the manifest.
        made: How the file was made, if that is known.
    """

    kind: str
    size: int
    sha256: str
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
    tool: str
    made: Making | None = None

    @classmethod
    def of(cls, held: Held, *, made: Making | None = None) -> Manifest:
        """Return the manifest of an artifact or of a jax.export file.

        >>> import vhlo_tools as vt
        >>> artifact = vt.serialize("func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }")
        >>> vt.Manifest.of(artifact).signature
        Signature(arguments=('tensor<2xf32>',), results=('tensor<2xf32>',))

        Args:
            held: The artifact, its path, its bytes, or those of a jax.export file.
            made: How it was made, by default what is known of an artifact that this process made.

        Raises:
            MalformedArtifactError: If it is not an artifact, or a damaged one.
            OSError: If the file cannot be read.
        """
        chunks, artifact, kind = _opened(held)
        if made is None and isinstance(held, Artifact | JaxContainer):
            made = artifact.made
        size, digest = measured(chunks)
        return cls(str(kind), size, digest, **_contents_of(artifact), tool=_tool(), made=made)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Manifest:
        """Return the manifest in a file, which may be hostile.

        Args:
            path: The path of the manifest, or its URL.

        Raises:
            ManifestError: If it is not a manifest, a damaged one, or one of another version of the structure.
            OSError: If it cannot be read.
        """
        return cls.decode(read_bytes(place(path)), name=str(path))

    @classmethod
    def decode(cls, data: Buffer, *, name: str = "the manifest") -> Manifest:
        """Return the manifest in ``data``, which may be hostile.

        Args:
            data: The contents of the file.
            name: The name of the manifest in messages.

        Raises:
            ManifestError: As for :meth:`load`.
        """
        if len(data) > _LARGEST:
            raise ManifestError(f"{name} has {len(data)} bytes: a manifest has at most {_LARGEST}")
        held = bytes(data)
        # Imported here because a file without a manifest needs it not.
        import msgspec

        try:
            found = msgspec.convert(_entries(held), Manifest)
        except (msgspec.ValidationError, ValueError) as error:
            raise ManifestError(
                f"{name} is not a manifest that can be used: {printable(str(error))}; {_AGAIN}"
            ) from error
        if found.encode() != held:
            raise ManifestError(
                f"{name} is damaged or was edited: its checksum, or the form of its text, is not that of its "
                f"contents; {_AGAIN}"
            )
        return found

    def encode(self) -> bytes:
        """Return the contents of its file, which are the same for equal manifests."""
        entries = {"vhlo_manifest": SCHEMA, **asdict(self)}
        checksum = hashlib.sha256(json.dumps(entries, indent=2).encode("ascii")).hexdigest()
        return f"{json.dumps({**entries, 'checksum': checksum}, indent=2)}\n".encode("ascii")

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write it to a file, completely or not at all.

        Args:
            path: The path of the manifest, or its URL: :func:`vhlo_tools.artifact.manifest_place` of that of the file.
            force: Whether an existing file may be replaced.

        Raises:
            FileExistsError: If ``path`` exists and ``force`` is not set.
            OSError: If it cannot be written.
        """
        write_atomically(place(path), [self.encode()], force=force)

    def verify(self, held: Held, *, contents: bool = True) -> tuple[ManifestDifference, ...]:
        """Return what is not as the manifest says; nothing if the file is the one that it describes.

        Args:
            held: The artifact, its path, its bytes, or those of a jax.export file.
            contents: Whether to compare what the manifest says of the program, too, which tells what is different.
                The size and the digest alone take less time, and find every change of the file.

        Raises:
            OSError: If the file cannot be read.
        """
        data, whole = _chunks_of(held)
        size, digest = measured(data)
        differences = list(self._compared({"size": size, "sha256": digest}))
        if not contents:
            return tuple(differences)
        try:
            _, artifact, kind = _opened(whole)
            found = {"kind": str(kind), **_contents_of(artifact)}
        except VhloToolsError as error:
            # Bytes that are what they were, and cannot be read, were never described by a manifest of ours.
            return (*differences, ManifestDifference("contents", "a program that can be read", printable(str(error))))
        return (*differences, *self._compared(found))

    def _compared(self, found: Mapping[str, Any]) -> Iterator[ManifestDifference]:
        for name, value in found.items():
            expected = getattr(self, name)
            if expected != value and not (name in _CONCLUSIONS and self.tool != _tool()):
                yield ManifestDifference(name, *_told_apart(expected, value))


#: What to do about a manifest that cannot be used.
_AGAIN: Final = (
    "take the manifest from where the file came from, or, if the file itself is known to be right, write a new one "
    "with `vhlo manifest write --force`"
)


def _entries(data: bytes) -> dict[str, Any]:
    if not data.startswith(MANIFEST_HEAD):
        raise ValueError(f"it does not begin as every manifest does, with {MANIFEST_HEAD.decode()!r}")
    found = read_json(data)
    if not isinstance(found, dict):
        raise ValueError(f"expected an object, found a {type(found).__name__}")
    schema = found.pop("vhlo_manifest", None)
    if schema != SCHEMA or isinstance(schema, bool | float):
        raise ValueError(f"its structure is of version {schema!r}, and this release knows {SCHEMA} alone")
    if not isinstance(found.pop("checksum", None), str):
        raise ValueError("it has no checksum")
    names = [each.name for each in fields(Manifest)]
    if unknown := sorted(found.keys() - set(names)):
        raise ValueError(f"it has an unknown key, {unknown[0]!r}")
    if missing := [each for each in names if each not in found]:
        raise ValueError(f"the key {missing[0]!r} is missing")
    return found


@cache
def _tool() -> str:
    # Imported here because it takes longer than to read most files.
    from importlib.metadata import PackageNotFoundError, version as installed_version

    try:
        return f"vhlo_tools {installed_version('vhlo-tools')}"
    except PackageNotFoundError:  # the files alone, as in a browser
        return "vhlo_tools"


def _chunks_of(held: Held) -> tuple[list[Chunk | Buffer], Buffer | Artifact | JaxContainer]:
    """Return the bytes in pieces, and their owner, read once if it is a path."""
    if isinstance(held, Artifact | JaxContainer):
        return list(held.chunks), held
    if isinstance(held, bytes | bytearray | memoryview | FileRange):
        held = as_bytes(held)
        return [held], held
    data = read_bytes(place(held))
    return [data], data


def _opened(held: Held) -> tuple[list[Chunk | Buffer], Artifact, Kind]:
    """Return the bytes in pieces, the artifact that a manifest describes, and the kind of the file."""
    name = str(held) if is_path(held) else "the artifact"
    chunks, whole = _chunks_of(held)
    if isinstance(whole, Artifact):
        return chunks, whole, Kind.PORTABLE_ARTIFACT
    if not isinstance(whole, JaxContainer):
        if recognise(whole, name) is not Kind.JAX_EXPORT:
            return chunks, Artifact(whole, name=name), Kind.PORTABLE_ARTIFACT
        whole = JaxContainer(whole, name=name)
    return chunks, whole.artifacts[0], Kind.JAX_EXPORT


def measured(chunks: Iterable[Chunk | Buffer]) -> tuple[int, str]:
    """Return the size and the SHA-256, as hexadecimal digits."""
    size, digest = 0, hashlib.sha256()
    for chunk in chunks:
        size += len(chunk)
        for piece in slices(view(chunk)):
            digest.update(piece)
    return size, digest.hexdigest()


def _told_apart(expected: Any, found: Any) -> tuple[str, str]:
    """Return two values as text; of two lists, the first members that differ."""
    if isinstance(expected, tuple):
        for index, (one, other) in enumerate(zip(expected, found, strict=False)):
            if one != other:
                return f"{_text(one)} as number {index}", _text(other)
        return f"{len(expected)} of them", str(len(found))
    return _text(expected), _text(found)


def _text(value: Any) -> str:
    if is_dataclass(value):
        value = ", ".join(f"{each.name} {getattr(value, each.name)}" for each in fields(value))
    shown = "none" if value is None else printable(str(value))
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
