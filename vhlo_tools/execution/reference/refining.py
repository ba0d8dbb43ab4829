"""Resolution of dynamic shapes from the types of the inputs."""

from __future__ import annotations

from collections.abc import Sequence

from vhlo_tools.bindings import MLIRFailure, Module
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.reference.lowering.dynamic_shapes import is_dynamic, refine
from vhlo_tools.execution.values.arrays import ArgumentType
from vhlo_tools.program import Program, explain_failure


def refine_shapes(program: Program, module: Module, arguments: Sequence[ArgumentType]) -> None:
    if not is_dynamic(program.provider.text(module, largest_constant=0)):
        return
    try:
        refine(program.provider, module, [each.text for each in arguments])
    except MLIRFailure as failure:
        said = explain_failure(program.name, program.provider, failure)
        raise EngineError(f"{program.name} does not match these inputs: {said}", failure.diagnostics) from failure
