"""The reference interpreter, ``eval_module`` of the bindings, in the process that asks for it.

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
from vhlo_tools.interpreter.lowering import fit, is_dynamic, lower
from vhlo_tools.interpreter.preflight import check_runnable
from vhlo_tools.interpreter.values import ValueType, as_arrays, parse_value_type
from vhlo_tools.portable import make_plain
from vhlo_tools.program import Program, explain_failure

__all__ = ["Prepared", "evaluate", "prepare"]


def evaluate(program: Program, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Evaluate ``main`` of ``program`` in this process.

    Endless recursion ends the process: it depends on values.

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
    return prepare(program, inputs).run(inputs)


class Prepared:
    """A program rewritten for the interpreter.

    Args:
        program: The program.
        module: It, rewritten, with the shapes of some inputs.
        arguments: What its own ``main`` takes.
        results: What that returns.
        reusable: Whether it is for any inputs, and not only for those that it was prepared for.
    """

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
        #: How many bytes of values its context holds, which keeps all that it ever saw.
        self.held = 0

    def run(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Evaluate it.

        Args:
            inputs: As for :func:`evaluate`.

        Raises:
            InvalidInputError: If the inputs do not fit.
            EngineError: If the interpreter refuses.
        """
        provider, context = self._program.provider, self._module.context
        carried = _carried(self._program, inputs, self._arguments)
        try:
            attributes = [provider.dense_elements(context, array) for array in carried]
            values = [np.array(value) for value in provider.evaluate(self._module, attributes)]
        except MLIRFailure as failure:
            raise _failed(self._program, failure, "failed in the reference interpreter") from failure
        self.held += sum(each.nbytes for each in (*carried, *values))
        return tuple(carried_out(values, self._results))


def prepare(program: Program, inputs: Sequence[Any]) -> Prepared:
    """Rewrite a program for the interpreter.

    Args:
        program: The program.
        inputs: As for :func:`evaluate`; from these come sizes that the program leaves open.

    Raises:
        InvalidInputError: If the inputs do not fit.
        EngineError: If it holds what the interpreter cannot run.
        InvalidProgramError: If the program is not valid, or has no ``main``.
        MalformedArtifactError: If it is a damaged artifact.
    """
    provider = program.provider
    module = _valid(program)
    arguments, results = _signature(main_of(module, program.name))
    carried = _carried(program, inputs, arguments)
    reusable = not is_dynamic(provider.text(module, largest_constant=0))
    try:
        fit(provider, module, arguments, results, carried, program.name)
    except MLIRFailure as failure:
        raise _failed(program, failure, "does not fit these inputs") from failure
    try:
        lower(provider, module, program.name)
    except MLIRFailure as failure:
        raise _failed(program, failure, "cannot be rewritten for the reference interpreter") from failure
    check_runnable(provider, module, program.name)
    return Prepared(program, module, arguments, results, reusable=reusable)


def _carried(program: Program, inputs: Sequence[Any], arguments: Sequence[ValueType]) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that carry the inputs into the interpreter."""
    if len(inputs) != len(arguments):
        raise InvalidInputError(f"{program.name} takes {len(arguments)} inputs, but {len(inputs)} were given")
    return [
        part
        for index, (value, argument) in enumerate(zip(inputs, arguments, strict=True))
        for array, kind in as_arrays(value, argument, f"input {index}")
        for part in carried_in(array, kind)
    ]


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
