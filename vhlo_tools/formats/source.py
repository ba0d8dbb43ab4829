"""Identification of a program given by a caller, once: its kind, its bytes, and its name in messages.

Objects are identified by the names of their classes, so that no framework is imported.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.formats.recognition import Kind, is_saved_model, recognise
from vhlo_tools.formats.storage import as_bytes, read_bytes
from vhlo_tools.mapping import FileRange
from vhlo_tools.records import dataclass
from vhlo_tools.remote import is_path, is_url, place

if TYPE_CHECKING:
    from vhlo_tools.formats.storage import Buffer

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
    ("torch.export", "ExportedProgram", Kind.TORCH_EXPORT),
)


def identify(given: object, name: str | None = None) -> Source:
    """Identify a program, and read its file if it is a path; a :class:`Source` is returned unchanged."""
    if isinstance(given, Source):
        return given
    if isinstance(given, str) and _is_text(given):
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
    return _identify_object(given, name)


def _identify_object(given: Any, name: str | None) -> Source:
    if _is_of(given, "jax", "Exported"):
        return Source(
            given, Kind.PORTABLE_ARTIFACT, name or f"the export of {given.fun_name}", given.mlir_module_serialized
        )
    if _is_of(given, "jaxlib", "HloModule") or _is_of(given, "jaxlib", "XlaComputation"):
        return Source(given, Kind.HLO_PROTO, name or "the computation", bytes(given.as_serialized_hlo_module_proto()))
    kind = next((kind for package, class_name, kind in _OBJECTS if _is_of(given, package, class_name)), None)
    return Source(given, kind, name)


def _is_of(given: object, package: str, name: str) -> bool:
    """Whether an object is of a class with this name, from a package."""
    return any(cls.__name__ == name and f"{cls.__module__}.".startswith(f"{package}.") for cls in type(given).__mro__)


def _is_text(given: str) -> bool:
    """Whether a string is a program and not a path: blank or with characters of programs, and not a file."""
    if is_url(given) and "\n" not in given:
        return False
    if given.strip() and not any(sign in given for sign in _TEXT_SIGNS):
        return False
    try:
        return not os.path.isfile(given)  # noqa: PTH113 - a Path of a long text raises
    except ValueError:
        return True
