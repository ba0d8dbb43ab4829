"""Input-output aliasing: which outputs of a program may be written over which inputs.

One model, :class:`AliasConfig`, with the rules of XLA, and the spellings of it. No MLIR is needed.
"""

from vhlo_tools.aliasing.calls import call_violations
from vhlo_tools.aliasing.comparison import compare_aliases
from vhlo_tools.aliasing.config import Alias, AliasConfig, AliasKind, Donor, Rule, Violation, violations
from vhlo_tools.aliasing.declared import Declared, Form, Problem
from vhlo_tools.aliasing.hlo_form import format_aliases, format_donors, parse_aliases, parse_donors
from vhlo_tools.aliasing.lint import ALIAS_FEATURES, DROPPED, finding_of, lint_aliases
from vhlo_tools.aliasing.matching import compiled_aliases
from vhlo_tools.aliasing.program import CallAliases, NamedValue, ProgramAliases
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
from vhlo_tools.aliasing.spellings import (
    ARGUMENT_ATTRIBUTES,
    MODULE_ATTRIBUTES,
    Spelled,
    fits,
    read_call,
    read_declared,
    spell,
    spell_call,
)
from vhlo_tools.aliasing.values import Other, Plain, Unit, describe

__all__ = [
    "ALIAS_FEATURES",
    "ARGUMENT_ATTRIBUTES",
    "DROPPED",
    "MODULE_ATTRIBUTES",
    "Alias",
    "AliasConfig",
    "AliasKind",
    "Array",
    "CallAliases",
    "Declared",
    "Donor",
    "Form",
    "NamedValue",
    "Opaque",
    "Other",
    "Plain",
    "Problem",
    "ProgramAliases",
    "Rule",
    "Shape",
    "ShapeIndex",
    "Signature",
    "Spelled",
    "Tuple",
    "Unit",
    "Violation",
    "call_violations",
    "compare_aliases",
    "compiled_aliases",
    "describe",
    "finding_of",
    "fits",
    "format_aliases",
    "format_donors",
    "format_index",
    "leaves",
    "lint_aliases",
    "parse_aliases",
    "parse_donors",
    "read_call",
    "read_declared",
    "spell",
    "spell_call",
    "subshape",
    "violations",
]
