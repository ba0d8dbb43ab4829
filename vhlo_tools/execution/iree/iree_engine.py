"""Programs compiled by IREE for the CPU, and run on one device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np

from vhlo_tools.bindings import IsolatedIreeProgram, compile_with_iree, iree_version, require_iree
from vhlo_tools.errors import EngineCrashError, EngineError, EngineTimeoutError
from vhlo_tools.execution.donation.buffers import Buffer
from vhlo_tools.execution.donation.donation import Aliased
from vhlo_tools.execution.handlers import Handler
from vhlo_tools.execution.iree.preparing import signature
from vhlo_tools.execution.probes.probes import Probe
from vhlo_tools.execution.protocols import Ran, Values
from vhlo_tools.execution.reference.calling_convention import convert_input, convert_results
from vhlo_tools.execution.reference.isolated import bytecode_of, call_isolated, limits_of, named
from vhlo_tools.execution.reference.lowering.dynamic_shapes import is_dynamic
from vhlo_tools.execution.values.arrays import ArgumentType, ValueType
from vhlo_tools.execution.values.main_function import main_of
from vhlo_tools.program import Program
from vhlo_tools.records import dataclass

_PREPARE: Final = "vhlo_tools.execution.iree.preparing:artifact_here"

Shapes = tuple[tuple[int, ...], ...]


class IreeEngine:
    """IREE overwrites no inputs: results are always in memory of their own. It can call no handlers."""

    def __init__(self, program: Program, handlers: Mapping[str, Handler]) -> None:
        require_iree()
        if handlers:
            raise EngineError(
                f"{program.name}: IREE cannot call handlers, here of {', '.join(sorted(handlers))}: use the engine "
                f"reference or xla"
            )
        self._name, self._provider = program.name, program.provider
        module = program.provider.as_module(program.load())
        self._arguments, self._results = signature(main_of(module, program.name))
        self._is_dynamic = is_dynamic(program.provider.text(module, largest_constant=0))
        self._bytecode = bytecode_of(program.provider, module)
        #: The program compiled for inputs of any shapes, and for those that it could not be compiled for otherwise.
        self._any: _Compiled | None = None
        self._compiled: dict[Shapes, _Compiled] = {}

    def prepare(self, shapes: Sequence[tuple[int, ...]], timeout: float | None = None) -> None:
        self._compile(tuple(shapes), timeout)

    def call(self, arrays: Sequence[np.ndarray[Any, Any]], timeout: float | None) -> list[np.ndarray[Any, Any] | None]:
        return self._run(arrays, timeout)

    def execute(self, arguments: Values, aliased: Sequence[Aliased], timeout: float | None, probe: Probe | None) -> Ran:
        """Donated inputs are deleted, and no result is in their place."""
        if probe is not None:
            raise EngineError(
                f"{self._name}: IREE does not expose intermediate values: use the engine reference for probes"
            )
        results = self._run([None if each is None else each.read() for each in arguments], timeout)
        done = []
        for each in aliased:
            if each.reason is None:
                cast(Buffer, arguments[each.input]).delete()
                each = replace(each, reason="IREE writes results to memory of their own")
            done.append(each)
        return [None if each is None else Buffer(each) for each in results], done

    def _run(self, arrays: Sequence[Any], timeout: float | None) -> list[Any]:
        given = [each for each in arrays if each is not None]
        compiled = self._compile(tuple(each.shape for each in given), timeout)
        tensors = [each for each in self._arguments if isinstance(each, ArgumentType)]
        converted = [
            np.ascontiguousarray(one).reshape(one.shape)
            for array, tensor in zip(given, tensors, strict=True)
            for one in convert_input(array, tensor)
        ]
        with self._explained():
            found = compiled.program.call(converted, limits_of(timeout))
        return convert_results(found, compiled.results)

    def _compile(self, shapes: Shapes, timeout: float | None) -> _Compiled:
        if self._any is not None:
            return self._any
        if (known := self._compiled.get(shapes)) is not None:
            return known
        if not self._compiled:
            try:
                self._any = self._compiled_for(None, timeout)
                return self._any
            except (EngineCrashError, EngineTimeoutError):
                raise
            except EngineError:
                if not self._is_dynamic:
                    raise
        # IREE has fewer of the ops of dynamic shapes: those of static ones, which follow from the inputs, may do.
        self._compiled[shapes] = self._compiled_for(shapes, timeout)
        return self._compiled[shapes]

    def _compiled_for(self, shapes: Shapes | None, timeout: float | None) -> _Compiled:
        prefix, version = self._provider.prefix, str(iree_version())
        source = memoryview(self._bytecode)
        artifact = call_isolated(_PREPARE, self._name, source, prefix, self._name, version, shapes, timeout=timeout)
        with self._explained():
            binary = compile_with_iree(self._name, artifact, limits_of(timeout))
        return _Compiled(IsolatedIreeProgram(self._name, binary, _exchanged(self._results)), self._results)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (EngineCrashError, EngineTimeoutError) as error:
            raise named(error, self._name, "IREE") from error


@dataclass(frozen=True, slots=True)
class _Compiled:
    program: IsolatedIreeProgram
    results: Sequence[ValueType]  # of the program's own main


def _exchanged(results: Sequence[ValueType]) -> list[tuple[str, tuple[int | None, ...]]]:
    types: list[tuple[str, tuple[int | None, ...]]] = []
    for each in results:
        if isinstance(each, ArgumentType):
            types += [(each.converted_dtype().name, each.shape)] * (2 if each.conversion == "parts" else 1)
    return types
