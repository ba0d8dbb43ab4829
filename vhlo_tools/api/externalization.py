"""Constants of artifacts: listing, extraction to files, externalization and restoring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Final

from vhlo_tools.artifact import (
    LARGEST_SUM,
    Artifact,
    Constant,
    Externalized,
    Extracted,
    externalize,
    extract,
    list_constants,
    read_tensors,
    restore,
)
from vhlo_tools.files import place, read_bytes

if TYPE_CHECKING:
    from vhlo_tools.api.conversion import ArtifactSource

__all__ = ["LARGE", "LARGEST_SUM", "constants", "externalize_constants", "extract_constants", "restore_constants"]

#: The default minimum size of constants to externalize, in bytes.
LARGE: Final = 1 << 20


def constants(artifact: ArtifactSource, *, min_size: int = 0) -> list[Constant]:
    """Return the constants of an artifact, in the order of its text, without MLIR and without loading their values.

    Args:
        artifact: The artifact, its path or its bytes, or those of a jax.export file.
        min_size: The minimum size of a constant's elements in bytes.

    Raises:
        MalformedArtifactError: If it is not an artifact, or a damaged one.
    """
    return list_constants(Artifact.open(artifact), min_size=min_size)


def extract_constants(
    artifact: ArtifactSource,
    output: str | PathLike[str],
    *,
    only: Sequence[str] = (),
    force: bool = False,
    max_size: int = LARGEST_SUM,
    announce: Callable[[int, int], None] | None = None,
) -> list[Extracted]:
    """Write the constants of an artifact to files for numpy and other programs.

    Args:
        artifact: The artifact, its path or its bytes, or those of a jax.export file.
        output: A ``.safetensors`` file for all of them, a ``.npy`` file for one, or else a folder for ``.npy`` files.
        only: The paths of the constants to extract, as in :func:`constants`; by default all.
        force: Whether existing files may be replaced.
        max_size: The limit on the bytes of all constants that are written: a small file may represent terabytes.
        announce: Called before anything is written, with the number of constants and the sum of their bytes.

    Returns:
        For each constant its file, or the reason why it has none.

    Raises:
        InvalidInputError: If a path names no constant, or a ``.npy`` file does not get exactly one; or if they are
            larger than ``max_size``, or than the space left on the disk. Nothing is written.
        MalformedArtifactError: If it is not an artifact, or a damaged one.
        FileExistsError: If a file exists and ``force`` is not set.
        OSError: If a file cannot be written.
    """
    return extract(Artifact.open(artifact), place(output), only=only, force=force, max_size=max_size, announce=announce)


def externalize_constants(artifact: ArtifactSource, *, min_size: int = LARGE, function: str = "main") -> Externalized:
    """Replace the large constants of a function by arguments, appended to the existing ones.

    Args:
        artifact: The artifact, its path or its bytes; the result refers to it.
        min_size: The minimum size of a constant's elements in bytes.
        function: The function, which must not be called by others.

    Returns:
        The new artifact, the values, and the metadata that :func:`restore_constants` needs.

    Raises:
        InvalidInputError: If there is no such function, or others depend on the number of its arguments.
        MalformedArtifactError: If it is not an artifact, or a damaged one.
    """
    return externalize(Artifact.open(artifact, unpack=False), min_size=min_size, function=function)


def restore_constants(artifact: ArtifactSource, weights: str | PathLike[str]) -> Artifact:
    """Restore the constants that :func:`externalize_constants` replaced, which reproduces the original program.

    Args:
        artifact: The artifact without them, which may have been retargeted or stripped since.
        weights: The file with their values, which the result refers to.

    Raises:
        InvalidInputError: If the file is damaged, or belongs to another artifact.
        MalformedArtifactError: If ``artifact`` is not an artifact, or a damaged one.
        OSError: If a file cannot be read.
    """
    tensors = read_tensors(read_bytes(place(weights)), str(weights))
    return restore(Artifact.open(artifact, unpack=False), tensors)
