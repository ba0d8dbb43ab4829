"""Decompositions of torch ops that no importer has, or not for dynamic sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vhlo_tools.integrations.torch.resampling import resampling_decompositions

if TYPE_CHECKING:
    import torch


def shared_decompositions() -> dict[Any, Callable[..., Any]]:
    import torch

    found: dict[Any, Callable[..., Any]] = {
        # torch-mlir takes sizes that are numbers only.
        torch.ops.aten.as_strided.default: _as_strided,
        # Of one dimension alone, and without NaNs.
        torch.ops.aten.searchsorted.Tensor: _searchsorted,
        torch.ops.aten.searchsorted.Scalar: lambda bounds, value, **options: _searchsorted(
            bounds, torch.scalar_tensor(value), **options
        ),
        torch.ops.aten.bucketize.Tensor: lambda values, bounds, **options: _searchsorted(bounds, values, **options),
        torch.ops.aten.bucketize.Scalar: lambda value, bounds, **options: _searchsorted(
            bounds, torch.scalar_tensor(value), **options
        ),
        torch.ops.aten.index_reduce.default: _index_reduce,
        torch.ops.aten.nonzero_static.default: _nonzero_static,
        torch.ops.aten._embedding_bag.default: _embedding_bag,
        torch.ops.aten._embedding_bag_forward_only.default: _embedding_bag,
        torch.ops.aten.fake_quantize_per_channel_affine_cachemask.default: _fake_quantize,
        torch.ops.aten.fake_quantize_per_tensor_affine_cachemask.default: _fake_quantize_whole,
        torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: (
            lambda value, scale, zero, enabled, *bounds: tuple(
                torch.where(enabled == 1, *pair)
                for pair in zip(_fake_quantize_whole(value, scale, zero, *bounds), (value, True), strict=True)
            )
        ),
        torch.ops.aten.adaptive_max_pool2d.default: _adaptive_max_pool,
        torch.ops.aten.adaptive_max_pool3d.default: _adaptive_max_pool,
        torch.ops.aten.fft_fftfreq.default: lambda length, spacing=1.0, **options: _frequencies(
            length, spacing, [(0, (length + 1) // 2), (-(length // 2), 0)], **options
        ),
        torch.ops.aten.fft_rfftfreq.default: lambda length, spacing=1.0, **options: _frequencies(
            length, spacing, [(0, length // 2 + 1)], **options
        ),
        torch.ops.aten.max_pool2d_with_indices_backward.default: _max_pool_backward,
        torch.ops.aten.max_pool3d_with_indices_backward.default: _max_pool_backward,
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default: attention_backward,
        # Their checks of the input are side effects.
        torch.ops.aten.linalg_inv.default: lambda value: torch.linalg.inv_ex(value)[0],
        torch.ops.aten.linalg_cholesky.default: lambda value, *, upper=False: torch.linalg.cholesky_ex(
            value, upper=upper
        )[0],
        torch.ops.aten.linalg_solve.default: lambda one, other, *, left=True: torch.linalg.solve_ex(
            one, other, left=left
        )[0],
        torch.ops.aten.linalg_lu_factor.default: lambda value, *, pivot=True: torch.linalg.lu_factor_ex(
            value, pivot=pivot
        )[:2],
        **resampling_decompositions(),
        torch.ops.aten.ldexp.Tensor: lambda value, power: torch.mul(value, torch.pow(2.0, power)),
    }
    # What transformers does for a mixture of experts; there only once it is imported.
    if fallback := getattr(torch.ops.transformers, "grouped_mm_fallback", None):
        found[fallback.default] = _grouped_mm
    return found


def _as_strided(tensor: torch.Tensor, size: Any, stride: Any, storage_offset: Any = None) -> torch.Tensor:
    """Return elements of a tensor by the places that they have in its memory.

    Memory that has, or may have, elements beyond the tensor is a ``NotImplementedError``.
    """
    import torch

    order = sorted(range(tensor.ndim), key=lambda each: _hint(tensor.stride(each)), reverse=True)
    dense = tensor.permute(order)
    start = 0 if storage_offset is None else storage_offset - tensor.storage_offset()
    if not dense.is_contiguous() or start < 0:
        raise NotImplementedError("aten.as_strided of a slice, or of another tensor that is not all of its memory")
    places = torch.full((), start, dtype=torch.int64)
    for number, (length, step) in enumerate(zip(size, stride, strict=True)):
        steps = torch.arange(length) * step
        places = places + steps.reshape(*[1] * number, -1, *[1] * (len(size) - number - 1))
    return dense.reshape(-1)[places]


def _hint(size: Any) -> int:
    """Return a size, or the one that a dynamic size had in the example."""
    return size if isinstance(size, int) else int(size.node.hint)


def _grouped_mm(tokens: torch.Tensor, weights: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Multiply groups of consecutive rows by a matrix each; a row after the last group gives zeros.

    Sizes of groups are known at run time only, so each row is multiplied by each matrix, and one product is selected.
    """
    import torch

    rows = torch.arange(tokens.shape[0])
    starts = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
    inside = (rows >= starts.unsqueeze(1)) & (rows < ends.unsqueeze(1))
    return torch.where(inside.unsqueeze(-1), torch.matmul(tokens, weights), 0.0).sum(0).to(tokens.dtype)


def _searchsorted(
    bounds: torch.Tensor,
    values: torch.Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return how many bounds come before each value. All come before a NaN."""
    import torch

    ordered = bounds if sorter is None else torch.gather(bounds, -1, sorter)
    # One sequence is for values of any shape, none included; several are for a row of values each.
    one, other = ordered if ordered.ndim == 1 else ordered.unsqueeze(-2), values.unsqueeze(-1)
    after = one > other if right or side == "right" else one >= other
    return torch.logical_not(after).sum(-1).to(torch.int32 if out_int32 else torch.int64)


def _index_reduce(
    value: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str, *, include_self: bool = True
) -> torch.Tensor:
    import torch

    if not value.ndim:
        value, source = value.reshape(1), source.reshape(1)
        return _index_reduce(value, 0, index.reshape(1), source, reduce, include_self=include_self).reshape([])
    shape = [1] * value.ndim
    shape[dim] = -1
    places = index.to(torch.int64).reshape(shape).expand(source.shape)
    return torch.scatter_reduce(value, dim, places, source, reduce, include_self=include_self)


def _nonzero_static(value: torch.Tensor, *, size: int, fill_value: int = -1) -> torch.Tensor:
    import torch

    counts = (value != 0).reshape(-1).to(torch.int64).cumsum(0)
    wanted = torch.arange(1, size + 1)
    rest = _searchsorted(counts, wanted)
    is_there = rest < value.numel()
    columns: list[torch.Tensor] = []
    for length in reversed(value.shape):
        columns.insert(0, torch.where(is_there, torch.remainder(rest, length), fill_value))
        rest = torch.div(rest, length, rounding_mode="floor")
    return torch.stack(columns, 1) if columns else torch.zeros((size, 0), dtype=torch.int64)


def _embedding_bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[torch.Tensor, ...]:
    """Return sums, means or maxima of rows, with the bag of each row, and how many rows each bag has."""
    import torch

    starts = offsets[:-1] if include_last_offset else offsets
    bags = _searchsorted(starts, torch.arange(indices.shape[0]), right=True) - 1
    rows = weight[indices]
    counts_in = (indices != padding_idx).to(weight.dtype).unsqueeze(1)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    # A product would be NaN where a row that is left out is infinite.
    rows = torch.where(counts_in > 0, rows, 0)
    empty = torch.zeros((starts.shape[0], weight.shape[1]), dtype=weight.dtype)
    sizes = torch.index_add(empty[:, :1], 0, bags, counts_in)
    if mode == len(("sum", "mean")):
        least = torch.where(counts_in > 0, rows, float("-inf"))
        maxima = torch.scatter_reduce(empty, 0, bags.unsqueeze(1).expand(rows.shape), least, "amax", include_self=False)
        result = torch.where(sizes > 0, maxima, 0)
    else:
        result = torch.index_add(empty, 0, bags, rows)
        result = result / sizes.clamp(min=1) if mode == 1 else result
    whole = sizes.squeeze(1).to(indices.dtype)
    return result, bags.to(indices.dtype), whole, whole


def _fake_quantize(
    value: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, axis: int, quant_min: int, quant_max: int
) -> tuple[torch.Tensor, torch.Tensor]:
    shape = [1] * value.ndim
    shape[axis] = -1
    return _fake_quantize_whole(value, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max)


def _fake_quantize_whole(
    value: torch.Tensor, step: Any, zero: Any, quant_min: int, quant_max: int
) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    number = torch.round(value * (1 / step)) + zero
    inside = (number >= quant_min) & (number <= quant_max)
    return ((number.clamp(quant_min, quant_max) - zero) * step).to(value.dtype), inside


def _adaptive_max_pool(value: torch.Tensor, output_size: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the maxima of windows whose sizes differ by one at most, and their places in the whole."""
    import torch

    count = len(output_size)
    whole = value.flatten(-count)
    if all(each == 1 for each in output_size):
        ones = [*value.shape[:-count], *[1] * count]
        return tuple(each.reshape(ones) for each in _largest(whole))
    places = torch.zeros((), dtype=torch.int64)
    for number, (size, length) in enumerate(zip(value.shape[-count:], output_size, strict=True)):
        if not isinstance(size, int):
            raise NotImplementedError("aten.adaptive_max_pool of an open size, to more than one element")
        steps = torch.arange(length + 1) * size
        starts, ends = steps[:-1] // length, (steps[1:] + length - 1) // length
        longest = max(-(-(at + 1) * size // length) - at * size // length for at in range(length))
        shape = [1] * (2 * count)
        shape[number], shape[count + number] = length, longest
        # In a shorter window the last place stands twice.
        spots = torch.minimum(starts.unsqueeze(1) + torch.arange(longest), ends.unsqueeze(1) - 1)
        places = places * size + spots.reshape(shape)
    windows = places.flatten(count)
    found, best = _largest(whole[..., windows])
    return found, torch.gather(windows.expand(*best.shape, -1), -1, best.unsqueeze(-1)).squeeze(-1)


def _largest(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the maxima along the last dimension, and their places: the first, but of NaNs the last."""
    import torch

    found, place = value.max(-1)
    is_nan = value != value
    last = value.shape[-1] - 1 - is_nan.flip(-1).to(torch.int64).argmax(-1)
    return found, torch.where(is_nan.any(-1), last, place)


def _frequencies(length: int, spacing: float, parts: Sequence[tuple[int, int]], **options: Any) -> torch.Tensor:
    import torch

    kind = options.get("dtype") or torch.get_default_dtype()
    return torch.cat([torch.arange(*each) for each in parts]).to(kind) * (1.0 / (length * spacing))


def _max_pool_backward(gradient: torch.Tensor, value: torch.Tensor, kernel: Any, *others: Any) -> torch.Tensor:
    """The last of the other arguments has, for each window, the place of its maximum in a plane."""
    import torch

    first = -len(kernel)
    zeros = torch.zeros_like(value).flatten(first)
    return torch.scatter_add(zeros, -1, others[-1].flatten(first), gradient.flatten(first)).reshape(value.shape)


def attention_backward(
    gradient: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    result: torch.Tensor,
    sums: torch.Tensor,
    dropout: float,
    is_causal: bool,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> tuple[torch.Tensor, ...]:
    """Return the gradients of attention; ``sums`` are the logarithms of its sums of exponentials, or its weights.

    torch's own decomposition of the forward op returns weights where the op returns these logarithms.
    """
    import torch

    scale = query.shape[-1] ** -0.5 if scale is None else scale
    wide, narrow = torch.promote_types(query.dtype, torch.float32), query.dtype
    query, key, value, gradient, result, sums = (each.to(wide) for each in (query, key, value, gradient, result, sums))
    # Several heads of the query may share one of the key and the value.
    shared = query.shape[1] // key.shape[1]
    if shared > 1:
        key, value = (each.repeat_interleave(shared, 1) for each in (key, value))
    weights = sums
    if sums.ndim < query.ndim:
        scores = query @ key.mT * scale
        if attn_mask is not None:
            scores = scores + attn_mask
        if is_causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        weights = torch.exp(scores - sums.unsqueeze(-1))
    of_weights = gradient @ value.mT
    of_scores = weights * (of_weights - (gradient * result).sum(-1, keepdim=True)) * scale
    of_heads = of_scores.mT @ query, weights.mT @ gradient
    summed = (each.unflatten(1, (-1, shared)).sum(2) if shared > 1 else each for each in of_heads)
    return tuple(each.to(narrow) for each in (of_scores @ key, *summed))
