"""Constants written as files that numpy and others read."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vhlo_tools.artifact import Artifact
from vhlo_tools.bytecode import Chunk
from vhlo_tools.errors import InvalidInputError
from vhlo_tools.files import write_atomically
from vhlo_tools.weights.constants import named_constants
from vhlo_tools.weights.element_types import numpy_name
from vhlo_tools.weights.safetensors import write_tensors
from vhlo_tools.weights.survey import find_constants
from vhlo_tools.weights.tensors import Tensor

__all__ = ["LARGEST_SPLAT", "Extracted", "extract", "too_large"]

#: A few bytes of an artifact may stand for any number; more than this are not written out.
LARGEST_SPLAT: Final = 1 << 30

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME: Final = 120


@dataclass(frozen=True, slots=True)
class Extracted:
    """What became of a constant.

    Attributes:
        path: Where it stands in the program.
        file: The file that holds it; ``None`` if none does.
        dtype: The type of its elements as numpy or ml_dtypes calls it; a ``.npy`` file does not know those of
            ml_dtypes, and gives them as bytes to be viewed.
        reason: Why no file holds it.
    """

    path: str
    file: Path | None
    dtype: str | None
    reason: str | None = None


def extract(artifact: Artifact, output: Path, *, only: Sequence[str] = (), force: bool = False) -> list[Extracted]:
    """Write the constants of ``artifact`` to ``output``.

    Args:
        artifact: The artifact.
        output: A ``.safetensors`` file for all of them, a ``.npy`` file for one, or else a folder for ``.npy`` files.
        only: The paths of those that are wanted; by default all.
        force: Whether existing files may be replaced.

    Raises:
        InvalidInputError: If there is no such constant, or not one for a ``.npy`` file.
        MalformedArtifactError: If the artifact is damaged.
        FileExistsError: If a file exists and ``force`` is not set.
        OSError: If one cannot be written.
    """
    constants, _ = find_constants(artifact.file)
    tensors = {path: tensor for path, _, tensor in named_constants(artifact.file, artifact.name, constants)}
    if unknown := [path for path in only if path not in tensors]:
        raise InvalidInputError(
            f"{artifact.name} has no constant {unknown[0]}; `vhlo constants list` shows those it has"
        )
    wanted = {path: tensor for path, tensor in tensors.items() if not only or path in only}
    if output.suffix == ".safetensors":
        return _as_one(wanted, output, force=force)
    files = _files(wanted, output)
    result = []
    for path, tensor in wanted.items():
        dtype = numpy_name(tensor.element)
        reason = too_large(tensor) or (None if dtype else f"numpy has no {tensor.element}")
        if reason is None:
            files[path].parent.mkdir(parents=True, exist_ok=True)
            write_atomically(files[path], _npy(tensor), force=force)
        result.append(Extracted(path, files[path] if reason is None else None, dtype, reason))
    return result


def _as_one(tensors: dict[str, Tensor], output: Path, *, force: bool) -> list[Extracted]:
    reasons = {path: too_large(tensor) for path, tensor in tensors.items()}
    written = {path: tensor for path, tensor in tensors.items() if reasons[path] is None}
    write_atomically(output, write_tensors(written, {}), force=force)
    return [
        Extracted(path, output if path in written else None, numpy_name(tensor.element), reasons[path])
        for path, tensor in tensors.items()
    ]


def too_large(tensor: Tensor) -> str | None:
    """Return why the elements of ``tensor`` are not written out, if they are not."""
    if tensor.form != "splat" or tensor.bytes <= LARGEST_SPLAT:
        return None
    return f"one element stands for {tensor.bytes} bytes; no more than {LARGEST_SPLAT} are written out"


def _files(tensors: dict[str, Tensor], output: Path) -> dict[str, Path]:
    """Return a file for each constant, with a name that every file system takes."""
    if output.suffix == ".npy":
        if len(tensors) != 1:
            raise InvalidInputError(
                f"{output} holds one constant, and there are {len(tensors)}: choose one with --only, or name a folder"
            )
        return dict.fromkeys(tensors, output)
    files: dict[str, Path] = {}
    # Some file systems do not tell letters of either case apart.
    taken: set[str] = set()
    for number, path in enumerate(tensors):
        stem = _UNSAFE.sub("_", path).strip("_.")[:_LONGEST_NAME] or "constant"
        if stem.lower() in taken:
            stem = f"{stem}-{number}"
        taken.add(stem.lower())
        files[path] = output / f"{stem}.npy"
    return files


def _npy(tensor: Tensor) -> Iterator[Chunk]:
    """Yield a ``.npy`` file."""
    import numpy as np

    name = numpy_name(tensor.element)
    # Of ml_dtypes, as bytes: `numpy.save` makes of some of them what no `numpy.load` reads.
    described = np.dtype(name).str if hasattr(np, name or "") else f"|V{tensor.size}"
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": described, "fortran_order": False, "shape": tensor.shape})
    yield head.getvalue()
    yield from tensor.chunks()
