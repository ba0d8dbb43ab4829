"""Proof of an export of PyTorch: eager results on the example inputs, and the op from which on an importer is wrong."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import getitem
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import EngineError, InvalidProgramError
from vhlo_tools.findings import Finding
from vhlo_tools.integrations.exported_model import serialize_module
from vhlo_tools.integrations.proof import ProofError, coarsest, difference, differences, first_words, results_of
from vhlo_tools.integrations.torch.export_errors import described, user_line
from vhlo_tools.integrations.torch.graphs import as_numpy

if TYPE_CHECKING:
    from types import ModuleType

    import torch
    from torch.fx import Node

    from vhlo_tools.bindings.isolation import Limits
    from vhlo_tools.integrations.exported_model import ExportedModel
    from vhlo_tools.integrations.torch.lifting import Lifted

#: The bytes of values of a graph, beyond which the op that differs is not sought.
_MOST_BYTES: Final = 1 << 30


def random_ops(program: torch.export.ExportedProgram) -> Iterator[Finding]:
    """Yield a finding for each line that draws random numbers."""
    import torch

    drawn: dict[tuple[str, Any], int] = {}
    for node in program.graph.nodes:
        target = node.target
        if (
            isinstance(target, torch._ops.OpOverload)
            and torch.Tag.nondeterministic_seeded in target.tags
            and node.users
        ):
            key = str(target), user_line(node)
            drawn[key] = drawn.get(key, 0) + 1
    for (op, line), count in drawn.items():
        yield Finding(
            "random_state",
            "warning",
            "op",
            f"{op} becomes stablehlo.rng, which has no seed: every engine draws other numbers, at each call",
            op,
            line,
            remedy="call model.eval() if it is a dropout, or make the random numbers an input of the model",
            count=count,
        )


def eager_results(
    program: torch.export.ExportedProgram, model: ExportedModel, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], list[Any]]:
    """Return the tensors of the inputs, and what the program returns and changes, in the order of the outputs.

    Neither the inputs nor the weights of the program are changed.
    """
    import torch
    from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
    from torch.utils import _pytree as pytree

    signature, specs = program.graph_signature, program.graph_signature.output_specs
    # A result that is None is none of the artifact. What is changed comes behind, under its own name.
    is_kept = [spec.kind is OutputKind.USER_OUTPUT and not isinstance(spec.arg, ConstantArgument) for spec in specs]
    changed = model.outputs[sum(is_kept) :]
    weights, leaves = {**program.constants, **program.state_dict}, pytree.tree_leaves((tuple(args), dict(kwargs)))
    if changed:
        weights, leaves = copy.deepcopy(pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, (weights, leaves)))
    left = iter(leaves)
    values = {
        spec.arg.name: next(left) if spec.kind is InputKind.USER_INPUT else weights[spec.target]
        for spec in signature.input_specs
    }
    given = [spec for spec in signature.input_specs if spec.kind is InputKind.USER_INPUT]
    called = [spec.arg.name for spec in given if isinstance(spec.arg, TensorArgument)]
    inputs = [as_numpy(values[each], "an input").copy() for each in called]
    with torch.no_grad():
        returned = program.graph_module(*values.values())
    placeholders = {spec.target: spec.arg.name for spec in signature.input_specs if spec.target}
    for spec, value in zip(specs, returned, strict=True):
        if spec.kind.name.endswith("_MUTATION"):
            values[placeholders.get(spec.target, spec.target)] = value
    placeholders = {**dict(zip(model.inputs, called, strict=True)), **placeholders}
    kept = [value for value, wanted in zip(returned, is_kept, strict=True) if wanted]
    results = [*kept, *(values[placeholders[name]] for name in changed)]
    return inputs, [as_numpy(each, name) for each, name in zip(results, model.outputs, strict=True)]


def prove(
    model: ExportedModel,
    program: torch.export.ExportedProgram,
    examples: tuple[Sequence[Any], Mapping[str, Any]],
    again: Callable[[], Lifted],
    importer: ModuleType,
    limits: Limits,
    seconds: float,
) -> str | None:
    """Compare on the example inputs; return why that cannot be done, and raise ``ProofError`` if they differ.

    ``again`` lifts the program anew, to seek the op from which on it differs.
    """
    try:
        # What torch says of itself is not of the caller.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inputs, expected = eager_results(program, model, *examples)
    except Exception as error:
        return f"torch raises {type(error).__name__}: {first_words(str(error))}"
    try:
        found = results_of(model.artifact, [*inputs, *model.weights.values()], seconds)
    except EngineError as error:
        return str(error)
    said = next(differences(found, expected, model.outputs, coarsest(model.artifact)), None)
    if said is None:
        return None
    place = None
    with suppress(EngineError, InvalidProgramError, NotImplementedError, RuntimeError, ValueError):
        place = _first_wrong(again(), importer, inputs, limits, monotonic() + 4 * seconds)
    maker = importer.__name__.rpartition(".")[2].replace("_", "-")
    raise ProofError(
        f"the program that {maker} makes of {model.artifact.name} does not compute what torch does: {said}"
        f"{f'; the first op that differs is {place}' if place else ''} (verify=False exports it as it is)"
    )


def _first_wrong(
    lifted: Lifted, importer: ModuleType, inputs: Sequence[Any], limits: Limits, deadline: float
) -> str | None:
    """Return the first node, by bisection, whose value an importer's program does not have."""
    values = [*inputs, *lifted.weights.values(), *lifted.hidden]
    nodes = _values_of(lifted, values)
    tensors = list(nodes)

    def is_wrong(node: Node) -> bool:
        imported = importer.import_program(_until(lifted, node), str(node), limits)
        artifact = imported if isinstance(imported, Artifact) else serialize_module(imported, "current", name=str(node))
        (found,) = results_of(artifact, values, max(1.0, deadline - monotonic()))
        return difference(found, nodes[node], coarsest(artifact)) is not None

    low, high = -1, len(tensors) - 1
    while high - low > 1 and monotonic() < deadline:
        middle = (low + high) // 2
        low, high = (low, middle) if is_wrong(tensors[middle]) else (middle, high)
    if high - low > 1:
        return None
    found = tensors[high]
    # One of several results of an op.
    return described(found.args[0] if found.target is getitem else found)


def _values_of(lifted: Lifted, values: Sequence[Any]) -> dict[Node, Any]:
    """Evaluate the graph by torch; return the tensors of its ops, in order."""
    import torch

    kept: dict[Node, Any] = {}
    size = 0

    class Kept(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, n: Node) -> Any:
            nonlocal size
            value = super().run_node(n)
            if n.op == "call_function" and isinstance(value, torch.Tensor):
                size += value.nbytes
                if size > _MOST_BYTES:
                    raise ValueError("the values of the program are too many to keep")
                kept[n] = as_numpy(value.clone(), str(n))
            return value

    with torch.no_grad():
        Kept(lifted.program.graph_module).run(*map(_as_tensor, values), *lifted.small)
    # The nodes of the program itself: a graph module has a copy of none.
    return kept


def _as_tensor(array: Any) -> torch.Tensor:
    import numpy as np
    import torch

    kind = getattr(torch, array.dtype.name, None)
    if array.dtype.name == "bfloat16" or "float8" in array.dtype.name:
        bits = {1: np.uint8, 2: np.int16}[array.dtype.itemsize]
        return torch.from_numpy(np.array(array).view(bits)).view(kind)
    return torch.from_numpy(np.array(array))


def _until(lifted: Lifted, last: Node) -> Lifted:
    """Return the program up to an op, whose value is its only result."""
    import torch
    from torch.export import ExportedProgram
    from torch.export.graph_signature import ExportGraphSignature, OutputKind, OutputSpec, TensorArgument

    program = lifted.program
    graph = torch.fx.Graph()
    copies: dict[Node, Node] = {}
    for node in program.graph.nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
        copies[node].name = node.name
        if node is last:
            break
    graph.output((copies[last],))
    output = OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(last.name), None)
    cut = ExportedProgram(
        root=program.graph_module,
        graph=graph,
        graph_signature=ExportGraphSignature(list(program.graph_signature.input_specs), [output]),
        state_dict={},
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        constants=program.constants,
        verifiers=[program.verifier],
    )
    return replace(lifted, program=cut, outputs=("value",))
