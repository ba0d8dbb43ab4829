"""What the compiler of an accelerator makes of a program, with no accelerator there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from vhlo_tools.api.conversion import retarget, serialize
from vhlo_tools.api.frontends import as_artifact
from vhlo_tools.api.releases import install_releases
from vhlo_tools.program import LoadOptions, ProgramSource
from vhlo_tools.releases import Say, silent

if TYPE_CHECKING:
    from vhlo_tools.releases import Compilation


def compile_for(
    program: ProgramSource,
    release: str,
    *,
    target: str | None = None,
    say: Say = silent,
    **options: Unpack[LoadOptions],
) -> Compilation:
    """Compile a program for an accelerator, with the compiler of a real release, in an environment of its own.

    >>> import vhlo_tools as vt
    >>> compiled = vt.compile_for("examples/saxpy.mlir", "libtpu==0.0.52@v5e")  # doctest: +SKIP
    >>> compiled.memory["temporary"]  # doctest: +SKIP
    0

    Args:
        program: Anything that :func:`vhlo_tools.serialize` accepts.
        release: The release of a plugin, and the device: ``libtpu==0.0.52@v5e:2x2`` or
            ``jax-cuda13-pjrt==0.12.0.1@h100``; without a device, one of its kind, or as many as the program is for.
        target: The version to write for; by default what the release reads. An artifact is compiled as it is.
        say: Is told if an environment is made.
        options: See :class:`vhlo_tools.program.LoadOptions`.

    Raises:
        DowngradeError: If the program needs features newer than the release reads.
        InvalidProgramError: If the compiler refuses the program, for the reason that it gives.
        ReleaseEnvironmentError: If the release cannot be had, is no compiler, or ends or hangs.
        VhloToolsError: If the program is not valid.
    """
    from vhlo_tools.releases import compile_by

    artifact = as_artifact(program, options.get("name"))
    if artifact is None:
        artifact = serialize(program, target or release, **options)
    elif target is not None:
        artifact = retarget(artifact, target)
    install_releases([release], say)
    return compile_by(release, artifact)
