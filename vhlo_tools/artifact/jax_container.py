"""jax.export files whose artifacts are moved or stripped, and which stay what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path

from vhlo_tools.artifact.artifact import Artifact
from vhlo_tools.artifact.jax_export import JaxExport, decode_jax_export, replace_modules
from vhlo_tools.artifact.storage import Buffer, as_bytes, read_bytes
from vhlo_tools.bytecode import Chunk, strip_locations
from vhlo_tools.errors import DowngradeError
from vhlo_tools.files import write_atomically
from vhlo_tools.findings import Finding
from vhlo_tools.version import Version

__all__ = ["JaxContainer", "derivative_names"]


class JaxContainer:
    """A jax.export file: the artifact of a function, and of each vector-Jacobian product that was saved with it.

    Args:
        data: The bytes. They are not copied, and must not be changed afterwards.
        name: What to call it in messages.

    Attributes:
        findings: What there is to say of how its artifacts were written.

    Raises:
        MalformedArtifactError: If ``data`` is something else, or damaged.
    """

    def __init__(self, data: Buffer, *, name: str = "the jax.export file") -> None:
        self._chunks: Sequence[Chunk] = (memoryview(data),)
        self.name = name
        names = derivative_names(name)
        levels = decode_jax_export(data).levels()
        self._artifacts = tuple(
            Artifact(level.module, name=next(names) if number else name) for number, level in enumerate(levels)
        )

    @classmethod
    def open(cls, source: str | PathLike[str] | Buffer | JaxContainer, *, name: str | None = None) -> JaxContainer:
        """Return the jax.export file at a path or in bytes; a large one is mapped into memory.

        Args:
            source: A path, the bytes themselves, or what this returned before.
            name: What to call it in messages, by default its path.

        Raises:
            MalformedArtifactError: If it is none, or a damaged one.
            OSError: If the file cannot be read.
        """
        if isinstance(source, JaxContainer):
            return source
        if isinstance(source, str | PathLike):
            return cls(read_bytes(Path(source)), name=name or str(source))
        return cls(as_bytes(source), name=name or "the input")

    @property
    def export(self) -> JaxExport:
        """What it says of the function."""
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
        """The version of MLIR bytecode that the function's artifact is written in."""
        return self._artifacts[0].bytecode_version

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What there is to say of how its artifacts were written."""
        return tuple(finding for artifact in self._artifacts for finding in artifact.findings)

    def with_artifacts(self, change: Callable[[Artifact], Artifact]) -> JaxContainer:
        """Return the file with its artifacts changed and all else as it was.

        Args:
            change: Returns what to put in the place of an artifact.

        Raises:
            DowngradeError: If ``change`` does for any of them; the findings are those of all.
            MalformedArtifactError: If the file is damaged.
            InvalidProgramError: If the result would be larger than a jax.export file can be.
        """
        changed = _changed(self._artifacts, change)
        same = JaxContainer.__new__(JaxContainer)
        same.name = self.name
        same._artifacts = changed
        same._chunks = replace_modules(self._data, lambda number, _: changed[number].chunks)
        return same

    def retargeted(self, target: Version) -> JaxContainer:
        """Return the file with its artifacts at another version, moved there on their bytes.

        Raises:
            DowngradeError: If one holds what the target does not have. The findings are all that they hold.
            UnsupportedFeatureError: If one holds what is gone by then, or what cannot be moved in bytes.
            MalformedArtifactError: If it is damaged.
            InvalidProgramError: If the result would be larger than a jax.export file can be.
        """
        return self.with_artifacts(lambda artifact: artifact.retargeted(target))

    def stripped(self) -> JaxContainer:
        """Return the file without the source locations of its artifacts.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        return self.with_artifacts(_stripped)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write it to ``path``, whole or not at all.

        Args:
            path: Where.
            force: Whether an existing file may be replaced.

        Raises:
            FileExistsError: If ``path`` exists and ``force`` is not set.
            OSError: If it cannot be written.
        """
        write_atomically(Path(path), self.chunks, force=force)

    @property
    def _data(self) -> Buffer:
        if len(self._chunks) > 1:
            self._chunks = (b"".join(self._chunks),)
        return self._chunks[0]

    @property
    def chunks(self) -> list[Chunk]:
        """Its bytes in pieces, large ones views of what it was made from."""
        return list(self._chunks)

    def __bytes__(self) -> bytes:
        return bytes(self._data)

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __repr__(self) -> str:
        return f"<JaxContainer {self.name!r}: StableHLO {self.version}, {len(self)} bytes>"


def derivative_names(name: str) -> Iterator[str]:
    """Yield what to call the vector-Jacobian product of a file, the one of that, and so on."""
    while True:
        name = f"the vjp in {name}"
        yield name


def _stripped(artifact: Artifact) -> Artifact:
    file = artifact.copy_of_file()
    strip_locations(file)
    return artifact.edited(file)


def _changed(artifacts: Sequence[Artifact], change: Callable[[Artifact], Artifact]) -> tuple[Artifact, ...]:
    """Return all artifacts changed, or say of all of them why not."""
    changed: list[Artifact] = []
    errors: list[DowngradeError] = []
    for artifact in artifacts:
        try:
            changed.append(change(artifact))
        except DowngradeError as error:
            errors.append(error)
    if errors:
        summary = "; ".join(error.summary for error in errors)
        raise DowngradeError(summary, [finding for error in errors for finding in error.findings])
    return tuple(changed)
