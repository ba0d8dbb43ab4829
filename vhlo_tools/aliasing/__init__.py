"""Input-output aliasing: the outputs of a program that may be written over inputs.

One model, :class:`AliasConfig`, with the rules of XLA, and its forms in MLIR and HLO. No MLIR is needed.
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.aliasing.alias_attributes import (
        ARGUMENT_ATTRIBUTES,
        MODULE_ATTRIBUTES,
        AliasAttributes,
        encode_aliases,
        encode_call,
        fits,
        read_call,
        read_declared,
    )
    from vhlo_tools.aliasing.alias_entries import Alias, AliasKind, Donor
    from vhlo_tools.aliasing.alias_lint import ALIAS_FEATURES, DROPPED, finding_of, lint_aliases
    from vhlo_tools.aliasing.alias_store import AliasStore, declared_in, entry_name, set_aliases
    from vhlo_tools.aliasing.attribute_values import Other, Plain, Unit, describe
    from vhlo_tools.aliasing.call_rules import call_violations
    from vhlo_tools.aliasing.config import AliasConfig, AliasViolation, Rule, violations
    from vhlo_tools.aliasing.declared import Declared, Form, Problem
    from vhlo_tools.aliasing.donor_matching import compiled_aliases
    from vhlo_tools.aliasing.hlo_form import format_aliases, format_donors, parse_aliases, parse_donors
    from vhlo_tools.aliasing.preservation import compare_aliases
    from vhlo_tools.aliasing.program_aliases import CallAliases, NamedValue, ProgramAliases
    from vhlo_tools.aliasing.shapes import (
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
