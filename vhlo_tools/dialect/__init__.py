"""The model of ``dialect_specs/``: versions, releases and features as data.

Nothing here knows a version by number; adding VHLO 1.23 is an edit of the data.
"""

from vhlo_tools.dialect.encodings import (
    Encoding,
    EntryKind,
    Field,
    Spelling,
    encodings_of,
    known_dialects,
    spellings_of,
)
from vhlo_tools.dialect.features import Feature, known_feature, known_features
from vhlo_tools.dialect.releases import Release, known_releases
from vhlo_tools.dialect.versions import (
    VersionEntry,
    bytecode_version_of,
    known_versions,
    minimum_version,
    newest_version,
)

__all__ = [
    "Encoding",
    "EntryKind",
    "Feature",
    "Field",
    "Release",
    "Spelling",
    "VersionEntry",
    "bytecode_version_of",
    "encodings_of",
    "known_dialects",
    "known_feature",
    "known_features",
    "known_releases",
    "known_versions",
    "minimum_version",
    "newest_version",
    "spellings_of",
]
