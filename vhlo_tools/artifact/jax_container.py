"""jax.export files as containers whose artifacts can be retargeted or stripped in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Final

from vhlo_tools.artifact.artifact import Artifact
from vhlo_tools.artifact.jax_readers import container_findings, reading_jax
from vhlo_tools.errors import DowngradeError
from vhlo_tools.files import (
    FileRange,
    as_bytes,
    decode_jax_export,
    join,
    place,
    read_bytes,
    replace_modules,
    view,
    write_atomically,
)

if TYPE_CHECKING:
    from vhlo_tools.files import Buffer, Chunk, JaxExport
    from vhlo_tools.findings import Finding
    from vhlo_tools.spec import JaxRelease, Release
    from vhlo_tools.version import Version

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
        changed = _changed(self._artifacts, change)
        same = copy(self)
        same._artifacts = changed
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

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write it to ``path``, completely or not at all.

        Args:
            path: The file to write.
            force: Whether an existing file may be replaced.

        Raises:
            FileExistsError: If ``path`` exists and ``force`` is not set.
            OSError: If the file cannot be written.
        """
        write_atomically(place(path), self.chunks, force=force)

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


def _changed(artifacts: Sequence[Artifact], change: Callable[[Artifact], Artifact]) -> tuple[Artifact, ...]:
    """If any change is refused, raise one error with the findings of all."""
    changed: list[Artifact] = []
    errors: list[DowngradeError] = []
    for artifact in artifacts:
        try:
            changed.append(_same_signature(artifact, change(artifact)))
        except DowngradeError as error:
            errors.append(error)
    if errors:
        summary = "; ".join(error.summary for error in errors)
        raise DowngradeError(summary, [finding for error in errors for finding in error.findings])
    return tuple(changed)
