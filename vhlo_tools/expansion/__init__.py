"""Expansions: rewrites of newer features into older ones, each in a module of patterns.

``dialect_specs/vhlo/features.toml`` declares them beside their features, with the name of their module in this room.
Its ``EXACT`` and ``RELAXED`` are patterns by the names of ops.
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.expansion.expanding import Expanded, Refusal, expand_module
else:
    __getattr__, __dir__ = lazy_exports(__name__)
