"""Model of ``dialect_specs/``: versions, releases, features, ops, enums and defaults as data.

No version number is hard-coded here; adding VHLO 1.23 is an edit of the data.
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.dialect.checkout import TableGen, find_tablegen, survey_checkout
    from vhlo_tools.dialect.confirmations import ExpansionConfirmation, known_confirmations
    from vhlo_tools.dialect.cutting import cut
    from vhlo_tools.dialect.defaults import Default, Structure, known_default, known_defaults
    from vhlo_tools.dialect.description import describe
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
    from vhlo_tools.dialect.features import Effect, Expansion, Feature, known_feature, known_features
    from vhlo_tools.dialect.jax_exports import JaxExportPart, JaxRelease, known_jax_export_parts, known_jax_releases
    from vhlo_tools.dialect.linting import has_release, lint, write_release
    from vhlo_tools.dialect.ops import Constraint, Op, OpStep, OpVersion, Slot, find_op, find_op_version, known_ops
    from vhlo_tools.dialect.promises import Promise, WindowName, known_promises, promised
    from vhlo_tools.dialect.property_layout import PropertySlot, property_slots
    from vhlo_tools.dialect.releases import Release, first_release, known_releases
    from vhlo_tools.dialect.rules import RULES, Violation
    from vhlo_tools.dialect.scaffold import (
        NewEntry,
        Plan,
        parse_attribute,
        parse_case,
        parse_kind,
        parse_op,
        plan_version,
        write_edits,
    )
    from vhlo_tools.dialect.specification import (
        Specification,
        SpecificationEntry,
        known_specification,
        load_specification,
        structures_in,
    )
    from vhlo_tools.dialect.survey import Comparison, Difference, Survey, Unread, compare, draft
    from vhlo_tools.dialect.version_diff import Change, diff
    from vhlo_tools.dialect.version_steps import OpStructure, blockers, downgrade, floor_of, upgrade
    from vhlo_tools.dialect.versions import (
        VersionEntry,
        bytecode_version_of,
        is_newer_than_data,
        known_versions,
        minimum_version,
        newest_version,
    )
    from vhlo_tools.dialect.wording import life_text
else:
    __getattr__, __dir__ = lazy_exports(__name__)
