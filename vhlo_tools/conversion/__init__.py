"""Conversion: MLIR to artifacts and back, and the rewriting, legalization and expansion that this takes."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.conversion.expansion.expanding import Expanded, Refusal, expand_module
    from vhlo_tools.conversion.fidelity import ChangedForm, changed_attributes, changed_forms
    from vhlo_tools.conversion.legalizing import legalize_scans, legalizes_scans, make_plain, make_portable
    from vhlo_tools.conversion.patterns import (
        Build,
        Pattern,
        Refuse,
        UnmatchedOpError,
        apply_patterns,
        discardable,
        lost,
        patterns_of,
    )
    from vhlo_tools.conversion.rewriter import (
        DIMENSION_BITS,
        REWRITTEN,
        MatchFailure,
        Notes,
        Rewriter,
        retype,
        values_of,
    )
    from vhlo_tools.conversion.serialization import (
        LibraryRetargeting,
        deserialize_artifact,
        hlo_of_artifact,
        newest_artifact,
        print_module,
        serialize_program,
    )
    from vhlo_tools.conversion.shardy import (
        SHARDY,
        ShardyAttribute,
        drop_shardy,
        has_several_devices,
        is_of_shardy,
        is_readable,
        replace_shardy,
        shardy_attributes,
    )
    from vhlo_tools.conversion.tensor import (
        Quantization,
        Tensor,
        concatenate,
        constant_like,
        dequantized,
        dimension_numbers,
        dimension_numbers_text,
        iota,
        loop,
        quantization_of,
        quantized,
        select,
        spread,
        stored_constant,
        tensors,
    )
else:
    __getattr__, __dir__ = lazy_exports(__name__)
