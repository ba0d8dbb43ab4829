"""Joint graphs of torch.export, which compute gradients beside a loss, as programs that return both."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.integrations.exported_model import unique
from vhlo_tools.integrations.torch.export_errors import input_names, output_names

if TYPE_CHECKING:
    import torch

_GRADIENTS: Final = "gradients"
#: How torch 2.13 calls an input whose gradient is returned: by its number among all inputs, weights included.
_NUMBERED: Final = re.compile(r"arg(\d+)_1")


def with_plain_outputs(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return a program whose loss and gradients are outputs as others are; one without gradients as it is.

    A gradient has the name of its parameter or input: ``gradients.layer.weight``.
    """
    from torch.export import ExportedProgram
    from torch.export.graph_signature import ExportGraphSignature, InputKind, OutputKind, OutputSpec
    from torch.utils import _pytree as pytree

    signature = program.graph_signature
    if signature.backward_signature is None:
        return program
    given = [spec for spec in signature.input_specs if spec.kind is InputKind.USER_INPUT]
    inputs = {spec.arg.name: name for spec, name in zip(given, input_names(program), strict=True)}
    outputs = list(output_names(program))
    specs = []
    for spec in signature.output_specs:
        target = str(spec.target)
        if spec.kind is OutputKind.GRADIENT_TO_USER_INPUT:
            number = None if target in inputs else _NUMBERED.fullmatch(target)
            target = signature.input_specs[int(number[1])].arg.name if number else target
            if target not in inputs:
                raise InvalidProgramError(
                    f"the joint graph returns the gradient of {spec.target}, which is none of its inputs "
                    f"{', '.join(inputs)}: make it with torch 2.13"
                )
        if spec.kind.name.startswith("GRADIENT_"):
            outputs.append(f"{_GRADIENTS}.{inputs.get(target, target)}")
        is_plain = spec.kind.name.endswith("_MUTATION")
        specs.append(spec if is_plain else OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None))
    calls = copy.deepcopy(program.module_call_graph)
    calls[0].signature.out_spec = pytree.tree_structure(dict.fromkeys(unique(outputs), 0))
    return ExportedProgram(
        root=program.graph_module,
        graph=program.graph,
        graph_signature=ExportGraphSignature(list(signature.input_specs), specs),
        state_dict=program.state_dict,
        range_constraints=program.range_constraints,
        module_call_graph=calls,
        example_inputs=program.example_inputs,
        constants=program.constants,
        verifiers=list(program.verifiers),
    )
