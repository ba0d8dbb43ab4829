"""The attribute ``result_accuracy`` of elementary functions other than exponential, introduced in 1.10.0.

The attribute asks for the most accurate implementation of the op (``HIGHEST``), or for one whose error is within a
tolerance (``TOLERANCE``)::

    |expected - found| <= max(|expected| * max(rtol, ulps * epsilon), atol)

A consumer that cannot satisfy it reports an error. The mode ``DEFAULT`` asks for nothing: a downgrade drops it by
itself.

No other value has an exact expansion. An op without the attribute promises no accuracy at all, so that there is no
tolerance, however large, of which it is known that the plain op satisfies it. The relaxed expansion drops the
attribute.

Source: ``rfcs/20241015-result-accuracy.md`` of openxla/stablehlo for the inequality, and for what the plain op
promises, the section "Accuracy" of its specification: "does not provide guarantees about numerical accuracy".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.rewriting import Build, Rewriter

_OPS: Final = (
    "cbrt",
    "cosine",
    "exponential_minus_one",
    "log",
    "log_plus_one",
    "logistic",
    "rsqrt",
    "sine",
    "sqrt",
    "tan",
    "tanh",
)


def asked_accuracy(rewriter: Rewriter) -> str | None:
    """``None`` if the op asks for none, as by ``DEFAULT``."""
    attributes = rewriter.op.attributes
    text = str(attributes["result_accuracy"]) if "result_accuracy" in attributes else ""
    return text if "<HIGHEST>" in text or "<TOLERANCE>" in text else None


def without_accuracy(rewriter: Rewriter) -> Sequence[Any] | None:
    if asked_accuracy(rewriter) is None:
        return None
    types = [result.type for result in rewriter.op.results]
    return rewriter.make_like(rewriter.operands(), types, result_accuracy=None)


RELAXED: Final[Mapping[str, Build]] = {f"stablehlo.{name}": without_accuracy for name in _OPS}
