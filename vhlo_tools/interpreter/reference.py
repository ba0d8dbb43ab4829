"""The reference interpreter, ``eval_module`` of the bindings, in this process.

Source of its meaning: the StableHLO specification, and ``stablehlo/reference`` in openxla/stablehlo.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vhlo_tools.bindings import MLIRFailure, Module, Operation, Provider
from vhlo_tools.errors import EngineError, InvalidInputError, InvalidProgramError
from vhlo_tools.interpreter.carrying import carried_in, carried_out, carrying_main
from vhlo_tools.interpreter.lowering import RULES, apply_rules
from vhlo_tools.interpreter.preflight import check_runnable
from vhlo_tools.interpreter.values import ArgumentType, as_array, parse_tensor_type
from vhlo_tools.program import Program, explain_failure

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["evaluate"]

_INNER = "vhlo_tools.program"


def evaluate(program: Program, inputs: Sequence[ArrayLike]) -> tuple[np.ndarray[Any, Any], ...]:
    """Evaluate ``main`` of ``program``.

    Integer division by zero and endless recursion still end the process: they depend on values.

    Args:
        program: The program.
        inputs: One array for each argument of ``main``.

    Raises:
        InvalidInputError: If the inputs do not fit.
        EngineError: If it holds what the interpreter cannot run.
        InvalidProgramError: If the program is not valid, or has no ``main``.
        MalformedArtifactError: If it is a damaged artifact.
    """
    provider = program.provider
    module = provider.as_module(program.load())
    try:
        provider.verify(module)  # a module of the caller's was perhaps never verified
    except MLIRFailure as failure:
        said = explain_failure(program.name, provider, failure)
        raise InvalidProgramError(f"{program.name} is not valid: {said}", failure.diagnostics) from failure
    arguments, _ = _signature(_main(program, module))
    if len(inputs) != len(arguments):
        raise InvalidInputError(f"{program.name} takes {len(arguments)} inputs, but {len(inputs)} were given")
    arrays = [
        as_array(value, argument, f"input {index}")
        for index, (value, argument) in enumerate(zip(inputs, arguments, strict=True))
    ]
    _prepare(
        program,
        module,
        [argument.with_shape(array.shape) for argument, array in zip(arguments, arrays, strict=True)],
    )
    check_runnable(provider, module, program.name)
    arguments, results = _signature(_main(program, module))
    carried = [part for array, argument in zip(arrays, arguments, strict=True) for part in carried_in(array, argument)]
    if any(each.carriage != "direct" for each in (*arguments, *results)):
        _wrap(provider, module, _main(program, module), arguments, results)
    try:
        values = provider.evaluate(module, [provider.dense_elements(module.context, array) for array in carried])
    except MLIRFailure as failure:
        said = explain_failure(program.name, provider, failure)
        raise EngineError(
            f"{program.name} failed in the reference interpreter: {said}", failure.diagnostics
        ) from failure
    return tuple(carried_out([np.array(value) for value in values], results))


def _main(program: Program, module: Module) -> Operation:
    names = []
    for op in module.body.operations:
        if op.operation.name == "func.func":
            name = op.operation.attributes["sym_name"].value
            if name == "main":
                main: Operation = op.operation
                return main
            names.append(f"@{name}")
    has = f"it has {', '.join(names[:5])}" if names else "it has no functions"
    raise InvalidProgramError(f"{program.name} has no function @main to run: {has}")


def _signature(main: Operation) -> tuple[list[ArgumentType], list[ArgumentType]]:
    function = main.attributes["function_type"].value
    arguments = [parse_tensor_type(str(each)) for each in function.inputs]
    return arguments, [parse_tensor_type(str(each)) for each in function.results]


def _prepare(program: Program, module: Module, arguments: list[ArgumentType]) -> None:
    """Resolve dynamic shapes from those of the inputs, and lower what StableHLO's own passes lower."""
    text = program.provider.text(module, largest_constant=0)
    passes = []
    if "chlo." in text and "chlo" not in program.provider.lacking:
        passes.append("func.func(chlo-legalize-to-stablehlo)")
    if "?" in text:
        types = ",".join(argument.text for argument in arguments)
        passes += [
            "inline",
            f"stablehlo-refine-arguments{{types={types}}}",
            "stablehlo-refine-shapes",
            "func.func(stablehlo-canonicalize-dynamism)",
            "stablehlo-refine-shapes",
            "func.func(stablehlo-check-shape-assertions{enable-shape-assertions=true})",
        ]
    try:
        if passes:
            program.provider.run_passes(module, ",".join(passes), verify=True)
        apply_rules(program.provider, module, RULES, program.name)
    except MLIRFailure as failure:
        said = explain_failure(program.name, program.provider, failure)
        raise EngineError(f"{program.name} does not fit these inputs: {said}", failure.diagnostics) from failure


def _wrap(
    provider: Provider,
    module: Module,
    main: Operation,
    arguments: list[ArgumentType],
    results: list[ArgumentType],
) -> None:
    outer = provider.parse(module.context, carrying_main(arguments, results, _INNER))
    provider.rename_function(module, "main", _INNER)
    for op in outer.body.operations:
        if op.operation.attributes["sym_name"].value == "main":
            module.body.append(op)
            return
