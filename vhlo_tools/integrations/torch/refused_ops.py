"""Ops that an importer computes otherwise than torch, and that are refused for it: a wrong number is worse."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.integrations.torch.export_errors import described

if TYPE_CHECKING:
    from torch.fx import GraphModule, Node

_FLOATS: Final = "it computes integers as floats, which hold fewer digits"

#: Of each importer: patterns of ops and of element types of one of their tensors, and the reason.
REFUSED: Final[dict[str, tuple[tuple[str, str, str], ...]]] = {
    "torchax": (
        (r"aten\.avg_pool\dd\.", r"u?int\d+", _FLOATS),
        (r"aten\.logcumsumexp\.", r"complex\d+", "it computes NaNs"),
        (r"aten\.linalg_ldl_factor_ex\.", r".*", "it does not pivot"),
    ),
    "torch-mlir": (
        (r"aten\.(abs|\w*norm\w*)\.", r"complex\d+", "it takes the real part for the absolute value"),
        (r"aten\.log(2|10)\.", r"complex\d+", "of 0 it has a NaN"),
        (r"aten\.logcumsumexp\.", r".*", "its exponentials overflow"),
    ),
}


def refuse_listed(module: GraphModule, importer: str, name: str) -> None:
    """Raise an error with op, line and remedy if a graph, or one within it, has an op that is listed."""
    import torch

    for each in module.modules():
        if isinstance(each, torch.fx.GraphModule):
            for node in each.graph.nodes:
                if node.op == "call_function" and (reason := _reason(node, importer)):
                    raise InvalidProgramError(
                        f"{importer} cannot convert {name} to StableHLO: {described(node)} ({reason}): convert its "
                        f"tensors to a type of which it is right, or use the importer {_OTHER[importer]}"
                    )


def _reason(node: Node, importer: str) -> str | None:
    rules = [rule for rule in REFUSED[importer] if re.match(rule[0], str(node.target))]
    if not rules:
        return None
    values: list[Any] = [node.meta.get("val"), *(each.meta.get("val") for each in node.all_input_nodes)]
    kinds = {str(each.dtype).removeprefix("torch.") for each in values if hasattr(each, "dtype")}
    for _, pattern, reason in rules:
        if found := sorted(kind for kind in kinds if re.fullmatch(pattern, kind)):
            return f"{reason}; this is {found[0]}"
    return None


_OTHER: Final = {"torchax": "torch-mlir", "torch-mlir": "torchax"}
