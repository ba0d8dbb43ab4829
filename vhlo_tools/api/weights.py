"""The constants of artifacts: what there are, as files, taken out, and put back."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Final

from vhlo_tools.api.functions import ArtifactSource
from vhlo_tools.artifact import Artifact, read_bytes
from vhlo_tools.weights import (
    Constant,
    Externalized,
    Extracted,
    externalize,
    extract,
    list_constants,
    read_tensors,
    restore,
)

__all__ = ["LARGE", "constants", "externalize_constants", "extract_constants", "restore_constants"]

#: Constants of this many bytes are taken out if nothing else is said.
LARGE: Final = 1 << 20


def constants(artifact: ArtifactSource, *, min_size: int = 0) -> list[Constant]:
    """Return the constants of an artifact, in the order of its text. No MLIR is needed, and none is held in memory.

    Args:
        artifact: The artifact, its path or its bytes, or those of a jax.export file.
        min_size: How many bytes the elements of those that are wanted take at least.

    Raises:
        MalformedArtifactError: If it is no artifact, or a damaged one.
    """
    return list_constants(Artifact.open(artifact), min_size=min_size)


def extract_constants(
    artifact: ArtifactSource, output: str | PathLike[str], *, only: Sequence[str] = (), force: bool = False
) -> list[Extracted]:
    """Write the constants of an artifact as files that numpy and others read.

    Args:
        artifact: The artifact, its path or its bytes, or those of a jax.export file.
        output: A ``.safetensors`` file for all of them, a ``.npy`` file for one, or else a folder for ``.npy`` files.
        only: The paths of those that are wanted, as :func:`constants` gives them; by default all.
        force: Whether existing files may be replaced.

    Returns:
        For each constant the file that holds it, or why none does.

    Raises:
        InvalidInputError: If there is no such constant, or not one for a ``.npy`` file.
        MalformedArtifactError: If it is no artifact, or a damaged one.
        FileExistsError: If a file exists and ``force`` is not set.
        OSError: If one cannot be written.
    """
    return extract(Artifact.open(artifact), Path(output), only=only, force=force)


def externalize_constants(artifact: ArtifactSource, *, min_size: int = LARGE, function: str = "main") -> Externalized:
    """Make arguments of the large constants of a function, appended to those that it has.

    Args:
        artifact: The artifact, its path or its bytes; what is made refers to it.
        min_size: How many bytes the elements of a constant must take at least.
        function: The function, which no other may call.

    Returns:
        The new artifact, the values, and what tells :func:`restore_constants` where they were.

    Raises:
        InvalidInputError: If there is no such function, or others depend on the number of its arguments.
        MalformedArtifactError: If it is no artifact, or a damaged one.
    """
    return externalize(Artifact.open(artifact, unpack=False), min_size=min_size, function=function)


def restore_constants(artifact: ArtifactSource, weights: str | PathLike[str]) -> Artifact:
    """Put the constants back that :func:`externalize_constants` took out; the program is then the same as before.

    Args:
        artifact: The artifact without them, which may be at another version by now, or stripped.
        weights: The file with their values, to which what is made refers.

    Raises:
        InvalidInputError: If the file is damaged, or belongs to another artifact.
        MalformedArtifactError: If ``artifact`` is no artifact, or a damaged one.
        OSError: If a file cannot be read.
    """
    tensors = read_tensors(memoryview(read_bytes(Path(weights))), fspath(weights))
    return restore(Artifact.open(artifact, unpack=False), tensors)
