"""Rewriting of ops: patterns, the rewriter that builds replacements, and the driver that applies patterns."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.rewriting.index_dimensions import dimension_numbers, dimension_numbers_text
    from vhlo_tools.rewriting.notes import REWRITTEN, Notes
    from vhlo_tools.rewriting.patterns import (
        Build,
        Pattern,
        Refuse,
        UnmatchedOpError,
        apply_patterns,
        discardable,
        lost,
        patterns_of,
    )
    from vhlo_tools.rewriting.quantized_values import (
        Quantization,
        dequantized,
        quantization_of,
        quantized,
        stored_constant,
    )
    from vhlo_tools.rewriting.retyping import retype, values_of
    from vhlo_tools.rewriting.rewriter import DIMENSION_BITS, MatchFailure, Rewriter
    from vhlo_tools.rewriting.shardy import (
        SHARDY,
        ShardyAttribute,
        drop_shardy,
        has_several_devices,
        is_of_shardy,
        is_readable,
        replace_shardy,
        shardy_attributes,
    )
    from vhlo_tools.rewriting.tensor import Tensor, concatenate, constant_like, iota, loop, select, spread, tensors
else:
    __getattr__, __dir__ = lazy_exports(__name__)
