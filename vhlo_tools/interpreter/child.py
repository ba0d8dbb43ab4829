"""Evaluation in a child process: programs prepared there once, and run as often as is asked for."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Provider, get_provider, isolation
from vhlo_tools.interpreter.driver.evaluation import evaluate_here
from vhlo_tools.interpreter.isolated import call_isolated, limits_of
from vhlo_tools.interpreter.reference import Prepared, prepare
from vhlo_tools.program import Program, load_program

__all__ = ["EVALUATION", "IsolatedProgram", "IsolatedSegments", "evaluate_segment_here", "run_here"]

_RUN: Final = "vhlo_tools.interpreter.child:run_here"
_EVALUATE: Final = "vhlo_tools.interpreter.child:evaluate_segment_here"
_MISSING: Final = "missing"

#: What a child says that it does once a program is rewritten: the ``op`` of an error, if it dies of that.
EVALUATION: Final = "its evaluation"

# Programs up to this size go along with each run; larger ones are sent where they are missing.
_SMALL: Final = 1 << 16

# A child keeps so many programs, and a program so many bytes of values in its context before it is made anew.
_KEPT: Final = 16
_HELD: Final = 64 << 20

_prepared: OrderedDict[bytes, tuple[Program, Prepared]] = OrderedDict()


class IsolatedProgram:
    """A program that is evaluated in child processes.

    Args:
        bytecode: The program, as bytecode of MLIR of which this process has parsed every part.
        provider: The import prefix of the bindings.
        name: What to call it in messages.
    """

    def __init__(self, bytecode: bytes, provider: str, name: str) -> None:
        self._bytecode, self._provider, self._name = bytecode, provider, name
        self._key = hashlib.sha256(bytecode).digest() + name.encode()
        # It is ready when the inputs are.
        isolation.warm()

    def run(self, inputs: Sequence[Any], timeout: float | None = None) -> tuple[Any, ...]:
        """Evaluate it.

        Args:
            inputs: Arrays; ``None`` for a token.
            timeout: How many seconds it may take, by default those of :data:`LIMITS`.

        Raises:
            EngineCrashError: If the child dies.
            EngineTimeoutError: If it takes longer than it may.
            EngineError: If it holds what the interpreter cannot run, or takes more memory than it may.
        """
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
    """Evaluates segments of programs in child processes, as a driver asks for it.

    Attributes:
        timeout: How many seconds a segment may take, by default those of :data:`LIMITS`.
    """

    def __init__(self) -> None:
        self.timeout: float | None = None

    def evaluate(
        self, provider: Provider, digest: str, bytecode: bytes, arrays: Sequence[np.ndarray[Any, Any]]
    ) -> list[np.ndarray[Any, Any]]:
        """Evaluate a segment.

        Raises:
            EngineCrashError: If the child dies.
            EngineTimeoutError: If it takes longer than it may.
            EngineError: If the interpreter refuses it.
        """
        whole = memoryview(bytecode)
        results: list[np.ndarray[Any, Any]] = isolation.call(
            _EVALUATE, provider.prefix, digest, whole, list(arrays), limits=limits_of(self.timeout)
        )
        return results


def evaluate_segment_here(
    provider: str, digest: str, bytecode: memoryview, arrays: list[np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]]:
    """Evaluate a segment in this process.

    Raises:
        EngineError: If the interpreter refuses it.
    """
    return evaluate_here(get_provider(provider), digest, bytes(bytecode), arrays)


def run_here(
    key: bytes, bytecode: memoryview | None, provider: str, name: str, inputs: list[Any]
) -> tuple[Any, ...] | str:
    """Evaluate a program in this process.

    Args:
        key: By what it is known here.
        bytecode: The program; ``None`` if it is perhaps known already.
        provider: The import prefix of the bindings.
        name: What to call it in messages.
        inputs: Arrays; ``None`` for a token.

    Returns:
        Its results, or that it is not known.

    Raises:
        EngineError: If it holds what the interpreter cannot run.
        InvalidInputError: If the inputs do not fit.
    """
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
