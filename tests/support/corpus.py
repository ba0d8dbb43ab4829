"""The programs that tests run over: the examples, and one small program for each feature."""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

from vhlo_tools.bindings import get_provider
from vhlo_tools.spec import Feature, known_features, known_versions
from vhlo_tools.version import Version

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FEATURES = ROOT / "tests" / "programs" / "features"


#: How the names of examples begin that other frameworks than JAX made.
FRAMEWORKS = ("keras_", "tensorflow_", "torch_")


def example_programs() -> list[Path]:
    """Return the examples that JAX made, of every kind of content, which the library writes as they are."""
    folders = (EXAMPLES, EXAMPLES / "jax_store")
    programs = (path for each in folders for path in each.iterdir() if path.suffix in (".mlir", ".bc", ".jax_export"))
    return sorted(path for path in programs if not path.name.startswith(FRAMEWORKS))


def framework_examples() -> list[Path]:
    """Return the examples that other frameworks made; what they compute is compared with them in tests/frontends."""
    return sorted(path for path in EXAMPLES.iterdir() if path.name.startswith(FRAMEWORKS))


def writable_versions() -> list[Version]:
    """Return the minor versions that the installed library writes."""
    current = get_provider().library.current
    return [entry.version for entry in known_versions() if entry.version <= current]


def some_versions(name: str, *wanted: Version) -> list[Version]:
    """Return a quarter of the versions that the installed library writes, of which every name gets its own.

    Over many programs all versions come up, and a suite takes minutes less than with all of them for each.
    ``VHLO_TOOLS_EVERY_VERSION=1`` in the environment gives all.

    Args:
        name: The program.
        *wanted: Versions that shall be among them, beside the oldest and the newest.
    """
    versions = writable_versions()
    if os.environ.get("VHLO_TOOLS_EVERY_VERSION"):
        return versions
    quarter = versions[crc32(name.encode()) % 4 :: 4]
    return sorted({*quarter, *(each for each in wanted if each in versions), versions[0], versions[-1]})


def around(feature: Feature) -> tuple[Version, Version]:
    """Return the version that brought a feature, and the one before."""
    versions = writable_versions()
    return feature.introduced, max(each for each in versions if each < feature.introduced)


def features_of_library() -> list[Feature]:
    """Return the features that the installed library has and that one program shows."""
    current = get_provider().library.current
    return [
        feature
        for feature in known_features()
        if feature.introduced <= current and (FEATURES / f"{feature.id}.mlir").exists()
    ]
