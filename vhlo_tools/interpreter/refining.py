"""Dynamic shapes resolved from those of the inputs."""

from __future__ import annotations

from collections.abc import Sequence

from vhlo_tools.bindings import MLIRFailure, Module
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.lowering.shapes import is_dynamic, refinement
from vhlo_tools.interpreter.values import ArgumentType
from vhlo_tools.program import Program, explain_failure

__all__ = ["refine_shapes"]


def refine_shapes(program: Program, module: Module, arguments: Sequence[ArgumentType]) -> None:
    """Give ``main`` the static types of its arguments, and everything in it what follows from these.

    Args:
        program: The program that it is.
        module: The module, which is changed; it stays as it is if it has no dynamic shapes.
        arguments: The types of the inputs.

    Raises:
        EngineError: If the shapes do not fit, or an assertion of the program says so.
    """
    if not is_dynamic(program.provider.text(module, largest_constant=0)):
        return
    try:
        program.provider.run_passes(module, refinement([each.text for each in arguments]), verify=True)
    except MLIRFailure as failure:
        said = explain_failure(program.name, program.provider, failure)
        raise EngineError(f"{program.name} does not fit these inputs: {said}", failure.diagnostics) from failure
