"""One model of the suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True, slots=True)
class Case:
    """A model with its inputs."""

    build: Callable[[], nn.Module]  # makes the model
    inputs: Callable[[], tuple[Any, ...]]  # makes the positional inputs
    shapes: Any = field(default=None)  # ``dynamic_shapes`` of ``torch.export``; ``None`` for static ones
    tolerance: float = 5e-5  # how far results may be from those of torch, relative to the largest of a tensor


class Tensors(nn.Module):
    """A model called with named inputs, that returns all tensors of its outputs."""

    def __init__(self, model: nn.Module, *names: str, **options: Any) -> None:
        super().__init__()
        self.model = model
        self.names = names
        self.options = options

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Call the model with its inputs by name, or in order if they have none."""
        if self.names:
            found = self.model(**dict(zip(self.names, inputs, strict=True)), **self.options)
        else:
            found = self.model(*inputs, **self.options)
        return tuple(each for each in torch.utils._pytree.tree_leaves(found) if isinstance(each, torch.Tensor))


def rand(*shape: int) -> torch.Tensor:
    """Return numbers in [-1, 1)."""
    return torch.rand(shape) * 2 - 1


def image(size: int = 32, channels: int = 3) -> Callable[[], tuple[torch.Tensor]]:
    return lambda: (rand(1, channels, size, size),)


def tokens(length: int = 9, number: int = 90, count: int = 1) -> Callable[[], tuple[torch.Tensor, ...]]:
    return lambda: tuple(torch.randint(3, number, (2, length)) for _ in range(count))
