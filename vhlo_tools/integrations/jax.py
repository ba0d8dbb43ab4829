"""Export of JAX functions, and jax.export files.

Only :func:`export` needs jax, and loads the bindings; the functions that read and change files work on their bytes.
"""

from __future__ import annotations

from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Any

from vhlo_tools.artifact import JaxContainer
from vhlo_tools.compat import AllowRelaxed, Expand, Library, Target, expansion_policy, resolve_target
from vhlo_tools.files import Buffer, decode_jax_export, read_signature
from vhlo_tools.spec import is_newer_than_data
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.integrations.jax_export import JaxProgram, export
    from vhlo_tools.program import ExpandOptions

__all__ = [
    "JaxContainer",
    "JaxProgram",
    "decode_jax_export",
    "export",
    "open_export",
    "read_signature",
    "retarget",
    "strip",
]

JaxSource = str | PathLike[str] | Buffer | JaxContainer

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load the names that need jax on their first use."""
        if name not in ("JaxProgram", "export"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from vhlo_tools.integrations import jax_export

        return getattr(jax_export, name)


def resolved_target(target: str | Version, as_of: date | None, provider: str | None) -> Target:
    """The bindings are loaded only for targets that refer to them."""

    def library() -> Library:
        from vhlo_tools.bindings import get_provider

        return get_provider(provider).library

    return resolve_target(str(target), library, as_of=as_of).specified(library)


def open_export(source: JaxSource, *, name: str | None = None) -> JaxContainer:
    """Open a jax.export file, without jax; a large one is read on access."""
    return JaxContainer.open(source, name=name)


def retarget(
    source: JaxSource,
    target: str | Version,
    *,
    expand: Expand = False,
    allow_relaxed: AllowRelaxed = (),
    as_of: date | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> JaxContainer:
    """Retarget the artifacts in a jax.export file to an older or newer version, and keep the rest of it unchanged.

    Neither jax nor, without expansions, MLIR is needed, and constants are not loaded: ``save`` of the result copies
    them from file to file. If ``target`` names a release of jax or jaxlib that does not read the file around the
    artifacts, the result has a warning among its ``findings``.

    Args:
        source: The file, its path or its bytes.
        target: The target version or consumer, in the target grammar.
        expand: Which features newer than the target are rewritten in artifacts that cannot be retargeted as they are,
            as for :func:`vhlo_tools.retarget`.
        allow_relaxed: Those that may be rewritten with something given up.
        as_of: The day from which windows in ``target`` count back, by default today.
        provider: The bindings for expansions, which also define ``current``, ``WEEK_4`` and similar targets.
        trusted: Whether MLIR may parse an artifact directly in this process, as for :func:`vhlo_tools.retarget`.

    Raises:
        DowngradeError: If an artifact needs a feature newer than the target; with the findings of all artifacts.
        UnsupportedFeatureError: If an artifact contains a feature that the target no longer has, or that cannot be
            retargeted on bytes.
        MalformedArtifactError: If it is not a jax.export file, or a damaged one.
        InvalidProgramError: If the result would exceed the maximum size of a jax.export file.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If the target looks like a version but is not valid.
        ValueError: If a feature to be expanded is unknown, or has no such expansion.
    """
    resolved = resolved_target(target, as_of, provider)
    container = JaxContainer.open(source).checked_for(resolved.consumers)
    newest = max(resolved.version, *(each.version for each in container.artifacts))
    if not expansion_policy(expand, allow_relaxed) and not is_newer_than_data(newest):
        return container.retargeted(resolved.version)
    # Imported here because bytes need no MLIR.
    from vhlo_tools.conversion import LibraryRetargeting

    # What is newer than the specification is left to the library.
    options: ExpandOptions = {"expand": expand, "allow_relaxed": allow_relaxed}
    moving = LibraryRetargeting(str(target), options, as_of, provider, trusted)
    return container.with_artifacts(moving.with_expansions)


def strip(source: JaxSource) -> JaxContainer:
    """Remove the source locations of the artifacts in a jax.export file. Neither jax nor MLIR is needed."""
    return JaxContainer.open(source).stripped()
