"""Evaluation of segments by StableHLO's reference interpreter, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import MLIRFailure, Module, Provider
from vhlo_tools.errors import EngineError

Arrays = Sequence[np.ndarray[Any, Any]]

#: Evaluates ``main`` of a module, of tensors that the interpreter exchanges: called with the provider, the digest of
#: the module, the module as bytecode, and the inputs. The digest is the same in every iteration of a loop.
Evaluate = Callable[[Provider, str, bytes, Arrays], list[np.ndarray[Any, Any]]]

#: The number of parsed modules in the cache.
_KEPT: Final = 256


def evaluate_here(provider: Provider, digest: str, bytecode: bytes, arrays: Arrays) -> list[np.ndarray[Any, Any]]:
    module = _parsed(provider, _Bytecode(digest, bytecode))
    try:
        values = provider.evaluate(module, [provider.dense_elements(module.context, array) for array in arrays])
    except MLIRFailure as failure:
        raise EngineError(f"the reference interpreter failed: {failure}", failure.diagnostics) from failure
    return [provider.array_of(value) for value in values]


class _Bytecode:
    """Bytecode, hashed and compared by its digest."""

    __slots__ = ("data", "digest")

    def __init__(self, digest: str, data: bytes) -> None:
        self.digest, self.data = digest, data

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bytecode) and other.digest == self.digest


@lru_cache(_KEPT)
def _parsed(provider: Provider, bytecode: _Bytecode) -> Module:
    return provider.parse(provider.new_context(), bytecode.data)
