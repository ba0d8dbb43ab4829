"""The reference interpreter, ``eval_module`` of the bindings, in the calling process.

Source of its semantics: the StableHLO specification, and ``stablehlo/reference`` in openxla/stablehlo.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vhlo_tools.bindings import MLIRFailure, Module, Operation
from vhlo_tools.errors import EngineError, InvalidInputError, InvalidProgramError
from vhlo_tools.execution.reference.calling_convention import convert_input, convert_results
from vhlo_tools.execution.reference.data_sizes import fix_sizes, has_data_sizes
from vhlo_tools.execution.reference.lowering import fit, is_dynamic, lower
from vhlo_tools.execution.reference.preflight import check_runnable
from vhlo_tools.execution.values.arrays import ValueType, as_arrays, parse_value_type
from vhlo_tools.execution.values.main_function import main_of
from vhlo_tools.legalize import make_plain
from vhlo_tools.program import Program, explain_failure


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
