"""jax.export files as containers of artifacts, and the releases of jax that read and wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from os import PathLike
from typing import TYPE_CHECKING, Final

from vhlo_tools.artifact.artifact import Artifact
from vhlo_tools.errors import DowngradeError
from vhlo_tools.files import (
    FileRange,
    as_bytes,
    decode_jax_export,
    join,
    parts_of,
    place,
    read_bytes,
    replace_modules,
    view,
)
from vhlo_tools.findings import Finding
from vhlo_tools.spec import known_jax_export_parts, known_jax_releases, known_releases, newest_version

if TYPE_CHECKING:
    from vhlo_tools.files import Buffer, Chunk, JaxExport
    from vhlo_tools.spec import JaxExportPart, JaxRelease, Release
    from vhlo_tools.version import Version

# Releases of jax that read a jax.export file, and that wrote it, judged by the file around the artifact

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
    oldest, parts = known_jax_releases()[0].release, _parts_in(export)
    for consumer in consumers:
        if consumer.package in ("jax", "jaxlib"):
            field = "release" if consumer.package == "jax" else "jaxlib"
            known = [each for each in known_jax_releases() if getattr(each, field) == consumer.release]
            # A consumer without a release of jax is older than every known one.
            found += (
                refusals(parts, known[-1])
                if known
                else [
                    _finding(
                        "file",
                        f"{consumer} reads no jax.export files: jax {oldest} is the first to read them",
                        f"load it with jax {oldest} or later",
                    )
                ]
            )
    return list(dict.fromkeys(found))


def _parts_in(export: JaxExport) -> list[tuple[str, str]]:
    """Return the parts of a jax.export file and of its artifact that not every release of jax reads."""
    is_shardy = _SHARDY in Artifact(export.module).dialects
    return [*parts_of(export), *([("shardy", "")] if is_shardy else [])]


def refusals(parts: list[tuple[str, str]], reader: JaxRelease) -> list[Finding]:
    """Return why a release of jax refuses a jax.export file with these parts, or fails to call its function."""
    found = []
    for id_, value in parts:
        part = _parts().get((id_, value)) or _parts().get((id_, ""))
        if part is not None:
            found += _refusals_of(part, reader)
        elif id_ in _CLOSED and value.isdigit():
            what = f"no known release of jax reads the {id_.replace('_', ' ')} {value}"
            message = f"jax {reader.release} {_FAILURES['load']}: {what}"
            found.append(_finding(id_, message, "load it with the jax that wrote it"))
    return found


def _refusals_of(part: JaxExportPart, reader: JaxRelease) -> list[Finding]:
    numbers = _numbers()
    number = numbers[reader.release]
    if part.since is not None and number < numbers[part.since]:
        rule, remedy = f"jax {part.since} is the first to read it", f"load it with jax {part.since} or later"
    elif part.until is not None and number > numbers[part.until]:
        rule = f"jax {part.until} is the last to read it"
        remedy = (
            f"export the function again with a newer jax, or set JAX_EXPORT_DESERIALIZE_EXPIRED_VERSIONS=1, or load it "
            f"with jax {part.until} or older"
        )
    else:
        return []
    message = f"jax {reader.release} {_FAILURES[part.step]}: it has {part.title}; {rule}"
    return [_finding(part.id, message, remedy)]


def _finding(id_: str, message: str, remedy: str) -> Finding:
    return Finding(
        feature=f"jax_export_{id_}", level="error", kind="encoding", message=message, remedy=f"{remedy}; or {_OUT}"
    )


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
    parts = _parts_in(export)
    return tuple(each for each in known_jax_releases() if accepted[versions[each.jaxlib]] and not refusals(parts, each))


def first_writer(export: JaxExport) -> JaxRelease | None:
    """Return the release that wrote a file, or the first that writes such files by default.

    The version of the artifact is ignored, because the artifact may have been moved since.
    """
    known = known_jax_releases()
    if export.jax_version is not None:
        return next((each for each in known if each.release == export.jax_version), None)
    telling, parts = {part for each in known for part in each.always}, _parts_in(export)
    told = {id_ for id_, _ in parts if id_ in telling}
    versions = export.serialization_version, export.calling_convention_version
    for release in known:
        writes = versions == (release.serialization_version, release.calling_convention) and told <= {*release.always}
        # A release reads what it writes.
        if writes and not refusals(parts, release):
            return release
    return None


@cache
def _parts() -> dict[tuple[str, str], JaxExportPart]:
    return {(part.id, part.value): part for part in known_jax_export_parts()}


@cache
def _numbers() -> dict[str, int]:
    return {release.release: number for number, release in enumerate(known_jax_releases())}


# jax.export files as containers whose artifacts can be retargeted or stripped in place

_ALONE: Final = "write the artifact alone, as vhlo serialize and vhlo_tools.serialize do"


class JaxContainer:
    """A jax.export file: the artifact of a function, and of each vector-Jacobian product that was saved with it.

    Args:
        data: The bytes. They are not copied, and must not be changed afterwards.
        name: Its name in messages.

    Attributes:
        findings: Findings about how its artifacts were written.

    Raises:
        MalformedArtifactError: If ``data`` is not a jax.export file, or is damaged.
    """

    def __init__(self, data: Buffer, *, name: str = "the jax.export file") -> None:
        self._chunks: Sequence[Chunk] = (view(data),)
        self._warnings: tuple[Finding, ...] = ()
        self.name = name
        names = derivative_names(name)
        levels = decode_jax_export(data).levels()
        self._artifacts = tuple(
            Artifact(level.module, name=next(names) if number else name) for number, level in enumerate(levels)
        )

    @classmethod
    def open(cls, source: str | PathLike[str] | Buffer | JaxContainer, *, name: str | None = None) -> JaxContainer:
        """Return the jax.export file at a path or in bytes; a large one is read on access.

        Args:
            source: A path, the URL of an object, the bytes themselves, or a result of this method.
            name: Its name in messages, by default its path.

        Raises:
            MalformedArtifactError: If it is not a jax.export file, or is damaged.
            OSError: If the file cannot be read.
        """
        if isinstance(source, JaxContainer):
            return source
        if isinstance(source, bytes | bytearray | memoryview | FileRange):
            return cls(as_bytes(source), name=name or "the input")
        return cls(read_bytes(place(source)), name=name or str(source))

    @property
    def export(self) -> JaxExport:
        """The description of the function in the file."""
        return decode_jax_export(self._data)

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """The artifact of the function, and those of its derivatives."""
        return self._artifacts

    @property
    def version(self) -> Version:
        """The StableHLO version of the function's artifact."""
        return self._artifacts[0].version

    @property
    def bytecode_version(self) -> int:
        """The version of MLIR bytecode in which the function's artifact is written."""
        return self._artifacts[0].bytecode_version

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about how its artifacts were written, and warnings of :meth:`checked_for`."""
        return (*(finding for artifact in self._artifacts for finding in artifact.findings), *self._warnings)

    def readers(self) -> tuple[JaxRelease, ...]:
        """Return the known releases of jax that load the file, and call its function and its derivatives; oldest first.

        Raises:
            MalformedArtifactError: If the file is damaged.
        """

        def accepts(reader: Version) -> bool:
            found = (each for artifact in self._artifacts for each in artifact.requirements().reader_findings(reader))
            return not any(each.level == "error" for each in found)

        return reading_jax(self.export, accepts)

    def checked_for(self, consumers: Iterable[Release]) -> JaxContainer:
        """Return the file with a warning for each reason why consumers refuse it, whatever the version of its artifact.

        Args:
            consumers: Releases, of which those of jax and jaxlib read jax.export files.

        Raises:
            MalformedArtifactError: If the file is damaged.
        """
        checked = copy(self)
        found = container_findings(self.export, consumers)
        checked._warnings = tuple(replace(each, level="warning") for each in found)
        return checked

    def with_artifacts(self, change: Callable[[Artifact], Artifact]) -> JaxContainer:
        """Return the file with its artifacts changed and everything else unchanged.

        Args:
            change: Returns the replacement of an artifact.

        Raises:
            DowngradeError: If ``change`` raises it for any artifact, or returns one with another signature; the
                findings are those of all artifacts.
            MalformedArtifactError: If the file is damaged.
            InvalidProgramError: If the result would be larger than a jax.export file can be.
        """
        changed: list[Artifact] = []
        errors: list[DowngradeError] = []
        for artifact in self._artifacts:
            try:
                changed.append(_same_signature(artifact, change(artifact)))
            except DowngradeError as error:
                errors.append(error)
        if errors:
            summary = "; ".join(error.summary for error in errors)
            raise DowngradeError(summary, [finding for error in errors for finding in error.findings])
        same = copy(self)
        same._artifacts = tuple(changed)
        same._chunks = replace_modules(self._data, lambda number, _: changed[number].chunks)
        return same

    def retargeted(self, target: Version) -> JaxContainer:
        """Return the file with its artifacts retargeted to another version by editing their bytes.

        Raises:
            DowngradeError: If one has features that the target does not have. The findings list all features of all.
            UnsupportedFeatureError: If one has features that were removed by then, or that cannot be retargeted on
                bytes.
            MalformedArtifactError: If the file is damaged.
            InvalidProgramError: If the result would be larger than a jax.export file can be.
        """
        return self.with_artifacts(lambda artifact: artifact.retargeted(target))

    def stripped(self) -> JaxContainer:
        """Return the file without the source locations of its artifacts.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        return self.with_artifacts(Artifact.without_locations)

    def save(self, path: str | PathLike[str], *, force: bool = False, manifest: bool = False) -> None:
        """Write it to ``path``, completely or not at all; a manifest of what was there is removed.

        Args:
            path: The file to write.
            force: Whether an existing file may be replaced.
            manifest: Whether to write a manifest beside it, as :meth:`Artifact.save` does.

        Raises:
            FileExistsError: If ``path`` exists and ``force`` is not set.
            OSError: If the file cannot be written.
        """
        # Imported here because most files have none.
        from vhlo_tools.artifact.manifest_files import save_artifact

        save_artifact(self, path, force=force, manifest=manifest)

    @property
    def _data(self) -> Buffer:
        if len(self._chunks) > 1:
            self._chunks = (join(self._chunks),)
        return self._chunks[0]

    @property
    def chunks(self) -> list[Chunk]:
        """Its bytes in pieces; large ones are views into the file from which it was made."""
        return list(self._chunks)

    def __bytes__(self) -> bytes:
        return bytes(self._data)

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __repr__(self) -> str:
        return f"<JaxContainer {self.name!r}: StableHLO {self.version}, {len(self)} bytes>"


def derivative_names(name: str) -> Iterator[str]:
    """Yield names of the vector-Jacobian product in a file, the product of that, and so on."""
    while True:
        name = f"the vjp in {name}"
        yield name


def _same_signature(before: Artifact, after: Artifact) -> Artifact:
    """Check that the signature is unchanged, because the container states it."""
    # Edits of bytes, which change no types, leave no findings; reading the signature would cost as much again.
    if after.findings and before.declared_aliases().declared.signature != after.declared_aliases().declared.signature:
        raise DowngradeError(
            f"{before.name} must keep its signature, which the jax.export file around it states",
            [
                replace(each, level="error", remedy=_ALONE)
                for each in after.findings
                if each.op == "func.func" and each.kind == "type"
            ],
        )
    return after
