"""What a case is: a model of torch with its inputs, and what becomes of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from framework_programs import Outcome, became
from torch import nn

from vhlo_tools.integrations.torch import export
from vhlo_tools.integrations.torch.graphs import as_numpy

CASES: dict[str, Callable[[], Outcome]] = {}
Tensors = tuple[Any, ...]


def outcome(build: Callable[[], nn.Module], inputs: Tensors, shapes: Any, others: Sequence[Tensors]) -> Outcome:
    torch.manual_seed(7)
    model = build().eval()
    runs = []
    with torch.no_grad():
        for each in (inputs, *others):
            results = copy.deepcopy(model)(*copy.deepcopy(each))
            runs.append((_arrays(each), _arrays(results)))
    exported = export(model, inputs, dynamic_shapes=shapes)
    what, said = became(exported.artifact, runs)
    noted = {each.feature: each.message for each in exported.findings}
    return what, f"{said}{f'; {noted}' if noted else ''}"


def _arrays(values: Any) -> list[Any]:
    leaves = torch.utils._pytree.tree_leaves(values)
    return [as_numpy(each, "a value").copy() for each in leaves if isinstance(each, torch.Tensor)]


def case(
    name: str, build: Callable[[], nn.Module], *inputs: Any, shapes: Any = None, others: Sequence[Tensors] = ()
) -> None:
    """``others`` are inputs of other sizes than those of the example."""
    assert name not in CASES
    CASES[name] = lambda: outcome(build, inputs, shapes, others)


class Of(nn.Module):
    """A function of a module with what it holds, and of the inputs."""

    def __init__(self, function: Callable[..., Any], **held: Any) -> None:
        super().__init__()
        self.function = function
        for name, value in held.items():
            if isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, *inputs: Any) -> Any:
        return self.function(self, *inputs)


def of(name: str, function: Callable[..., Any], *inputs: Any, **held: Any) -> None:
    """Add a function; what it holds is made by functions, when the case is tried."""
    options = {each: held.pop(each) for each in ("shapes", "others") if each in held}
    # One argument of `forward` takes all inputs.
    if "shapes" in options:
        options["shapes"] = (options["shapes"],)
    case(name, lambda: Of(function, **{key: make() for key, make in held.items()}), *inputs, **options)


def rand(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(sum(shape))) * 2 - 1


def ints(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(high))


def linear(*sizes: int) -> Callable[[], nn.Module]:
    return lambda: nn.Linear(*sizes)


def mlp(*sizes: int) -> Callable[[], nn.Module]:
    def made() -> nn.Module:
        layers = [[nn.Linear(a, b), nn.SiLU()] for a, b in pairwise(sizes)]
        return nn.Sequential(*[each for pair in layers for each in pair][:-1])

    return made
