"""Evaluation in a child process: programs are prepared there once, and run any number of times."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Provider, get_provider, isolation
from vhlo_tools.execution.reference.isolated import call_isolated, limits_of
from vhlo_tools.execution.reference.reference import LoweredProgram, prepare
from vhlo_tools.execution.stepping.segment_evaluation import evaluate_here
from vhlo_tools.program import Program, load_program

_RUN: Final = "vhlo_tools.execution.reference.child:run_here"
_EVALUATE: Final = "vhlo_tools.execution.reference.child:evaluate_segment_here"
_MISSING: Final = "missing"

#: The activity that a child reports after a program is rewritten: the ``op`` of the error if the child then crashes.
EVALUATION: Final = "its evaluation"

# Programs up to this size are sent with each run; larger ones are sent only where they are missing.
_SMALL: Final = 1 << 16

# The number of programs that a child keeps, and the bytes of values in a program's context before it is rebuilt.
_KEPT: Final = 16
_HELD: Final = 64 << 20

_prepared: OrderedDict[bytes, tuple[Program, LoweredProgram]] = OrderedDict()


class IsolatedProgram:
    """This process has parsed every part of the bytecode."""

    def __init__(self, bytecode: bytes, provider: str, name: str) -> None:
        self._bytecode, self._provider, self._name = bytecode, provider, name
        self._key = hashlib.sha256(bytecode).digest() + name.encode()
        # Start the child now, so that it is ready when the inputs are.
        isolation.warm()

    def run(self, inputs: Sequence[Any], timeout: float | None = None) -> tuple[Any, ...]:
        small = len(self._bytecode) <= _SMALL
        results = self._call(self._bytecode if small else None, inputs, timeout)
        if results == _MISSING:
            results = self._call(self._bytecode, inputs, timeout)
        return tuple(results)

    def _call(self, bytecode: bytes | None, inputs: Sequence[Any], timeout: float | None) -> Any:
        whole = None if bytecode is None else memoryview(bytecode)
        arguments = self._key, whole, self._provider, self._name, list(inputs)
        return call_isolated(_RUN, self._name, *arguments, timeout=timeout)


class IsolatedSegments:
    """``timeout`` is in seconds, for each segment."""

    def __init__(self) -> None:
        self.timeout: float | None = None

    def evaluate(
        self, provider: Provider, digest: str, bytecode: bytes, arrays: Sequence[np.ndarray[Any, Any]]
    ) -> list[np.ndarray[Any, Any]]:
        whole = memoryview(bytecode)
        results: list[np.ndarray[Any, Any]] = isolation.call(
            _EVALUATE, provider.prefix, digest, whole, list(arrays), limits=limits_of(self.timeout)
        )
        return results


def evaluate_segment_here(
    provider: str, digest: str, bytecode: memoryview, arrays: list[np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]]:
    return evaluate_here(get_provider(provider), digest, bytes(bytecode), arrays)


def run_here(
    key: bytes, bytecode: memoryview | None, provider: str, name: str, inputs: list[Any]
) -> tuple[Any, ...] | str:
    """Returns ``_MISSING`` if ``bytecode`` is ``None`` and the program is not cached."""
    known = _prepared.get(key)
    if known is None and bytecode is None:
        return _MISSING
    if known is None:
        assert bytecode is not None
        data = bytes(bytecode)
        program = load_program(data, name=name, provider=provider, trusted=True)
        prepared = prepare(program, inputs)
    else:
        program, prepared = known
        if not prepared.reusable or prepared.held > _HELD:
            prepared = prepare(program, inputs)
    _prepared[key] = program, prepared
    _prepared.move_to_end(key)
    if len(_prepared) > _KEPT:
        _prepared.popitem(last=False)
    isolation.note(EVALUATION)
    return prepared.run(inputs)
