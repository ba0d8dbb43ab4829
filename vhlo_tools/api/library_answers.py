"""Answers of the installed library about programs and targets that are newer than the specification.

A specification can be older than the library, as on the day of a new release. Its facts then still hold; later ones are
known to the library alone, and only writing shows whether an op may stand at an older version.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vhlo_tools.errors import DowngradeError, UnsupportedFeatureError, VhloToolsError
from vhlo_tools.findings import NEWER_THAN_DATA, Finding
from vhlo_tools.spec import is_newer_than_data, newest_version

if TYPE_CHECKING:
    from vhlo_tools.artifact import Artifact
    from vhlo_tools.version import Version


def findings_with_library(
    artifact: Artifact, target: Version, *, provider: str | None = None, trusted: bool = False
) -> list[Finding]:
    """Return the findings of an artifact at a target; what the specification does not have, the library is asked.

    It is asked to write the program at the target. Where it does, whatever is unknown is no obstacle; where it refuses,
    its reasons are among the findings.

    Args:
        artifact: The artifact.
        target: The target version.
        provider: The bindings to use, by default the installed ones.
        trusted: Whether MLIR may parse the artifact directly in this process.

    Returns:
        The findings of :meth:`vhlo_tools.compat.Requirements.findings` where the specification has both versions.
        Otherwise those of the library, with a note that it was asked about something unknown, or about a version that
        the specification does not have; or, if no library can be asked, what is unknown, and that it is.
    """
    found = artifact.requirements().findings(target)
    beyond = is_newer_than_data(target)
    if artifact.version.minor_release == target.minor_release or not (beyond or _is_open(found)):
        return found
    refused = _refusals(artifact, target, provider, trusted)
    if refused is None:
        return [*found, *([] if _is_open(found) else [_left_to_library(target)])]
    names = sorted({each.feature for each in found if each.unknown and each.feature != NEWER_THAN_DATA})
    known = [each for each in found if each.level != "error" and not each.unknown]
    # Those of the library have all errors of the specification too.
    told = [_asked(target, names, provider)] if beyond or names else []
    return [*refused, *known, *told]


def reader_findings_with_library(
    artifact: Artifact, reader: Version, *, provider: str | None = None, trusted: bool = False
) -> list[Finding]:
    """Return the reasons why a reader of a version rejects an artifact as it is.

    Where the artifact is newer than the specification, the library is asked whether all that is in the program was
    there at that version. What is unknown remains an error, because it stands in the bytes.

    Args:
        artifact: The artifact.
        reader: The version of the reader.
        provider: The bindings to use, by default the installed ones.
        trusted: Whether MLIR may parse the artifact directly in this process.
    """
    found = artifact.requirements().reader_findings(reader)
    unsure = [each for each in found if each.feature == NEWER_THAN_DATA]
    if not unsure or any(each.level == "error" for each in found):
        return found
    refused = _refusals(artifact, reader, provider, trusted)
    return found if refused is None else [*refused, *(each for each in found if each not in unsure)]


def _refusals(artifact: Artifact, target: Version, provider: str | None, trusted: bool) -> list[Finding] | None:
    """Return the reasons of the library not to write an artifact at a version; ``None`` if it cannot be asked."""
    # Imported here because hardly any check needs MLIR.
    from vhlo_tools.conversion import LibraryRetargeting

    try:
        moved = LibraryRetargeting(str(target), {}, None, provider, trusted).if_it_can(artifact)
    except (DowngradeError, UnsupportedFeatureError) as error:
        return [replace(each, target=target) for each in error.findings]
    except VhloToolsError:
        # Whatever else is wrong with the file is told by what reads it.
        return None
    return None if moved is None else []


def _is_open(found: list[Finding]) -> bool:
    """Whether somebody who knows newer versions could decide more."""
    return any(each.unknown for each in found)


def _left_to_library(target: Version) -> Finding:
    message = (
        f"StableHLO {target} is newer than {newest_version()}, where the data of vhlo_tools end: that its readers "
        "accept older programs is its promise, and was not examined"
    )
    remedy = f"update vhlo_tools; or install a library with StableHLO {target} or later, which is then asked"
    return Finding(NEWER_THAN_DATA, "note", "encoding", message, target=target, remedy=remedy, unknown=True)


def _asked(target: Version, names: list[str], provider: str | None) -> Finding:
    from vhlo_tools.bindings import get_provider

    library = get_provider(provider).library
    unknown = f", and do not have {', '.join(names)}" if names else ""
    message = (
        f"the data of vhlo_tools end at StableHLO {newest_version()}{unknown}: {library.name}, with {library.current}, "
        f"was asked about {target}"
    )
    return Finding(NEWER_THAN_DATA, "note", "encoding", message, target=target, unknown=True)
