"""Names of inputs and outputs: parameters of ``forward``, and paths within them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def input_names(program: torch.export.ExportedProgram) -> tuple[str, ...]:
    """Return a name for each leaf of the inputs: ``tokens``, ``state.0``, ``options.scale``."""
    from torch.utils import _pytree as pytree

    spec = program.call_spec.in_spec
    args, kwargs = pytree.tree_unflatten(range(spec.num_leaves), spec)
    parameters = program.module_call_graph[0].signature
    names = list(parameters.forward_arg_names or ()) if parameters else []
    # Programs from old files lack the names.
    names += [f"input{index}" for index in range(len(names), len(args))]
    found: dict[int, str] = {}
    for parts, values in ((names, args), (list(kwargs), kwargs.values())):
        for part, value in zip(parts, values, strict=False):
            for path, leaf in pytree.tree_flatten_with_path(value)[0]:
                found[leaf] = ".".join([part, *map(_word, path)])
    return tuple(found[leaf] for leaf in range(spec.num_leaves))


def output_names(program: torch.export.ExportedProgram) -> tuple[str, ...]:
    """Return a name for each leaf of the outputs: ``output0``, or its path if the outermost is not a sequence."""
    from torch.utils import _pytree as pytree

    spec = program.call_spec.out_spec
    outputs = pytree.tree_unflatten(range(spec.num_leaves), spec)
    found = {}
    for path, leaf in pytree.tree_flatten_with_path(outputs)[0]:
        words = [_word(key) for key in path] or ["0"]
        found[leaf] = ".".join([f"output{words[0]}" if words[0].isdigit() else words[0], *words[1:]])
    return tuple(found[leaf] for leaf in range(spec.num_leaves))


def _word(key: Any) -> str:
    """An element of a path is an index, a key or an attribute."""
    for attribute in ("idx", "key", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)
