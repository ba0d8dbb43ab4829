"""The engine ``reference``: StableHLO's interpreter, in this process or in an isolated one."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import MLIRFailure, Module, Operation, Provider, get_provider, isolation
from vhlo_tools.conversion import make_plain
from vhlo_tools.errors import EngineError, InvalidInputError, InvalidProgramError
from vhlo_tools.execution.isolated import call_isolated, limits_of
from vhlo_tools.execution.lowering.lowering import fit, lower
from vhlo_tools.execution.lowering.shapes import is_dynamic
from vhlo_tools.execution.reference.calling_convention import convert_input, convert_results
from vhlo_tools.execution.reference.preparation import check_runnable, fix_sizes, has_data_sizes
from vhlo_tools.execution.stepping.steps import evaluate_here
from vhlo_tools.execution.values import ValueType, as_arrays, main_of, parse_value_type
from vhlo_tools.program import Program, explain_failure, load_program

# The reference interpreter, ``eval_module`` of the bindings, in the calling process
#
# Source of its semantics: the StableHLO specification, and ``stablehlo/reference`` in openxla/stablehlo.


def evaluate(program: Program, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Endless recursion crashes the process: it depends on values, and cannot be detected before."""
    return prepare(program, inputs).run(inputs)


class LoweredProgram:
    """``reusable`` if it accepts any inputs, not only those that it was prepared for."""

    def __init__(
        self,
        program: Program,
        module: Module,
        arguments: Sequence[ValueType],
        results: Sequence[ValueType],
        *,
        reusable: bool,
    ) -> None:
        self._program, self._module = program, module
        self._arguments, self._results = arguments, results
        self.reusable = reusable
        #: The bytes of values in its context, which releases no value that it ever contained.
        self.held: int = 0

    def run(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        provider, context = self._program.provider, self._module.context
        converted = _converted(self._program, inputs, self._arguments)
        try:
            attributes = [provider.dense_elements(context, array) for array in converted]
            values = [provider.array_of(value) for value in provider.evaluate(self._module, attributes)]
        except MLIRFailure as failure:
            raise _failed(self._program, failure, "failed in the reference interpreter") from failure
        self.held += sum(each.nbytes for each in (*converted, *values))
        return tuple(convert_results(values, self._results))


def prepare(program: Program, inputs: Sequence[Any]) -> LoweredProgram:
    """The inputs determine sizes that the program leaves open."""
    provider = program.provider
    module = _valid(program)
    arguments, results = _signature(main_of(module, program.name))
    converted = _converted(program, inputs, arguments)
    text = provider.text(module, largest_constant=0)
    reusable = not is_dynamic(text)
    try:
        if has_data_sizes(text):
            fix_sizes(provider, module, arguments, converted, program.name)
        fit(provider, module, arguments, results, converted, program.name)
    except MLIRFailure as failure:
        raise _failed(program, failure, "does not match these inputs") from failure
    try:
        lower(provider, module, program.name)
    except MLIRFailure as failure:
        raise _failed(program, failure, "cannot be rewritten for the reference interpreter") from failure
    check_runnable(provider, module, program.name)
    return LoweredProgram(program, module, arguments, results, reusable=reusable)


def _converted(program: Program, inputs: Sequence[Any], arguments: Sequence[ValueType]) -> list[np.ndarray[Any, Any]]:
    if len(inputs) != len(arguments):
        raise InvalidInputError(f"{program.name} requires {len(arguments)} inputs, got {len(inputs)}")
    return [
        part
        for index, (value, argument) in enumerate(zip(inputs, arguments, strict=True))
        for array, type_ in as_arrays(value, argument, f"input {index}")
        for part in convert_input(array, type_)
    ]


def _valid(program: Program) -> Module:
    provider = program.provider
    module = program.load()
    try:
        provider.verify(module)  # a module from the caller may be unverified
    except MLIRFailure as failure:
        raise InvalidProgramError(
            f"{program.name} is not valid: {explain_failure(program.name, provider, failure)}", failure.diagnostics
        ) from failure
    try:
        return provider.as_module(make_plain(provider, module, program.name))
    except MLIRFailure as failure:
        raise _failed(program, failure, "cannot be rewritten to StableHLO") from failure


def _failed(program: Program, failure: MLIRFailure, how: str) -> EngineError:
    said = explain_failure(program.name, program.provider, failure)
    return EngineError(f"{program.name} {how}: {said}", failure.diagnostics)


def _signature(main: Operation) -> tuple[list[ValueType], list[ValueType]]:
    function = main.attributes["function_type"].value
    arguments = [parse_value_type(str(each)) for each in function.inputs]
    return arguments, [parse_value_type(str(each)) for each in function.results]


# Evaluation in a child process: programs are prepared there once, and run any number of times

_RUN: Final = "vhlo_tools.execution.reference.engine:run_here"
_EVALUATE: Final = "vhlo_tools.execution.reference.engine:evaluate_segment_here"
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
