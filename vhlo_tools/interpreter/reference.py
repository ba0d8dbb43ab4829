"""The reference interpreter, ``eval_module`` of the bindings, in this process.

Source of its meaning: the StableHLO specification, and ``stablehlo/reference`` in openxla/stablehlo.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vhlo_tools.bindings import MLIRFailure, Module, Operation
from vhlo_tools.errors import EngineError, InvalidInputError, InvalidProgramError
from vhlo_tools.interpreter.carrying import carried_in, carried_out
from vhlo_tools.interpreter.entry import main_of
from vhlo_tools.interpreter.lowering import fit, lower
from vhlo_tools.interpreter.preflight import check_runnable
from vhlo_tools.interpreter.values import ValueType, as_arrays, parse_value_type
from vhlo_tools.portable import make_plain
from vhlo_tools.program import Program, explain_failure

__all__ = ["evaluate"]


def evaluate(program: Program, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Evaluate ``main`` of ``program``.

    Endless recursion still ends the process: it depends on values.

    Args:
        program: The program.
        inputs: One array for each argument of ``main``; ``None`` for a token, and a tuple of such for a tuple.

    Returns:
        What ``main`` returns, in the same form.

    Raises:
        InvalidInputError: If the inputs do not fit.
        EngineError: If it holds what the interpreter cannot run.
        InvalidProgramError: If the program is not valid, or has no ``main``.
        MalformedArtifactError: If it is a damaged artifact.
    """
    provider = program.provider
    module = _valid(program)
    arguments, results = _signature(main_of(module, program.name))
    if len(inputs) != len(arguments):
        raise InvalidInputError(f"{program.name} takes {len(arguments)} inputs, but {len(inputs)} were given")
    arrays = [
        array
        for index, (value, argument) in enumerate(zip(inputs, arguments, strict=True))
        for array in as_arrays(value, argument, f"input {index}")
    ]
    carried = [part for array, argument in arrays for part in carried_in(array, argument)]
    try:
        fit(provider, module, arguments, results, carried, program.name)
    except MLIRFailure as failure:
        raise _failed(program, failure, "does not fit these inputs") from failure
    try:
        lower(provider, module, program.name)
    except MLIRFailure as failure:
        raise _failed(program, failure, "cannot be rewritten for the reference interpreter") from failure
    check_runnable(provider, module, program.name)
    try:
        values = provider.evaluate(module, [provider.dense_elements(module.context, array) for array in carried])
    except MLIRFailure as failure:
        raise _failed(program, failure, "failed in the reference interpreter") from failure
    return tuple(carried_out([np.array(value) for value in values], results))


def _valid(program: Program) -> Module:
    """Return the program as plain StableHLO."""
    provider = program.provider
    module = program.load()
    try:
        provider.verify(module)  # a module of the caller's was perhaps never verified
    except MLIRFailure as failure:
        raise InvalidProgramError(
            f"{program.name} is not valid: {explain_failure(program.name, provider, failure)}", failure.diagnostics
        ) from failure
    try:
        return provider.as_module(make_plain(provider, module, program.name))
    except MLIRFailure as failure:
        raise _failed(program, failure, "cannot be rewritten as plain StableHLO") from failure


def _failed(program: Program, failure: MLIRFailure, how: str) -> EngineError:
    said = explain_failure(program.name, program.provider, failure)
    return EngineError(f"{program.name} {how}: {said}", failure.diagnostics)


def _signature(main: Operation) -> tuple[list[ValueType], list[ValueType]]:
    function = main.attributes["function_type"].value
    arguments = [parse_value_type(str(each)) for each in function.inputs]
    return arguments, [parse_value_type(str(each)) for each in function.results]
