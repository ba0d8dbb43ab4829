"""Pages to look at: a program with its time line, its graph, its constants and its findings."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Unpack

from vhlo_tools.api.checking import prepare_check
from vhlo_tools.api.conversion import resolve_target
from vhlo_tools.dialect import minimum_version
from vhlo_tools.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from vhlo_tools.pages import Page
    from vhlo_tools.program import CheckOptions, ProgramSource
    from vhlo_tools.version import Version

__all__ = ["report"]


def report(
    program: ProgramSource,
    target: str | Version | None = None,
    *,
    as_of: date | None = None,
    **options: Unpack[CheckOptions],
) -> Page:
    """Return a page that shows a program: one HTML file, which asks nothing of any network.

    It has the versions that brought what is in the program, the releases that read it, what blocks where and what an
    expansion would do; the graph of its ops, folded by function, region and source line; its constants, inputs, outputs
    and aliases; and the findings.

    Args:
        program: Anything that :func:`vhlo_tools.serialize` accepts. An artifact is read from its bytes, without MLIR;
            of other programs, an artifact of the newest version is shown.
        target: The consumer that the findings are about, in the target grammar; by default the oldest version, so that
            everything that is newer is listed.
        as_of: The day for which the page is made, on which windows in ``target`` end; by default today.
        options: As for :func:`vhlo_tools.check`.

    Returns:
        The page; :meth:`Page.save` writes it.

    Raises:
        InvalidProgramError: If it is not a valid program.
        MalformedArtifactError: If it is a damaged artifact.
        UnsupportedFeatureError: If no artifact can represent it; the findings say why.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If the target looks like a version but is not valid.
    """
    # Imported here because few calls make pages.
    from vhlo_tools.pages import assembled, program_contents

    resolved = None
    if target is not None:
        resolved = resolve_target(str(target), as_of=as_of, provider=options.get("provider"))
    checked = prepare_check(program, **options)
    if checked.artifact is None:
        name = options.get("name") or "the program"
        raise UnsupportedFeatureError(f"{name} cannot be shown: no artifact can represent it", checked.general)
    contents = program_contents(
        checked.artifact,
        checked.findings(minimum_version() if resolved is None else resolved.version),
        name=options.get("name"),
        target=None if resolved is None else resolved.version,
        target_text="" if target is None else str(target),
        today=as_of or date.today(),
    )
    return assembled("program", contents)
