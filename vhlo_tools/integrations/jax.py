"""Functions of JAX, and the files that ``jax.export`` keeps them in.

:func:`export` needs jax; what reads and changes files does not, and works on their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

from vhlo_tools.artifact import Artifact, Buffer, JaxContainer, decode_jax_export, read_signature
from vhlo_tools.compat import Library, resolve_target
from vhlo_tools.files import write_atomically
from vhlo_tools.integrations.donations import dropped_donations
from vhlo_tools.integrations.extras import require_extra
from vhlo_tools.version import Version

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


@dataclass(frozen=True, slots=True)
class JaxProgram:
    """A function of JAX as ``jax.export`` keeps it.

    Attributes:
        exported: What jax made, a ``jax.export.Exported``, at the version that jax chose.
        serialized: The bytes of the jax.export file, at the version that was asked for.
        artifact: The artifact in it.
    """

    exported: Any
    serialized: bytes
    artifact: Artifact

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the jax.export file, which ``jax.export.deserialize`` reads; ``artifact.save`` writes the artifact.

        Args:
            path: Where.
            force: Whether an existing file may be replaced.

        Raises:
            FileExistsError: If ``path`` exists and ``force`` is not set.
            OSError: If it cannot be written.
        """
        write_atomically(Path(path), [self.serialized], force=force)


def export(
    fn: Callable[..., Any],
    *args: Any,
    target: str | Version | None = None,
    donate_argnums: int | Sequence[int] = (),
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[Any] = (),
    vjp_order: int = 0,
    as_of: date | None = None,
    provider: str | None = None,
    **kwargs: Any,
) -> JaxProgram:
    """Export a function of JAX for a version of StableHLO, or for what is to read it.

    Donated arguments are marked in the artifact where an output can have their memory (``tf.aliasing_output``), or may
    (``jax.buffer_donor``); its findings tell which donations jax dropped. Mistakes in ``fn`` and its arguments are
    reported by jax itself.

    Args:
        fn: The function; one that ``jax.jit`` made keeps its settings.
        *args: Its arguments, or what stands for them: ``jax.ShapeDtypeStruct``, also with symbolic dimensions.
        target: In the grammar of targets; by default the version that jax writes.
        donate_argnums: Which of ``args`` give their memory away.
        platforms: What to lower it for, by default the platform that jax runs on.
        disabled_checks: The ``jax.export.DisabledSafetyCheck`` that are left out.
        vjp_order: How many derivatives go with it.
        as_of: The day that windows in ``target`` count back from, by default today.
        provider: The bindings that answer for ``current``, ``WEEK_4`` and their like.
        **kwargs: Its arguments by name.

    Raises:
        MissingExtraError: If jax, or flatbuffers, with which it writes files, is not installed.
        DowngradeError: If the function, or a derivative of it, needs what the target does not have.
        UnsupportedFeatureError: If it holds what is gone by then.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If the target looks like a version and is none.
    """
    require_extra("jax", "exporting a function of JAX", "jax", "flatbuffers")
    # This module is of the same name, and imports are absolute.
    import jax
    import jax.export

    version = None if target is None else _resolved(target, as_of, provider)
    donated = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
    jitted = fn if isinstance(fn, jax.stages.Wrapped) and not donated else jax.jit(fn, donate_argnums=donated)
    exported = jax.export.export(jitted, platforms=platforms, disabled_checks=disabled_checks)(*args, **kwargs)
    name = str(exported.fun_name)
    container = JaxContainer(bytes(exported.serialize(vjp_order=vjp_order)), name=name)
    if version is not None and version != container.version:
        container = container.retargeted(version)
    artifact = container.artifacts[0]
    traced = jitted.trace(*args, **kwargs)
    dropped = dropped_donations(artifact, traced.args_info, exported.module_kept_var_idx)
    return JaxProgram(exported, bytes(container), artifact.with_findings([*artifact.findings, *dropped]))


def open_export(source: JaxSource, *, name: str | None = None) -> JaxContainer:
    """Open a jax.export file, without jax; a large one is mapped into memory.

    Args:
        source: A path, the bytes of the file, or what this returned before.
        name: What to call it in messages, by default its path.

    Raises:
        MalformedArtifactError: If it is none, or a damaged one.
        OSError: If the file cannot be read.
    """
    return JaxContainer.open(source, name=name)


def retarget(
    source: JaxSource, target: str | Version, *, as_of: date | None = None, provider: str | None = None
) -> JaxContainer:
    """Move the artifacts in a jax.export file up or down to another version, and leave the rest of it as it is.

    Neither jax nor MLIR is needed, and no constants are held: the ``save`` of the result copies them from file to file.

    Args:
        source: The file, its path or its bytes.
        target: The version to move to, or what is to read it, in the grammar of targets.
        as_of: The day that windows in ``target`` count back from, by default today.
        provider: The bindings that answer for ``current``, ``WEEK_4`` and their like.

    Raises:
        DowngradeError: If an artifact holds what the target does not have; with the findings of all artifacts.
        UnsupportedFeatureError: If one holds what is gone by then, or what cannot be moved in bytes.
        MalformedArtifactError: If it is no jax.export file, or a damaged one.
        InvalidProgramError: If the result would be larger than such a file can be.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If the target looks like a version and is none.
    """
    return JaxContainer.open(source).retargeted(_resolved(target, as_of, provider))


def strip(source: JaxSource) -> JaxContainer:
    """Return a jax.export file without the source locations of its artifacts. Neither jax nor MLIR is needed.

    Args:
        source: The file, its path or its bytes.

    Raises:
        MalformedArtifactError: If it is no jax.export file, or a damaged one.
    """
    return JaxContainer.open(source).stripped()


def _resolved(target: str | Version, as_of: date | None, provider: str | None) -> Version:
    def library() -> Library:
        # Few targets ask for it.
        from vhlo_tools.bindings import get_provider

        return get_provider(provider).library

    return resolve_target(str(target), library, as_of=as_of).specified().version
