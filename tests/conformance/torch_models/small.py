"""Small modules with what importers trip over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

from torch_models.case import Case, rand


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any], **modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Call the function with the module itself and the inputs."""
        return self.function(self, *inputs)


def function(apply: Callable[..., Any], *shapes: tuple[int, ...], dynamic: Any = None) -> Case:
    """Return a function of a module and tensors of these shapes as a case."""
    return Case(lambda: Apply(apply), lambda: tuple(rand(*shape) for shape in shapes), dynamic)


def assigned(_: Any, x: torch.Tensor) -> torch.Tensor:
    """Assign several slices with negative bounds."""
    y = x.clone()
    y[:, -2:] = 0
    y[-3:-1] = y[:2] * 2
    y[:, :, -1] += 1
    return y


def spectrum(_: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Transform to frequencies and back."""
    found = torch.fft.rfft(x)
    return found.real, found.imag.abs(), torch.fft.irfft(found * 2, n=x.shape[-1])


def rotated(_: Any, x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """Rotate pairs of numbers as complex ones, as the reference Llama does."""
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


def branches(_: Any, x: torch.Tensor) -> torch.Tensor:
    """Choose a branch at run time."""
    found: torch.Tensor = torch.cond(x.sum() > 0, lambda y: y.sin() + 1, lambda y: y.cos() - 1, (x,))
    return found


def halved(_: Any, x: torch.Tensor) -> Any:
    """Repeat until a condition holds."""
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(
        lambda i, y: y.abs().sum() > 1, lambda i, y: (i + 1, y / 2), (torch.zeros((), dtype=torch.long), x)
    )


def windows(_: Any, x: torch.Tensor) -> torch.Tensor:
    """View overlapping windows of a batch by strides."""
    size = x.shape[1]
    return torch.as_strided(x, (x.shape[0], size - 3, 4), (size, 1, 1)).mean(-1)


SMALL: Final = {
    "small/slices": function(assigned, (4, 5, 6)),
    "small/rfft": function(spectrum, (3, 16)),
    "small/complex": function(rotated, (2, 5, 8), (5, 4)),
    "small/cond": function(branches, (3, 4)),
    "small/while_loop": function(halved, (3, 4)),
    "small/as_strided": function(windows, (3, 9), dynamic=(({0: torch.export.Dim("batch", min=2, max=64)},),)),
    "small/histc": function(lambda _, x: torch.histc(x, bins=8, min=-1, max=1), (40,)),
    "small/lstm": Case(
        lambda: Apply(lambda m, x: m.lstm(x)[0], lstm=nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True)),
        lambda: (rand(2, 5, 4),),
    ),
    "small/grid_sample": function(
        lambda _, x, grid: functional.grid_sample(x, grid, align_corners=False), (1, 2, 6, 6), (1, 4, 4, 2)
    ),
    "small/cumulative": function(lambda _, x: (x.cumprod(1), x.cumsum(0), x.cummax(1).values, x.lgamma()), (3, 5)),
}  # fmt: skip
