"""Antialiased interpolation as products with matrices of weights, for each op of torch that does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import torch


def resampling_decompositions() -> dict[Any, Callable[..., Any]]:
    import torch

    table: dict[Any, Callable[..., Any]] = {}
    for name, kernel in _KERNELS.items():
        for suffix, function in (("", _resampled), ("_backward", _backward)):
            # Older releases of torch lack one.
            if packet := getattr(torch.ops.aten, f"_upsample_{name}2d_aa{suffix}", None):
                table[packet.default] = partial(function, kernel)
    return table


def _linear(apart: torch.Tensor) -> torch.Tensor:
    return (1 - apart).clamp(min=0)


def _cubic(apart: torch.Tensor) -> torch.Tensor:
    import torch

    near = (1.5 * apart - 2.5) * apart * apart + 1
    far = ((-0.5 * apart + 2.5) * apart - 4) * apart + 2
    return torch.where(apart < 1, near, torch.where(apart < 2, far, 0))


def _lanczos(apart: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.where(apart < 3, torch.sinc(apart) * torch.sinc(apart / 3), 0)


#: What an element counts by its distance from the place of a result, in steps.
_KERNELS: Final[dict[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "bilinear": _linear,
    "bicubic": _cubic,
    "lanczos": _lanczos,
}


def _weights(
    kernel: Callable[[torch.Tensor], torch.Tensor], size: Any, wanted: Any, align_corners: bool, scale: float | None
) -> torch.Tensor:
    """Return the weights of all elements for each result, as rows.

    A size that is not known is a ``NotImplementedError``.
    """
    import torch

    if not (isinstance(size, int) and isinstance(wanted, int)):
        raise NotImplementedError("antialiased interpolation of a dynamic size: only other dimensions may be dynamic")
    if align_corners:
        step = (size - 1) / (wanted - 1) if wanted > 1 else 0.0
    else:
        step = 1 / scale if scale else size / wanted
    centers = (torch.arange(wanted, dtype=torch.float64) + 0.5) * step
    apart = (torch.arange(size, dtype=torch.float64) + 0.5 - centers.unsqueeze(1)).abs()
    weights = kernel(apart / max(step, 1.0))
    return weights / weights.sum(1, keepdim=True)


def _resampled(
    kernel: Callable[[torch.Tensor], torch.Tensor],
    value: torch.Tensor,
    output_size: Sequence[Any],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> torch.Tensor:
    import torch

    sizes = zip(value.shape[-2:], output_size, (scales_h, scales_w), strict=True)
    rows, columns = (_weights(kernel, size, wanted, align_corners, scale) for size, wanted, scale in sizes)
    if value.dtype == torch.uint8:
        resized = _rounded(value.to(torch.float64), columns)
        return _rounded(resized.mT, rows).mT.to(torch.uint8)
    wide = torch.promote_types(value.dtype, torch.float32)
    return (rows.to(wide) @ value.to(wide) @ columns.to(wide).mT).to(value.dtype)


def _rounded(value: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return products with weights of 16 bits, rounded to bytes."""
    import torch

    bits = torch.arange(1, 23, dtype=torch.float64)
    unit = 2.0 ** (torch.floor(weights.max() * 2.0**bits + 0.5) < 2**15).sum()
    whole = torch.sign(weights) * torch.floor(weights.abs() * unit + 0.5)
    return torch.floor((value @ whole.mT) / unit + 0.5).clamp(0, 255)


def _backward(
    kernel: Callable[[torch.Tensor], torch.Tensor],
    gradient: torch.Tensor,
    output_size: Sequence[Any],
    input_size: Sequence[Any],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> torch.Tensor:
    sizes = zip(input_size[-2:], output_size, (scales_h, scales_w), strict=True)
    rows, columns = (_weights(kernel, size, wanted, align_corners, scale) for size, wanted, scale in sizes)
    return rows.to(gradient.dtype).mT @ gradient @ columns.to(gradient.dtype)
