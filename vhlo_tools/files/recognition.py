"""Recognition of the kind of a file by its contents, never by its name; of a folder, by the file in it."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.files.mapping import FileRange, View, map_file, open_regular, view as as_view
from vhlo_tools.files.urls import Url, is_path, is_url, place
from vhlo_tools.lazy import pattern
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.files.urls import Place

# Access to the bytes of files and objects: small ones are read at once, large ones on access

Buffer = bytes | bytearray | View

# Below this, one read costs less than several.
_READ_BELOW = 1 << 24


def read_bytes(path: Place) -> Buffer:
    """Access to a large file raises if the file has been cut short, or the object replaced, in the meantime."""
    if isinstance(path, Url):
        from vhlo_tools.files.objects import open_object

        return open_object(path)
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size < _READ_BELOW:
            return file.read()
    return map_file(path)


def as_bytes(data: Buffer) -> Buffer:
    """Convert views with gaps, other formats or other ranks to single bytes."""
    if not isinstance(data, memoryview) or (data.contiguous and data.format == "B" and data.ndim == 1):
        return data
    return data.cast("B") if data.contiguous else data.tobytes()


# Recognition of the kind of a file by its contents, never by its name; of a folder, by the file in it

#: The magic number of MLIR bytecode (``mlir/docs/BytecodeFormat.md``).
MAGIC: Final = b"ML\xefR"

#: The prefix of the producer of a portable artifact, before its version (``stablehlo/dialect/Serialization.cpp``).
ARTIFACT_PRODUCER: Final = b"StableHLO_v"

#: The file that makes a folder a SavedModel of TensorFlow.
SAVED_MODEL_FILE: Final = "saved_model.pb"

_TEXT_SAMPLE = 4096


class Kind(StrEnum):
    """The kinds of input."""

    PORTABLE_ARTIFACT = "portable-artifact"
    MLIR_BYTECODE = "mlir-bytecode"
    JAX_EXPORT = "jax-export"
    MLIR_TEXT = "mlir-text"
    HLO_TEXT = "hlo-text"
    HLO_PROTO = "hlo-proto"
    TORCH_EXPORT = "torch-export"
    #: A folder; all others except the next are the contents of a file.
    SAVED_MODEL = "saved-model"
    #: A Python object of the class ``jax.stages.Lowered``.
    JAX_LOWERED = "jax-lowered"


def recognise(data: Buffer, name: str = "the input") -> Kind:
    if len(data) == 0:
        raise InvalidProgramError(f"{name} is empty: expected {_EXPECTED}")
    view = as_view(data)
    head = bytes(view[:_TEXT_SAMPLE])
    if head.startswith(MAGIC):
        # The version of the format is a varint of one to nine bytes between the magic and the producer.
        producer = head[len(MAGIC) + 1 : len(MAGIC) + 9 + len(ARTIFACT_PRODUCER)]
        return Kind.PORTABLE_ARTIFACT if ARTIFACT_PRODUCER in producer else Kind.MLIR_BYTECODE
    # Imported here, as are the next, because most files are artifacts.
    from vhlo_tools.files.torch_export import is_torch_export

    if is_torch_export(view):
        return Kind.TORCH_EXPORT
    from vhlo_tools.files.hlo import find_hlo_module
    from vhlo_tools.files.jax_export import is_jax_export

    if is_jax_export(view):
        return Kind.JAX_EXPORT
    if find_hlo_module(view) is not None:
        return Kind.HLO_PROTO
    if not _is_text(head, len(view)):
        raise InvalidProgramError(
            f"{name} has no known program format: it starts with {head[:8]!r}, expected {_EXPECTED}"
        )
    return _kind_of_text(view, name)


#: What may stand before the first word: white space and comments.
_BEFORE: Final = pattern(rb"(?:\s++|//[^\n]*+(?:\n|\Z))*+")
#: The first words of HLO text.
_HLO_WORD: Final = pattern(rb"HloModule[\s,]")
#: The first words of MLIR text: metadata, a name of an attribute, of a type or of a value that is defined, or an op
#: (``mlir/docs/LangRef.md``, "High-Level Structure" and "Operations").
_MLIR_WORDS: Final = pattern(
    rb"""\{-\# | [#!][\w$.]+\s*= | %[\w$.-]+(?::\d+)?\s*[,=] | "[\w$.]+"\s*\(
    | module\s*(?:[@{]|attributes\b) | func\s+(?:@|private\b|public\b|nested\b)
    | [a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)+(?:(?:[ \t]+[a-z_]+){0,3}[ \t]*[@%{"<:]|[ \t]+[a-z_]+\()""",
    re.VERBOSE,
)
#: So much may stand before the first words, which are found in so much.
_LONGEST_COMMENT: Final = 1 << 26
_LONGEST_WORDS: Final = 1 << 10


def _kind_of_text(text: View, name: str) -> Kind:
    for size in (_TEXT_SAMPLE, _LONGEST_COMMENT):
        word = _BEFORE.sub(b"", bytes(text[:size]), count=1)
        # A sample may end within a comment, and within the words.
        if len(word) >= _LONGEST_WORDS:
            break
    if _HLO_WORD.match(word):
        return Kind.HLO_TEXT
    if _MLIR_WORDS.match(word):
        return Kind.MLIR_TEXT
    if lfs_pointer(text) is not None:
        raise InvalidProgramError(
            f"{name} is a pointer of Git LFS, and not what it points to: `git lfs pull` fetches it"
        )
    if not word:
        raise InvalidProgramError(f"{name} contains only white space and comments: expected {_EXPECTED}")
    begins = word[:24].decode("utf-8", "replace")
    raise InvalidProgramError(
        f"{name} is text, but neither MLIR nor HLO: it begins with {begins!r}, expected {_EXPECTED}"
    )


def is_saved_model(path: str | PathLike[str]) -> bool:
    try:
        return os.path.isfile(os.path.join(path, SAVED_MODEL_FILE))  # noqa: PTH113, PTH118 - a Path of a long text raises
    except ValueError:
        return False


_EXPECTED = "a portable artifact, MLIR bytecode or text, HLO, a jax.export file or a torch.export file"


def _is_text(sample: bytes, size: int) -> bool:
    """Judge by the beginning of ``size`` bytes."""
    if b"\0" in sample:
        return False
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        # The sample may end within a character.
        return size > _TEXT_SAMPLE and error.start > _TEXT_SAMPLE - 4
    return True


# Identification of a program given by a caller, once: its kind, its bytes, and its name in messages
#
# Objects are identified by the names of their classes, so that no framework is imported.

# Characters that occur in programs, but not in file names.
_TEXT_SIGNS: Final = "\n\0{("


@dataclass(frozen=True, slots=True)
class Source:
    """A program as given by a caller.

    Attributes:
        given: The argument of the caller.
        kind: Its kind; ``None`` for an object of another kind, such as an MLIR module.
        name: Its name in messages: its path, if it has one.
        data: Its bytes, if it has any.
        is_text: Whether it was given as text, which the caller wrote or read.
    """

    given: object
    kind: Kind | None
    name: str | None
    data: Buffer | None = None
    is_text: bool = False


# The objects that are programs: the package of their class, its name, and their kind.
_OBJECTS: Final = (
    ("vhlo_tools", "Artifact", Kind.PORTABLE_ARTIFACT),
    ("jax", "Lowered", Kind.JAX_LOWERED),
    ("jax", "Traced", Kind.JAX_LOWERED),
    ("torch.export", "ExportedProgram", Kind.TORCH_EXPORT),
)
#: Objects that are none, and what makes a program of each.
_NEARLY: Final = (
    ("jaxlib", "PjitFunction", "lower it for its inputs, and pass f.lower(x)"),
    ("jax", "Compiled", "it has StableHLO no longer: pass what was compiled, as jax.jit(f).lower(x)"),
    ("jax", "ClosedJaxpr", "pass jax.jit(jax.extend.core.jaxpr_as_fun(jaxpr)).lower(x)"),
    ("jax", "Jaxpr", "close it, and pass jax.jit(jax.extend.core.jaxpr_as_fun(closed_jaxpr)).lower(x)"),
    ("keras", "Layer", "call model.export(folder), and pass the folder"),
    ("torch", "Module", "pass torch.export.export(module, (x,))"),
    ("tensorflow", "Module", "call tf.saved_model.save(module, folder), and pass the folder"),
    ("builtins", "function", "pass jax.jit(f).lower(x), or torch.export.export of a module that calls it"),
)


def identify(given: object, name: str | None = None) -> Source:
    """Identify a program, and read its file if it is a path; a :class:`Source` is returned unchanged."""
    if isinstance(given, Source):
        return given
    given = unwrapped(given)
    if isinstance(given, str) and _is_program_text(given):
        data = given.encode("utf-8", "surrogatepass")
        name = name or "the text"
        return Source(given, recognise(data, name), name, data, is_text=True)
    if is_path(given):
        called, where = name or str(given), place(given)
        if isinstance(where, Path) and is_saved_model(where):
            return Source(given, Kind.SAVED_MODEL, called)
        read = read_bytes(where)
        return Source(given, recognise(read, called), called, read)
    if isinstance(given, bytes | bytearray | memoryview | FileRange):
        held = as_bytes(given)
        return Source(given, recognise(held, name or "the input"), name, held)
    program: Any = given
    if _is_of(given, "jax", "Exported"):
        called = name or f"the export of {program.fun_name}"
        return Source(given, Kind.PORTABLE_ARTIFACT, called, program.mlir_module_serialized)
    if _is_of(given, "jaxlib", "HloModule") or _is_of(given, "jaxlib", "XlaComputation"):
        return Source(given, Kind.HLO_PROTO, name or "the computation", bytes(program.as_serialized_hlo_module_proto()))
    kind = next((kind for package, class_name, kind in _OBJECTS if _is_of(given, package, class_name)), None)
    return Source(given, kind, name)


def unwrapped(given: Any) -> Any:
    """Return the artifact of what an integration returned, and any other object as it is."""
    return given.artifact if _is_of(given, "vhlo_tools", "ExportedModel") else given


def advice_on(given: object) -> str:
    """Return what makes a program of an object that is none, as the end of a message; empty if nothing is known."""
    found = (advice for package, class_name, advice in _NEARLY if _is_of(given, package, class_name))
    return next((f"; {advice}" for advice in found), "")


def _is_of(given: object, package: str, name: str) -> bool:
    """Whether an object is of a class with this name, from a package."""
    return any(cls.__name__ == name and f"{cls.__module__}.".startswith(f"{package}.") for cls in type(given).__mro__)


def _is_program_text(given: str) -> bool:
    """Whether a string is a program and not a path: blank or with characters of programs, and not a file."""
    if is_url(given) and "\n" not in given:
        return False
    if given.strip() and not any(sign in given for sign in _TEXT_SIGNS):
        return False
    try:
        return not os.path.isfile(given)  # noqa: PTH113 - a Path of a long text raises
    except ValueError:
        return True


# What stands in a checkout for contents that were not fetched. Source: docs/spec.md of Git LFS, "The Pointer".
_POINTER: Final = pattern(rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-.*\n)*oid sha256:([0-9a-f]{64})\n")
_LONGEST_POINTER: Final = 1024


def lfs_pointer(data: Buffer) -> str | None:
    """Return the SHA-256 that a pointer of Git LFS names; ``None`` for anything else."""
    if len(data) > _LONGEST_POINTER:
        return None
    match = _POINTER.match(bytes(data))
    return match[1].decode("ascii") if match else None
