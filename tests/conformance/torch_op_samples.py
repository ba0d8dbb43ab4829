"""Samples of torch's operator database as modules, also with special values."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final

#: How many sample inputs of an op are looked through for those that are drawn.
MOST_SAMPLES: Final = 64
#: Samples with more elements than this are passed over, if there are smaller ones.
_MOST_ELEMENTS: Final = 1 << 12
_SPECIAL_FLOATS: Final = (float("nan"), float("inf"), 0.0, -1.0, float("-inf"), -0.0, 2.5, float("nan"))
SPECIAL: Final = -1


@cache
def database() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {f"{each.name}.{each.variant_test_name}".rstrip("."): each for each in op_db}


@cache
def _samples(name: str, kind: str) -> list[tuple[Any, ...]]:
    """Return the input, arguments and keywords of samples."""
    import torch

    torch.manual_seed(0)
    given = database()[name].sample_inputs("cpu", getattr(torch, kind), requires_grad=False)
    found = [(each.input, tuple(each.args), dict(each.kwargs)) for each in islice(given, MOST_SAMPLES)]
    tensors = [[leaf for leaf in leaves_of(each) if isinstance(leaf, torch.Tensor)] for each in found]
    small = [one for one, of in zip(found, tensors, strict=True) if sum(each.numel() for each in of) <= _MOST_ELEMENTS]
    return small or found


def leaves_of(value: Any) -> list[Any]:
    from torch.utils import _pytree as pytree

    return list(pytree.tree_leaves(value))


def sample(name: str, kind: str, number: int, without: str = "$.", argument: int | None = None) -> Any:
    """Return the input, arguments and keywords of a sample of an op in a dtype.

    Special values that fit the pattern ``without`` are left out. They are in ``argument`` alone, if that is given; 0 is
    the input.
    """
    from torch.utils import _pytree as pytree

    found = _samples(name, kind)
    if number != SPECIAL:
        return found[number and 1 + number % max(1, len(found) - 1)] if len(found) > 1 else found[0]
    many = next((each for each in found if getattr(each[0], "numel", int)() > 1), found[0])
    inputs, args, kwargs = many
    places = range(len(args) + 1) if "float" in kind or "complex" in kind else (0,)
    places = places if argument is None else (argument,)
    inputs, *args = (
        pytree.tree_map(lambda leaf, at=at: _with_special(leaf, kind, at, without), each) if at in places else each
        for at, each in enumerate((inputs, *args))
    )
    return inputs, tuple(args), kwargs


def _with_special(value: Any, kind: str, shift: int, without: str) -> Any:
    """Return a tensor of the dtype with special values, from a place on that depends on its place in the sample."""
    import torch

    if not isinstance(value, torch.Tensor) or str(value.dtype) != f"torch.{kind}" or value.layout != torch.strided:
        return value
    if value.dtype.is_complex:
        # No infinities: C leaves open which parts of their products are NaN, and torch itself gives both.
        numbers: list[float] = [float("nan"), 0.0, -1.0, -0.0, 2.5]
    elif value.dtype.is_floating_point:
        numbers = [_SPECIAL_FLOATS[(at + shift) % len(_SPECIAL_FLOATS)] for at in range(len(_SPECIAL_FLOATS))]
    else:
        bounds = torch.iinfo(value.dtype)
        numbers = [bounds.max, bounds.min, 0, bounds.max // 3, bounds.min // 5, 300001 % bounds.max, 1]
    numbers = [each for each in numbers if not re.search(without, str(each))]
    flat = value.detach().clone(memory_format=torch.contiguous_format).reshape(-1)
    # Not more than half of a tensor: what surrounds a NaN matters, too.
    count = min(len(numbers), max(1, flat.numel() // 2), flat.numel())
    flat[:count] = torch.tensor(numbers[:count]).to(value.dtype)
    return flat.reshape(value.shape)


@cache
def module_type() -> Any:
    import torch
    from torch.utils import _pytree as pytree

    class Samples(torch.nn.Module):  # type: ignore[misc]
        """Applies ops to samples; the tensors of the results are its outputs."""

        def __init__(self, parts: Sequence[tuple[Callable[..., Any], list[Any], Any]]) -> None:
            super().__init__()
            self.parts = parts

        def forward(self, *tensors: Any) -> Any:
            given = iter(tensors)
            found = []
            for op, leaves, spec in self.parts:
                whole = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
                value, args, kwargs = pytree.tree_unflatten(whole, spec)
                found += [each for each in leaves_of(op(value, *args, **kwargs)) if isinstance(each, torch.Tensor)]
            return tuple(found)

    return Samples
