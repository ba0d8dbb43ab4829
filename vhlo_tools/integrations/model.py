"""What every integration gives back: an artifact, and the arguments of its ``main`` by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import get_provider
from vhlo_tools.bytecode import Chunk
from vhlo_tools.compat import resolve_target
from vhlo_tools.convert import serialize_program
from vhlo_tools.files import write_atomically
from vhlo_tools.integrations.binding import bind_arguments
from vhlo_tools.program import load_program
from vhlo_tools.version import Version
from vhlo_tools.weights import Tensor, element_named, write_tensors

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.program import ProgramSource

__all__ = ["ExportedModel", "serialize_module"]

_ARGUMENTS: Final = "vhlo_tools.arguments"


@dataclass(frozen=True, slots=True)
class ExportedModel:
    """A model of a framework as a portable artifact.

    ``main`` takes the inputs, in the order of ``inputs``, and then the weights, in the order of ``weights``.

    Attributes:
        artifact: The artifact.
        inputs: The names of the inputs.
        outputs: The names of the results, where the framework has names for them: outputs first, then what becomes of
            weights that the model changes.
        weights: The values of the weights by name; empty if the artifact holds them as constants.
    """

    artifact: Artifact
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    weights: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    @classmethod
    def named(
        cls,
        artifact: Artifact,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...] = (),
        weights: Mapping[str, np.ndarray[Any, Any]] | None = None,
    ) -> ExportedModel:
        """Return a model whose artifact knows the names of its arguments and results too.

        Args:
            artifact: The artifact.
            inputs: As the attributes of a model, like all that follows.
            outputs: None if there are no names for them.
            weights: None if they are constants.

        Raises:
            InvalidProgramError: If ``main`` has fewer arguments or results.
        """
        weights = weights or {}
        artifact = artifact.with_names(dict(enumerate((*inputs, *weights))), dict(enumerate(outputs)))
        return cls(artifact, inputs, outputs, weights)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of all arguments of ``main``."""
        return (*self.inputs, *self.weights)

    def bound(self) -> ExportedModel:
        """Return the model with its weights as constants, which stand by their names in the artifact.

        Raises:
            InvalidInputError: If a weight is not of the type of its argument.
            MalformedArtifactError: If the artifact is damaged.
        """
        return ExportedModel(bind_arguments(self.artifact, self.weights), self.inputs, self.outputs)

    def save(
        self, path: str | PathLike[str], weights: str | PathLike[str] | None = None, *, force: bool = False
    ) -> None:
        """Write the artifact, and its weights as a safetensors file.

        Args:
            path: Where the artifact shall be.
            weights: Where the weights shall be, by default beside it with the suffix ``.safetensors``; nothing is
                written if there are none.
            force: Whether existing files may be replaced.

        Raises:
            FileExistsError: If a file exists and ``force`` is not set.
            OSError: If one cannot be written.
        """
        if self.weights:
            write_atomically(Path(weights or Path(path).with_suffix(".safetensors")), self.weights_file(), force=force)
        self.artifact.save(path, force=force)

    def weights_file(self) -> Iterator[Chunk]:
        """Yield a safetensors file of the weights, in pieces.

        The format orders tensors by the size of their elements. In which order ``main`` takes them stands in its
        metadata: a list of the names of all arguments as JSON, under ``vhlo_tools.arguments``.
        """
        tensors = {name: _tensor(value) for name, value in self.weights.items()}
        return write_tensors(tensors, {_ARGUMENTS: json.dumps(self.arguments)})


def serialize_module(
    module: ProgramSource,
    target: str | Version,
    *,
    name: str,
    allow_other_dialects: bool = False,
    legalize: bool = True,
    as_of: date | None = None,
    provider: str | None = None,
) -> Artifact:
    """Write what a framework gave as an artifact.

    Args:
        module: An ``ir.Module`` of any provider, or anything else that is a program.
        target: In the grammar of targets; the windows and ``current`` are those of ``provider``, also where the module
            is of another one that writes older versions only.
        name: What to call it in messages.
        allow_other_dialects: Whether ops of dialects beside StableHLO may stay.
        legalize: Whether what portable artifacts cannot hold is rewritten.
        as_of: The day that windows in ``target`` count back from, by default today.
        provider: The bindings whose versions count, by default the installed ones.

    Raises:
        DowngradeError: If it holds what the target does not have.
        UnsupportedFeatureError: If it holds what no artifact can hold.
        UnknownTargetError: If the target is unknown, or a version that the library cannot write.
    """
    library = get_provider(provider).library
    wanted = resolve_target(str(target), lambda: library, as_of=as_of).within(library)
    loaded = load_program(module, name=name)
    newest = loaded.provider.library.current
    written = wanted if wanted.version <= newest else replace(wanted, version=newest)
    artifact = serialize_program(loaded, written, allow_other_dialects=allow_other_dialects, legalize=legalize)
    if written is wanted:
        return artifact
    return artifact.retargeted(wanted.version).with_findings(artifact.findings)


def _tensor(value: np.ndarray[Any, Any]) -> Tensor:
    import numpy as np

    whole = np.ascontiguousarray(value)
    data = memoryview(whole.reshape(-1).view(np.uint8).data) if whole.size else memoryview(b"")
    # Scalars become vectors on the way.
    return Tensor(element_named(str(whole.dtype)), whole.dtype.itemsize, np.shape(value), "whole", data)
