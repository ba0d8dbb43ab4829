"""Decompositions of torch ops for torch-mlir: its own table, with corrections and additions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def decompositions() -> dict[Any, Callable[..., Any]]:
    import torch
    from torch._decomp import get_decompositions
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    aten = torch.ops.aten
    return {
        **get_decomposition_table(),
        # Otherwise they are exported unchanged, and then rejected.
        **get_decompositions([aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_nearest3d]),
        # torch-mlir 20261001 returns the sign of the dividend, as fmod does.
        aten.remainder.Tensor: _remainder,
        aten.remainder.Scalar: _remainder,
        aten.remainder.Scalar_Tensor: _remainder,
        aten.fmod.Scalar: _fmod,
    }


def _remainder(dividend: Any, divisor: Any) -> torch.Tensor:
    import torch

    rest = torch.fmod(*_tensors(dividend, divisor))
    # A number is compared as such, not as a tensor: torch-mlir evaluates 0.3 < 0 as true.
    other_sign = (rest < 0) != (divisor < 0) if isinstance(divisor, torch.Tensor) else _beyond(rest, divisor)
    return torch.where((rest != 0) & other_sign, rest + divisor, rest)


def _beyond(rest: torch.Tensor, divisor: float) -> torch.Tensor:
    return rest > 0 if divisor < 0 else rest < 0


def _fmod(dividend: torch.Tensor, divisor: Any) -> torch.Tensor:
    import torch

    return torch.fmod(*_tensors(dividend, divisor))


def _tensors(one: Any, other: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both as tensors of torch's result type, in which tensors take precedence over numbers."""
    import torch

    kind = torch.result_type(one, other)
    device = next(each.device for each in (one, other) if isinstance(each, torch.Tensor))
    first, second = (
        each.to(kind) if isinstance(each, torch.Tensor) else torch.scalar_tensor(each, dtype=kind, device=device)
        for each in (one, other)
    )
    return first, second
