"""The attribute result_tilings of custom_call, introduced in 1.18.0, dropped.

It asks for a tiling of the layout of each result. A consumer that does not know it chooses a tiling itself, and the
target of the call may depend on the one that was asked for, so that this is no exact expansion. The layouts
(``result_layouts``) remain.

Source: ``CustomCallOp`` in ``stablehlo/dialect/StablehloOps.td``, and ``CustomCallOpV2ToV1`` in
``stablehlo/transforms/VhloToVersion.cpp`` of openxla/stablehlo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.rewriting import Build, Rewriter

_NAME: Final = "result_tilings"


def _untiled(rewriter: Rewriter) -> Sequence[Any] | None:
    op = rewriter.op
    if _NAME not in op.attributes or not len(op.attributes[_NAME]):
        return None
    rewriter.without.append(_NAME)
    return rewriter.make_like(list(op.operands), [result.type for result in op.results], without=[_NAME])


RELAXED: Final[Mapping[str, Build]] = {"stablehlo.custom_call": _untiled}
