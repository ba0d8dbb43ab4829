"""Model of ``dialect_specs/``: versions, releases, features, ops, encodings, and steps between versions."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.spec.data import files_in, read_entries
    from vhlo_tools.spec.devices import DeviceKind, Topology, topology_of
    from vhlo_tools.spec.encodings import (
        CodesBeside,
        DialectBeside,
        Encoding,
        EntryKind,
        Enum,
        EnumCase,
        Field,
        Spelling,
        dialects_beside,
        encodings_of,
        field_text,
        find_enum,
        foreign_encodings,
        known_dialects,
        known_enums,
        spellings_of,
    )
    from vhlo_tools.spec.features import Effect, Expansion, Feature, known_feature, known_features, known_verifiers
    from vhlo_tools.spec.ops import (
        Constraint,
        Default,
        Op,
        OpStep,
        OpVersion,
        PropertySlot,
        Slot,
        Structure,
        find_op,
        find_op_version,
        known_default,
        known_defaults,
        known_ops,
        property_slots,
    )
    from vhlo_tools.spec.releases import (
        ExpansionConfirmation,
        Explanation,
        JaxExportPart,
        JaxRelease,
        Promise,
        Release,
        VersionEntry,
        WindowName,
        bytecode_version_of,
        explanation_of,
        first_release,
        is_newer_than_data,
        known_confirmations,
        known_explanations,
        known_jax_export_parts,
        known_jax_releases,
        known_promises,
        known_releases,
        known_versions,
        minimum_version,
        newest_version,
        promised,
    )
    from vhlo_tools.spec.specification import (
        ENCODING_KINDS,
        Specification,
        SpecificationEntry,
        defaults_of,
        known_specification,
        load_specification,
        structures_in,
    )
    from vhlo_tools.spec.version_steps import (
        OpStructure,
        blockers,
        constraint_text,
        downgrade,
        floor_of,
        life_text,
        step_texts,
        upgrade,
    )
else:
    __getattr__, __dir__ = lazy_exports(__name__)
