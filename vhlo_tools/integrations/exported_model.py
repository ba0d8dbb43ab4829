"""Result of every integration: an artifact, and the names of the arguments of its ``main``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Unpack

from vhlo_tools.artifact import Artifact, StoredTensor, element_named, write_tensors
from vhlo_tools.bindings import get_provider
from vhlo_tools.compat import resolve_target
from vhlo_tools.conversion import serialize_program
from vhlo_tools.files import Chunk, place, write_atomically
from vhlo_tools.findings import Finding
from vhlo_tools.integrations.binding import bind_arguments
from vhlo_tools.program import load_program
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.program import ProgramSource, WriteOptions

_ARGUMENTS: Final = "vhlo_tools.arguments"


@dataclass(frozen=True, slots=True)
class ExportedModel:
    """A framework's model as a portable artifact.

    ``main`` accepts the inputs, in the order of ``inputs``, followed by the weights, in the order of ``weights``.
    """

    artifact: Artifact
    inputs: tuple[str, ...]
    #: If the framework names them: outputs first, then the new values of weights that the model changes.
    outputs: tuple[str, ...] = ()
    #: values by name; empty if the artifact contains them as constants
    weights: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    @classmethod
    def named(
        cls,
        artifact: Artifact,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...] = (),
        weights: Mapping[str, np.ndarray[Any, Any]] | None = None,
    ) -> ExportedModel:
        """Record the names in the artifact too; ``outputs`` may be empty, ``weights`` is ``None`` for constants."""
        weights = weights or {}
        artifact = artifact.with_names(dict(enumerate((*inputs, *weights))), dict(enumerate(outputs)))
        return cls(artifact, inputs, outputs, weights)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings about the artifact: parts that were rewritten on the way, or dropped."""
        return tuple(self.artifact.findings)

    @property
    def arguments(self) -> tuple[str, ...]:
        return (*self.inputs, *self.weights)

    def bound(self) -> ExportedModel:
        """Return the model with its weights as constants, which keep their names in the artifact."""
        return ExportedModel(bind_arguments(self.artifact, self.weights), self.inputs, self.outputs)

    def save(
        self, path: str | PathLike[str], weights: str | PathLike[str] | None = None, *, force: bool = False
    ) -> None:
        """Write the artifact, and its weights as a safetensors file.

        Args:
            path: The path of the artifact.
            weights: The path of the weights, by default ``path`` with the suffix ``.safetensors``; nothing is written
                if there are none.
            force: Whether existing files may be replaced.

        Raises:
            FileExistsError: If a file exists and ``force`` is not set.
            OSError: If a file cannot be written.
        """
        if self.weights:
            write_atomically(
                place(weights or place(path).with_suffix(".safetensors")), self.weights_file(), force=force
            )
        self.artifact.save(path, force=force)

    def weights_file(self) -> Iterator[Chunk]:
        """Yield the chunks of a safetensors file of the weights.

        The format orders tensors by the size of their elements. The order of the arguments of ``main`` is in its
        metadata: a list of the names of all arguments as JSON, under ``vhlo_tools.arguments``.
        """
        tensors = {name: _tensor(value) for name, value in self.weights.items()}
        return write_tensors(tensors, {_ARGUMENTS: json.dumps(self.arguments)})


def serialize_module(
    module: ProgramSource,
    target: str | Version,
    *,
    name: str,
    as_of: date | None = None,
    provider: str | None = None,
    **options: Unpack[WriteOptions],
) -> Artifact:
    """Serialize a framework's program; windows and ``current`` in ``target`` are those of ``provider``.

    A module of another, older provider is written for a version that it can write, and then retargeted.
    """
    library = get_provider(provider).library
    wanted = resolve_target(str(target), lambda: library, as_of=as_of).within(library)
    loaded = load_program(module, name=name)
    newest = loaded.provider.library.current
    written = wanted if wanted.version <= newest else replace(wanted, version=newest)
    artifact = serialize_program(loaded, written, **options)
    if written is wanted:
        return artifact
    return artifact.retargeted(wanted.version).with_findings(artifact.findings)


def _tensor(value: np.ndarray[Any, Any]) -> StoredTensor:
    import numpy as np

    whole = np.ascontiguousarray(value)
    data = memoryview(whole.reshape(-1).view(np.uint8).data) if whole.size else memoryview(b"")
    # `ascontiguousarray` turns scalars into vectors.
    return StoredTensor(element_named(str(whole.dtype)), whole.dtype.itemsize, np.shape(value), "whole", data)
