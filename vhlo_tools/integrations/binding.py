"""Bind arguments of a program to known values, which become constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.artifact import (
    Artifact,
    Form,
    Moved,
    Provenance,
    StoredTensor,
    TensorFile,
    element_named,
    pack,
    restore,
)
from vhlo_tools.files import View

if TYPE_CHECKING:
    import numpy as np

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
    return restore(artifact, TensorFile(metadata, tensors, f"the values for {artifact.name}"))


def _forms(value: np.ndarray[Any, Any]) -> tuple[Form, View, View]:
    """Return the form in which artifacts store a value, the bytes of all its elements, and the bytes in that form."""
    import numpy as np

    data = memoryview(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data) if value.size else memoryview(b"")
    if value.dtype != np.bool_ or not value.size:
        return "whole", data, data
    # MLIR reads one byte of equal bits as a splat, and any other number of bytes as packed bits.
    if value.all() or not value.any():
        return "splat", data, memoryview(b"\xff" if value.all() else b"\0")
    return "packed", data, pack(data)
