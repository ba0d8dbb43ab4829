"""The attribute ``result_accuracy`` of exponential, introduced in 1.9.0.

It means the same as that of the other elementary functions: :mod:`vhlo_tools.expansion.result_accuracy` says why the
only expansion is the relaxed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vhlo_tools.expansion.result_accuracy import without_accuracy
from vhlo_tools.rewriting import Build

RELAXED: Final[Mapping[str, Build]] = {"stablehlo.exponential": without_accuracy}
