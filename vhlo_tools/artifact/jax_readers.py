"""Releases of jax that read a jax.export file, and that wrote it, judged by the file around the artifact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from vhlo_tools.artifact.artifact import Artifact
from vhlo_tools.files import parts_of
from vhlo_tools.findings import Finding
from vhlo_tools.spec import known_jax_export_parts, known_jax_releases, known_releases, newest_version

if TYPE_CHECKING:
    from vhlo_tools.files import JaxExport
    from vhlo_tools.spec import JaxExportPart, JaxRelease, Release
    from vhlo_tools.version import Version

_FAILURES: Final = {"load": "refuses the file", "call": "loads the file and fails to call it"}
#: The parts whose unknown values no known release reads; :func:`parts_of` gives the numbers of such values.
_CLOSED: Final = ("dtype", "memory_space")
_SHARDY: Final = "sdy"
_OUT: Final = "take the artifact out with `vhlo serialize`, which needs no jax"


def container_findings(export: JaxExport, consumers: Iterable[Release]) -> list[Finding]:
    """Return why consumers refuse a jax.export file, or fail to call its function; its artifact is not examined.

    Only consumers that are jax, or jaxlib for the jax that uses it, read such files.
    """
    found: list[Finding] = []
    for consumer in consumers:
        if consumer.package in ("jax", "jaxlib"):
            reader = _release_of(consumer)
            found += [_too_old(consumer)] if reader is None else refusals(export, reader)
    return list(dict.fromkeys(found))


def refusals(export: JaxExport, reader: JaxRelease) -> list[Finding]:
    """Return why a release of jax refuses a jax.export file, or fails to call its function."""
    found = []
    for id_, value in _parts_of(export):
        part = _parts().get((id_, value)) or _parts().get((id_, ""))
        if part is not None and not _reads(reader, part):
            found.append(_finding(part, reader))
        elif part is None and id_ in _CLOSED and value.isdigit():
            found.append(_unknown(id_, value, reader))
    return found


def reading_jax(export: JaxExport, accepts: Callable[[Version], bool]) -> tuple[JaxRelease, ...]:
    """Return the releases that load a file and call its function; ``accepts`` is for the StableHLO of its artifacts."""
    newest = newest_version()
    # A release that is newer than the data is treated as one of the newest version in the data.
    versions = {
        each.release: each.stablehlo if each.stablehlo.minor_release <= newest else newest
        for each in known_releases()
        if each.package == "jaxlib"
    }
    accepted = {version: accepts(version) for version in set(versions.values())}
    return tuple(
        each for each in known_jax_releases() if accepted[versions[each.jaxlib]] and not refusals(export, each)
    )


def first_writer(export: JaxExport) -> JaxRelease | None:
    """Return the release that wrote a file, or the first that writes such files by default.

    The version of the artifact is ignored, because the artifact may have been moved since.
    """
    for release in known_jax_releases():
        if export.jax_version is not None:
            if release.release == export.jax_version:
                return release
        # A release reads what it writes.
        elif _writes(release, export) and not refusals(export, release):
            return release
    return None


def _parts_of(export: JaxExport) -> Iterator[tuple[str, str]]:
    yield from parts_of(export)
    if _SHARDY in Artifact(export.module).dialects:
        yield "shardy", ""


def _release_of(consumer: Release) -> JaxRelease | None:
    """``None`` if the consumer is older than every known release."""
    field = "release" if consumer.package == "jax" else "jaxlib"
    found = [each for each in known_jax_releases() if getattr(each, field) == consumer.release]
    return found[-1] if found else None


def _writes(release: JaxRelease, export: JaxExport) -> bool:
    versions = (export.serialization_version, export.calling_convention_version)
    if versions != (release.serialization_version, release.calling_convention):
        return False
    telling = {part for each in known_jax_releases() for part in each.always}
    return all(id_ in release.always for id_, _ in parts_of(export) if id_ in telling)


def _reads(reader: JaxRelease, part: JaxExportPart) -> bool:
    numbers = _numbers()
    number = numbers[reader.release]
    return (part.since is None or number >= numbers[part.since]) and (
        part.until is None or number <= numbers[part.until]
    )


def _finding(part: JaxExportPart, reader: JaxRelease) -> Finding:
    too_old = part.since is not None and _numbers()[reader.release] < _numbers()[part.since]
    if too_old:
        rule, remedy = f"jax {part.since} is the first to read it", f"load it with jax {part.since} or later"
    else:
        rule = f"jax {part.until} is the last to read it"
        remedy = (
            f"export the function again with a newer jax, or set JAX_EXPORT_DESERIALIZE_EXPIRED_VERSIONS=1, or load it "
            f"with jax {part.until} or older"
        )
    return Finding(
        feature=f"jax_export_{part.id}",
        level="error",
        kind="encoding",
        message=f"jax {reader.release} {_FAILURES[part.step]}: it has {part.title}; {rule}",
        remedy=f"{remedy}; or {_OUT}",
    )


def _too_old(consumer: Release) -> Finding:
    first = known_jax_releases()[0]
    return Finding(
        feature="jax_export_file",
        level="error",
        kind="encoding",
        message=f"{consumer} reads no jax.export files: jax {first.release} is the first to read them",
        remedy=f"load it with jax {first.release} or later; or {_OUT}",
    )


def _unknown(id_: str, value: str, reader: JaxRelease) -> Finding:
    return Finding(
        feature=f"jax_export_{id_}",
        level="error",
        kind="encoding",
        message=f"jax {reader.release} {_FAILURES['load']}: no known release of jax reads the "
        f"{id_.replace('_', ' ')} {value}",
        remedy=f"load it with the jax that wrote it; or {_OUT}",
    )


@cache
def _parts() -> dict[tuple[str, str], JaxExportPart]:
    return {(part.id, part.value): part for part in known_jax_export_parts()}


@cache
def _numbers() -> dict[str, int]:
    return {release.release: number for number, release in enumerate(known_jax_releases())}
