"""The model of ``dialect_specs/``: versions, releases, features, ops, enums and defaults as data.

Nothing here knows a version by number; adding VHLO 1.23 is an edit of the data.
"""

from vhlo_tools.dialect.defaults import Default, known_default, known_defaults
from vhlo_tools.dialect.encodings import (
    Encoding,
    EntryKind,
    Field,
    Spelling,
    encodings_of,
    foreign_encodings,
    known_dialects,
    spellings_of,
)
from vhlo_tools.dialect.enums import Enum, EnumCase, find_enum, known_enums
from vhlo_tools.dialect.explanations import Explanation, explanation_of, known_explanations
from vhlo_tools.dialect.features import Feature, known_feature, known_features
from vhlo_tools.dialect.ops import Constraint, Op, OpVersion, Slot, Step, find_op, find_op_version, known_ops
from vhlo_tools.dialect.properties import PropertySlot, property_slots
from vhlo_tools.dialect.releases import Release, known_releases
from vhlo_tools.dialect.specification import Specification, known_specification, load_specification
from vhlo_tools.dialect.versions import (
    VersionEntry,
    bytecode_version_of,
    known_versions,
    minimum_version,
    newest_version,
)

__all__ = [
    "Constraint",
    "Default",
    "Encoding",
    "EntryKind",
    "Enum",
    "EnumCase",
    "Explanation",
    "Feature",
    "Field",
    "Op",
    "OpVersion",
    "PropertySlot",
    "Release",
    "Slot",
    "Specification",
    "Spelling",
    "Step",
    "VersionEntry",
    "bytecode_version_of",
    "encodings_of",
    "explanation_of",
    "find_enum",
    "find_op",
    "find_op_version",
    "foreign_encodings",
    "known_default",
    "known_defaults",
    "known_dialects",
    "known_enums",
    "known_explanations",
    "known_feature",
    "known_features",
    "known_ops",
    "known_releases",
    "known_specification",
    "known_versions",
    "load_specification",
    "minimum_version",
    "newest_version",
    "property_slots",
    "spellings_of",
]
