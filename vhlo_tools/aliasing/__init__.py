"""Input-output aliasing: the outputs of a program that may be written over inputs.

One model, :class:`AliasConfig`, with the rules of XLA, and its forms in MLIR and HLO. No MLIR is needed.
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.aliasing.attributes import (
        ARGUMENT_ATTRIBUTES,
        MODULE_ATTRIBUTES,
        AliasAttributes,
        AliasStore,
        CallAliases,
        NamedValue,
        Other,
        Plain,
        ProgramAliases,
        Unit,
        declared_in,
        describe,
        encode_aliases,
        encode_call,
        entry_name,
        fits,
        read_call,
        read_declared,
        set_aliases,
    )
    from vhlo_tools.aliasing.config import (
        Alias,
        AliasConfig,
        AliasKind,
        AliasViolation,
        Declared,
        Donor,
        Form,
        Problem,
        Rule,
        compiled_aliases,
        format_aliases,
        format_donors,
        parse_aliases,
        parse_donors,
        violations,
    )
    from vhlo_tools.aliasing.rules import (
        ALIAS_FEATURES,
        DROPPED,
        call_violations,
        compare_aliases,
        finding_of,
        lint_aliases,
    )
    from vhlo_tools.aliasing.shapes import (
        ELEMENT_BITS,
        Array,
        Opaque,
        Shape,
        ShapeIndex,
        Signature,
        Tuple,
        format_index,
        leaves,
        subshape,
    )
else:
    __getattr__, __dir__ = lazy_exports(__name__)
