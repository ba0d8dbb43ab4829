"""Joint graphs of torch.export, which compute gradients beside a loss, as programs that return both."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.integrations.exported_model import unique
from vhlo_tools.integrations.torch.export_errors import explained, input_names, output_names
from vhlo_tools.integrations.torch.graphs import copied_graph
from vhlo_tools.integrations.torch.shared_decompositions import attention_backward

if TYPE_CHECKING:
    import torch

_GRADIENTS: Final = "gradients"
#: How torch 2.13 calls an input whose gradient is returned: by its number among all inputs, weights included.
_NUMBERED: Final = re.compile(r"arg(\d+)_1")


def with_plain_outputs(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return a program whose loss and gradients are outputs as others are; one without gradients as it is.

    A gradient has the name of its parameter or input: ``gradients.layer.weight``.
    """
    import torch
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
        name = spec.target
        if spec.kind is OutputKind.GRADIENT_TO_USER_INPUT:
            number = None if name in inputs else _NUMBERED.fullmatch(str(name))
            called = signature.input_specs[int(number[1])].arg.name if number else name
            if called not in inputs:
                raise InvalidProgramError(
                    f"the joint graph returns the gradient of {name}, which is none of its inputs {', '.join(inputs)}: "
                    f"make it with torch 2.13"
                )
            name = inputs[called]
        if spec.kind.name.startswith("GRADIENT_"):
            outputs.append(f"{_GRADIENTS}.{name}")
        is_changed = spec.kind.name.endswith("_MUTATION")
        specs.append(spec if is_changed else OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None))
    with explained("torch cannot make a program of the joint graph"):
        calls = copy.deepcopy(program.module_call_graph)
        calls[0].signature.out_spec = pytree.tree_structure(dict.fromkeys(unique(outputs), 0))
        plain = ExportedProgram(
            root=program.graph_module,
            graph=copied_graph(program),
            graph_signature=ExportGraphSignature(list(signature.input_specs), specs),
            state_dict=program.state_dict,
            range_constraints=program.range_constraints,
            module_call_graph=calls,
            example_inputs=program.example_inputs,
            constants=program.constants,
            verifiers=list(program.verifiers),
        )
        attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
        if not any(node.target is attention for node in program.graph.nodes):
            return plain
        # torch 2.13 gives it the weights of its own decomposition of attention, with which its kernel is wrong.
        return plain.run_decompositions({attention: attention_backward})
