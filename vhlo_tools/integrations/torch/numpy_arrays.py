"""Convert torch tensors to numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vhlo_tools.errors import InvalidProgramError

if TYPE_CHECKING:
    import numpy as np
    import torch


def as_numpy(tensor: torch.Tensor, name: str) -> np.ndarray[Any, Any]:
    """The array shares the memory of a contiguous CPU tensor; ``name`` is for messages."""
    import ml_dtypes
    import numpy as np
    import torch

    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        kind = "without values" if tensor.device.type == "meta" else "sparse or quantized"
        raise InvalidProgramError(f"{name} is a tensor {kind}: expected a dense tensor of numbers")
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    try:
        # Element types that numpy has from ml_dtypes, which uses torch's names.
        other = getattr(ml_dtypes, str(plain.dtype).removeprefix("torch."), None)
        if other is None:
            whole: np.ndarray[Any, Any] = plain.numpy()
        else:
            bits = {1: torch.uint8, 2: torch.int16}[plain.element_size()]
            whole = plain.view(bits).numpy().view(np.dtype(other))
    except (KeyError, RuntimeError, TypeError) as error:
        raise InvalidProgramError(f"{name} is a {plain.dtype} that cannot be converted to an array: {error}") from error
    return whole
