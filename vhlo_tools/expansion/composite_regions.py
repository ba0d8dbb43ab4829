"""The regions of the op composite, introduced in 1.14.0: a composite that has some becomes a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.expansion.composites import composite
from vhlo_tools.rewriting import Build, Rewriter


def _with_regions(rewriter: Rewriter) -> Sequence[Any] | None:
    return composite(rewriter) if len(rewriter.op.regions) else None


EXACT: Final[Mapping[str, Build]] = {"stablehlo.composite": _with_regions}
