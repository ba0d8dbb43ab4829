"""Dynamic sizes of torch.export as symbolic dimensions of JAX, in one scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    import torch

_UNBOUND: Final = 2


@dataclass(frozen=True, slots=True)
class SymbolicSizes:
    scope: Any  # the ``jax.export.SymbolicScope``, with the ranges of the sizes

    @classmethod
    def of(cls, program: torch.export.ExportedProgram) -> SymbolicSizes:
        """The ranges are those that ``torch.export`` recorded."""
        import jax.export
        import torch

        found = {
            symbol
            for node in program.graph.nodes
            if node.op == "placeholder"
            for size in getattr(node.meta.get("val"), "shape", ())
            if isinstance(size, torch.SymInt)
            for symbol in size.node.expr.free_symbols
        }
        ranges = {symbol: allowed for symbol, allowed in program.range_constraints.items() if symbol in found}
        return cls(jax.export.SymbolicScope(_constraints(ranges)))

    def shape(self, sizes: Sequence[Any]) -> tuple[Any, ...]:
        """Return a shape for JAX: numbers as they are, expressions over dynamic sizes as symbolic dimensions."""
        import jax.export
        import torch

        # Sizes of inputs are linear expressions, which sympy and JAX write alike.
        texts = [str(size.node.expr) if isinstance(size, torch.SymInt) else str(size) for size in sizes]
        return tuple(jax.export.symbolic_shape(", ".join(texts), scope=self.scope)) if texts else ()


def _constraints(ranges: Mapping[Any, Any]) -> list[str]:
    found = []
    for symbol, allowed in ranges.items():
        # torch writes 2 for sizes without a lower bound, and infinities of its own for those without an upper one.
        if allowed.lower.is_Integer and allowed.lower > _UNBOUND:
            found.append(f"{symbol} >= {allowed.lower}")
        if allowed.upper.is_Integer:
            found.append(f"{symbol} <= {allowed.upper}")
    return found
