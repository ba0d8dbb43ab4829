"""Arguments of a program that become constants of it, because their values are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.artifact import Artifact
from vhlo_tools.weights import Tensor, TensorFile, element_named, restore
from vhlo_tools.weights.record import Moved, Record
from vhlo_tools.weights.tensors import Form, pack

if TYPE_CHECKING:
    import numpy as np

__all__ = ["bind_arguments"]

_MAIN: Final = "main"


def bind_arguments(artifact: Artifact, values: Mapping[str, np.ndarray[Any, Any]]) -> Artifact:
    """Make constants of the last arguments of ``main``, on the bytes of the artifact.

    Args:
        artifact: The artifact, of any version.
        values: The values by name, in the order of the arguments.

    Raises:
        InvalidInputError: If a value is not of the type of its argument.
        MalformedArtifactError: If the artifact is damaged.
    """
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
                # In the first block of the function, before all that stands there.
                position=(0, 0, number),
                type=main.arguments[before + number],
                element=element,
                shape=value.shape,
                form=form,
                splat=bytes(held).hex() if form == "splat" else "",
                digest=Tensor(element, value.dtype.itemsize, value.shape, form, held).identify()[1],
            )
        )
    # What was taken out of a program and what never was in it are put there in the same way.
    metadata = Record(_MAIN, before, tuple(moved)).to_metadata()
    return restore(artifact, TensorFile(metadata, tensors, f"the values for {artifact.name}"))


def _forms(value: np.ndarray[Any, Any]) -> tuple[Form, memoryview, memoryview]:
    """Return how artifacts hold a value, all of its elements, and these in that form."""
    import numpy as np

    data = memoryview(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data) if value.size else memoryview(b"")
    if value.dtype != np.bool_ or not value.size:
        return "whole", data, data
    # MLIR takes one byte of equal bits for a splat, and bits of any other number for packed ones.
    if value.all() or not value.any():
        return "splat", data, memoryview(b"\xff" if value.all() else b"\0")
    return "packed", data, pack(data)
