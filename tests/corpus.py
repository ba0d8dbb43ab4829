"""The programs that tests run over: the examples, and one small program for each feature."""

from __future__ import annotations

from pathlib import Path

from vhlo_tools.bindings import get_provider
from vhlo_tools.dialect import Feature, known_features, known_versions
from vhlo_tools.version import Version

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
FEATURES = ROOT / "tests" / "programs" / "features"


def example_programs() -> list[Path]:
    """Return the examples, of every kind of content."""
    folders = (EXAMPLES, EXAMPLES / "jax_store")
    return sorted(path for each in folders for path in each.iterdir() if path.suffix in (".mlir", ".bc", ".jax_export"))


def writable_versions() -> list[Version]:
    """Return the minor versions that the installed library writes."""
    current = get_provider().library.current
    return [entry.version for entry in known_versions() if entry.version <= current]


def features_of_library() -> list[Feature]:
    """Return the features that the installed library has and that one program shows."""
    current = get_provider().library.current
    return [
        feature
        for feature in known_features()
        if feature.introduced <= current and (FEATURES / f"{feature.id}.mlir").exists()
    ]
