"""A program that another runtime than the bindings' runs in a child process, and the check of what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vhlo_tools.bindings import isolation
from vhlo_tools.errors import EngineCrashError

#: The type of a result: the name of its numpy dtype, and its sizes; ``None`` for one that is open.
ArrayType = tuple[str, tuple[int | None, ...]]


class ForeignProgram:
    """``function`` is called in a child with a key, ``data``, ``name``, the inputs, the ``results`` and ``beside``.

    ``data`` is what the runtime loads, or nothing if the child has it under the key; the inputs are nothing to load it
    only.
    """

    def __init__(
        self,
        function: str,
        name: str,
        data: bytes,
        results: Sequence[ArrayType],
        *beside: str,
        pool: isolation.Pool | None = None,
    ) -> None:
        self._function, self._name, self._results, self._beside = function, name, list(results), beside
        self._data = isolation.KeptData(data, " ".join(beside), pool)

    def prepare(self, limits: isolation.Limits) -> None:
        self._data.call(self._function, self._name, None, self._results, *self._beside, limits=limits)

    def call(self, inputs: Sequence[Any], limits: isolation.Limits) -> list[Any]:
        import numpy as np

        given = self._name, list(inputs), self._results, *self._beside
        results = self._data.call(self._function, *given, limits=limits)
        # A child may send anything.
        fits = isinstance(results, list) and len(results) == len(self._results)
        for array, (dtype, shape) in zip(results if fits else (), self._results, strict=False):
            fits = fits and isinstance(array, np.ndarray) and array.dtype == dtype and array.ndim == len(shape)
            fits = fits and all(size in (None, found) for size, found in zip(shape, array.shape, strict=True))
        if not fits:
            raise EngineCrashError("the child process returned something else than results of its types")
        returned: list[Any] = results
        return returned
