"""Exported models: names and shapes of their inputs, and their weights bound or left open."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Unpack

from vhlo_tools.artifact import (
    Artifact,
    Form,
    Making,
    Moved,
    Provenance,
    StoredTensor,
    TensorFile,
    element_named,
    non_default_options,
    pack,
    restore,
    write_tensors,
)
from vhlo_tools.bindings import get_provider
from vhlo_tools.compat import resolve_target
from vhlo_tools.conversion import serialize_program
from vhlo_tools.errors import InvalidInputError
from vhlo_tools.files import Chunk, View, place, write_atomically
from vhlo_tools.findings import Finding
from vhlo_tools.program import load_program
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.program import ProgramSource, WriteOptions

# Names for the inputs, outputs and weights of models


def paths_of(structure: Any) -> Iterator[tuple[str, ...]]:
    """Yield the path to each leaf of nested mappings, sequences and named tuples, in the order of ``tf.nest``."""
    children: Iterable[tuple[object, Any]]
    if isinstance(structure, Mapping):
        children = ((key, structure[key]) for key in sorted(structure))
    elif isinstance(structure, tuple) and hasattr(structure, "_fields"):
        children = zip(structure._fields, structure, strict=True)
    elif isinstance(structure, list | tuple):
        children = enumerate(structure)
    else:
        yield ()
        return
    for key, child in children:
        for path in paths_of(child):
            yield (str(key), *path)


def joined(paths: Iterable[tuple[str, ...]], stem: str) -> list[str]:
    """Join paths to names: ``state.0``; ``stem`` precedes a leading number: ``output0``, ``output1.mean``."""
    names = []
    for path in paths:
        first, *rest = path or ("0",)
        names.append(".".join([f"{stem}{first}" if first.isdigit() else first, *rest]))
    return names


def unique(names: Iterable[str], taken: Iterable[str] = ()) -> tuple[str, ...]:
    """Append a number to each name that occurred before or that is in ``taken``."""
    seen, result = set(taken), []
    for name in names:
        number, each = 0, name
        while each in seen:
            number += 1
            each = f"{name}_{number}"
        seen.add(each)
        result.append(each)
    return tuple(result)


# Resolve input shapes that a model leaves open, which a compiler requires

#: The sizes of an input, ``None`` for an open dimension; ``None`` if the rank is unknown.
OpenShape = Sequence[int | None] | None


def fixed_shapes(
    inputs: Mapping[str, OpenShape], batch_size: int | None, shapes: Mapping[str, Sequence[int]], name: str
) -> list[tuple[int, ...]]:
    """Complete the declared shapes; ``batch_size`` is the first dimension of inputs that leave it open."""
    if unknown := set(shapes).difference(inputs):
        raise InvalidInputError(
            f"{name} has no input {', '.join(sorted(unknown))}: its inputs are {', '.join(inputs) or 'none'}"
        )
    return [_fixed(sizes, each, batch_size, shapes.get(each)) for each, sizes in inputs.items()]


def _fixed(sizes: OpenShape, name: str, batch_size: int | None, wanted: Sequence[int] | None) -> tuple[int, ...]:
    shown = "any shape"
    if sizes is not None:
        shown = f"the shape ({', '.join('?' if each is None else str(each) for each in sizes)})"
    if wanted is not None:
        fits = sizes is None or len(sizes) == len(wanted)
        if not fits or any(each not in (None, size) for each, size in zip(sizes or (), wanted, strict=False)):
            raise InvalidInputError(f"the input {name} has {shown}, which {tuple(wanted)} does not match")
        return tuple(wanted)
    known = list(sizes or ())
    if known and known[0] is None:
        known[0] = batch_size
    fixed = tuple(each for each in known if each is not None)
    if sizes is not None and len(fixed) == len(sizes):
        return fixed
    only_first = sizes is not None and None not in sizes[1:]
    remedy = "specify batch_size (--batch-size)" if only_first else f"specify its shape, as shapes={{{name!r}: ...}}"
    raise InvalidInputError(
        f"the input {name} has {shown}, but a program is compiled for a shape without unknown sizes: {remedy}"
    )


# Bind arguments of a program to known values, which become constants

_MAIN: Final = "main"


def bind_arguments(artifact: Artifact, values: Mapping[str, np.ndarray[Any, Any]]) -> Artifact:
    """Replace the last arguments of ``main`` by constants, in the order of ``values``, on the artifact's bytes."""
    if not values:
        return artifact
    main = next(each for each in artifact.inventory().functions if each.name == _MAIN)
    before = len(main.arguments) - len(values)
    moved, tensors = [], {}
    for number, (name, value) in enumerate(values.items()):
        form, data, held = _forms(value)
        element = element_named(str(value.dtype))
        tensors[name] = data
        moved.append(
            Moved(
                argument=before + number,
                tensor=name,
                path=name,
                # At the start of the first block of the function.
                position=(0, 0, number),
                type=main.arguments[before + number],
                element=element,
                shape=value.shape,
                form=form,
                splat=bytes(held).hex() if form == "splat" else "",
                digest=StoredTensor(element, value.dtype.itemsize, value.shape, form, held).identify()[1],
            )
        )
    # Binding new values is the same operation as restoring extracted constants.
    metadata = Provenance(_MAIN, before, tuple(moved)).to_metadata()
    bound = restore(artifact, TensorFile(metadata, tensors, f"the values for {artifact.name}"))
    return bound.with_making(artifact.made)


def _forms(value: np.ndarray[Any, Any]) -> tuple[Form, View, View]:
    """Return the form in which artifacts store a value, the bytes of all its elements, and the bytes in that form."""
    data = _bytes_of(value)
    if value.dtype.name != "bool" or not value.size:
        return "whole", data, data
    # MLIR reads one byte of equal bits as a splat, and any other number of bytes as packed bits.
    if value.all() or not value.any():
        return "splat", data, memoryview(b"\xff" if value.all() else b"\0")
    return "packed", data, pack(data)


# Result of every integration: an artifact, and the names of the arguments of its ``main``

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
        names = artifact.with_names(dict(enumerate((*inputs, *weights))), dict(enumerate(outputs)))
        return cls(names.with_making(artifact.made), inputs, outputs, weights)

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
        self,
        path: str | PathLike[str],
        weights: str | PathLike[str] | None = None,
        *,
        force: bool = False,
        manifest: bool = False,
    ) -> None:
        """Write the artifact, and its weights as a safetensors file.

        Args:
            path: The path of the artifact.
            weights: The path of the weights, by default ``path`` with the suffix ``.safetensors``; nothing is written
                if there are none.
            force: Whether existing files may be replaced.
            manifest: Whether to write a :class:`vhlo_tools.Manifest` of the artifact beside it.

        Raises:
            FileExistsError: If a file exists and ``force`` is not set.
            OSError: If a file cannot be written.
        """
        if self.weights:
            write_atomically(
                place(weights or place(path).with_suffix(".safetensors")), self.weights_file(), force=force
            )
        self.artifact.save(path, force=force, manifest=manifest)

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

    A module of another, older provider is written for a version that it can write, and then retargeted. Every export
    of every framework ends here: what is given up, rewritten or refused is so for all of them.
    """
    library = get_provider(provider).library
    wanted = resolve_target(str(target), lambda: library, as_of=as_of).within(library)
    loaded = load_program(module, name=name)
    newest = loaded.provider.library.current
    written = wanted if wanted.version <= newest else replace(wanted, version=newest)
    artifact = serialize_program(loaded, written, **options)
    if written is not wanted:
        artifact = artifact.retargeted(wanted.version).with_findings(artifact.findings)
    given = non_default_options({"legalize": True}, **options, as_of=as_of)
    return artifact.with_making(Making("export", str(target), loaded.provider.library.name, given))


def _bytes_of(value: np.ndarray[Any, Any]) -> memoryview:
    import numpy as np

    return memoryview(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data) if value.size else memoryview(b"")


def _tensor(value: np.ndarray[Any, Any]) -> StoredTensor:
    return StoredTensor(element_named(str(value.dtype)), value.dtype.itemsize, value.shape, "whole", _bytes_of(value))
