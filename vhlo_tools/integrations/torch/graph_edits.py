"""Edits of exported programs before they are decomposed."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import torch

#: The ops that take tensors of indices, which may be negative.
_INDEXED: Final = ("aten.index.Tensor", "aten.index_put.default")
#: The ops with bounds along a dimension, with the places of the dimension, of the start and of the end.
_BOUNDED: Final = {"aten.slice.Tensor": (1, 2, 3), "aten.slice_scatter.default": (2, 3, 4)}


def prepared(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return a program in which views are reshapes; the program itself is not changed.

    torch checks that the strides of a tensor permit a view. Decompositions give results other strides than the ops that
    they replace, those of attention for instance, so that it would refuse a program that it accepted before.
    """
    import torch
    from torch.export import ExportedProgram

    aten = torch.ops.aten
    graph = copy.deepcopy(program.graph)
    for node, original in zip(graph.nodes, program.graph.nodes, strict=True):
        # A copy renames nodes that are called as functions of Python, and the signature has their names.
        node.name = original.name
        if node.op == "call_function" and node.target in (aten.view.default, aten._unsafe_view.default):
            node.target = aten.reshape.default
    return ExportedProgram(
        root=program.graph_module,
        graph=graph,
        graph_signature=copy.deepcopy(program.graph_signature),
        state_dict=program.state_dict,
        range_constraints=copy.copy(program.range_constraints),
        module_call_graph=copy.deepcopy(program.module_call_graph),
        example_inputs=program.example_inputs,
        constants=program.constants,
        verifiers=list(program.verifiers),
    )


def count_from_the_start(graph: torch.fx.Graph) -> None:
    """Replace, in place, bounds of slices that count from the end of a dimension of known size, or lie beyond it.

    With a few negative bounds torch-mlir 20261001 takes all the memory that there is.
    """
    for node in graph.nodes:
        if node.op != "call_function" or str(node.target) not in _BOUNDED:
            continue
        at_dimension, *places = _BOUNDED[str(node.target)]
        sizes = node.args[0].meta["val"].shape
        size = sizes[node.args[at_dimension] if len(node.args) > at_dimension else 0]
        if isinstance(size, int):
            args = list(node.args)
            for place in places:
                if place < len(args) and isinstance(args[place], int):
                    bound = args[place]
                    args[place] = min(max(bound + size if bound < 0 else bound, 0), size)
            node.args = tuple(args)


def wrap_indices(graph: torch.fx.Graph) -> None:
    """Add, in place, the size of its dimension to each negative index of a tensor.

    torch-mlir 20261001 takes indices as they are, so that StableHLO clamps negative ones to 0.
    """
    import torch

    for node in [each for each in graph.nodes if each.op == "call_function" and str(each.target) in _INDEXED]:
        tensor, indices, *others = node.args
        wrapped = list(indices)
        # A mask stands for as many dimensions as it has.
        dimension = 0
        for place, index in enumerate(indices):
            value = None if index is None else index.meta["val"]
            if value is not None and value.dtype in (torch.int32, torch.int64):
                with graph.inserting_before(node):
                    wrapped[place] = _wrapped(graph, node, tensor, dimension, index)
            dimension += value.ndim if value is not None and value.dtype == torch.bool else 1
        node.args = (tensor, wrapped, *others)


def _wrapped(graph: torch.fx.Graph, user: torch.fx.Node, tensor: torch.fx.Node, dimension: int, index: Any) -> Any:
    import torch

    aten = torch.ops.aten

    def call(op: Any, *args: Any) -> torch.fx.Node:
        values = torch.fx.map_arg(args, lambda each: each.meta["val"])
        node = graph.call_function(op, args)
        with index.meta["val"].fake_mode:
            node.meta = {"val": op(*values), "stack_trace": user.meta.get("stack_trace")}
        return node

    size: Any = tensor.meta["val"].shape[dimension]
    if not isinstance(size, int):
        size = call(aten.sym_size.int, tensor, dimension)
    negative, moved = call(aten.lt.Scalar, index, 0), call(aten.add.Scalar, index, size)
    return call(aten.where.self, negative, moved, index)
