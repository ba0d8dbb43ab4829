"""Errors and diagnostics of torch and torch-mlir, reduced to the cause."""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import InvalidProgramError

if TYPE_CHECKING:
    import torch

    from vhlo_tools.findings import Diagnostic

#: An op that torch-mlir does not know is a ``torch.operator`` with the name as an attribute.
_OPERATOR: Final = re.compile(r'name = "torch\.([\w.]+)"')
_OP: Final = re.compile(r"'torch\.((?:aten|prims|prim|runtime|quantized|torchvision)\.[\w.]+)'")


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Convert errors of torch to InvalidProgramError with the first line of the message, without the pages that follow.

    Deprecation warnings of torch about itself are suppressed, because they do not concern the caller.
    """
    try:
        with warnings.catch_warnings():
            for category in (DeprecationWarning, FutureWarning):
                warnings.simplefilter("ignore", category)
            # Emitted for every LSTM and similar module, which store their parameters twice.
            warnings.filterwarnings("ignore", "The tensor attributes? .*_flat_weights")
            yield
    except (MemoryError, OSError, InvalidProgramError):
        raise
    except Exception as error:
        said = first_words(str(error))
        reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
        raise InvalidProgramError(f"{what}: {reason}") from error


@contextmanager
def quiet_failure() -> Iterator[None]:
    """Hold back output on stderr, and discard it on failure: torch prints whole graphs before it raises."""
    kept = io.StringIO()
    with redirect_stderr(kept):
        yield
    sys.stderr.write(kept.getvalue())


def first_words(text: str) -> str:
    """Return the first nonempty line of a message."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def data_dependent(program: torch.export.ExportedProgram) -> str | None:
    """Return the first op with a result whose shape depends on values, for which StableHLO has no ops."""
    import torch
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and any(free_unbacked_symbols(size) for size in value.shape):
            return str(node.target)
    return None


def failing_ops(diagnostics: Sequence[Diagnostic]) -> dict[str, Diagnostic]:
    """Return the torch ops that ``diagnostics`` name, each with the first diagnostic that names it."""
    found: dict[str, Diagnostic] = {}
    for diagnostic in diagnostics:
        for name in (*_OPERATOR.findall(diagnostic.message), *_OP.findall(diagnostic.message)):
            found.setdefault(name, diagnostic)
    return found
