"""Exports of jax for several platforms: ``main`` first takes the number of the platform that it runs on.

Source: ``_wrap_main_func`` in ``jax/_src/export/_export.py`` of jax-ml/jax.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vhlo_tools.api.frontends import as_container
from vhlo_tools.errors import InvalidInputError

if TYPE_CHECKING:
    from vhlo_tools.files import Source
    from vhlo_tools.program import Program

#: Leaves the number of the platform an input.
ANY_PLATFORM: Final = "any"


def for_platform(program: Program, source: Source, platform: str | None) -> Program:
    """Return a program without the argument for the number of the platform, if it has one.

    Args:
        program: The program.
        source: What it was loaded from.
        platform: The platform, :data:`ANY_PLATFORM`, or ``None`` for ``cpu``.

    Raises:
        InvalidInputError: If the program is not exported for the platform.
        MalformedArtifactError: If it is a damaged jax.export file.
    """
    container = as_container(source)
    # Of all objects that are programs, only a jax.export.Exported has platforms.
    platforms = container.platforms if container is not None else tuple(getattr(source.given, "platforms", ()))
    if platform == ANY_PLATFORM or (platform is None and len(platforms) < 2):
        return program
    if not platforms:
        raise InvalidInputError(f"{program.name} is no export of jax: it runs on any platform (platform=, --platform)")
    if (chosen := platform or "cpu") not in platforms:
        raise InvalidInputError(
            f"{program.name} is an export for {' and '.join(platforms)}, not for {chosen}: choose one of these "
            f"(platform=, --platform)"
        )
    if len(platforms) == 1:
        return program
    from vhlo_tools.execution import bind_first_argument

    number = platforms.index(chosen)
    return replace(program, load=lambda: bind_first_argument(program, number))
