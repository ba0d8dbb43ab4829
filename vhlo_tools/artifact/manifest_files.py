"""Manifests beside files: paths, atomic writes, and checks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Union

from vhlo_tools.artifact.artifact import Artifact, Making
from vhlo_tools.errors import ManifestError
from vhlo_tools.files import (
    MANIFEST_SUFFIX,
    SIGNATURE_SUFFIX,
    Url,
    is_path,
    kind_of_file,
    place,
    read_bytes,
    write_atomically,
)
from vhlo_tools.findings import Finding
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.artifact.jax_container import JaxContainer
    from vhlo_tools.artifact.manifest import Manifest, ManifestDifference
    from vhlo_tools.files import Buffer, Chunk, Place, Source

# Paths of manifests; atomic writes of a file with its manifest, which never lies beside other bytes


def manifest_place(path: str | PathLike[str]) -> Place:
    """Beside the file: ``model.mlirbc.manifest.json``."""
    return _beside(place(path), MANIFEST_SUFFIX)


def signature_place(path: str | PathLike[str]) -> Place:
    """Beside the file: ``model.mlirbc.sig``; it signs the file and its manifest."""
    return _beside(place(path), SIGNATURE_SUFFIX)


def find_manifest(path: str | PathLike[str]) -> Path | None:
    """Return the manifest beside a file, or beside a link or its target.

    Behind URLs none is looked for: it would be another request for every object. ``ManifestError`` says that something
    of its name is no file: a file of which nobody knows what it should be is not one without a manifest.
    """
    where = place(path)
    if isinstance(where, Url):
        return None
    for each in (os.fspath(where), os.path.realpath(where)):
        found = each + MANIFEST_SUFFIX
        # As text: a store may have very many files.
        try:
            kind = kind_of_file(os.stat(found).st_mode)  # noqa: PTH116
        except OSError:
            if not os.path.islink(found):  # noqa: PTH114
                continue
            kind = "a link that leads nowhere"
        if kind is not None:
            raise ManifestError(f"{found} is {kind}: expected a manifest, or nothing of this name; remove it")
        return Path(found)
    return None


def write_with_manifest(
    path: str | PathLike[str], chunks: Iterable[Chunk], manifest: Manifest, *, force: bool = False
) -> None:
    """Write a file and its manifest, each completely or not at all.

    The old manifest is removed first and the new one is written last, so an interruption leaves a file without a
    manifest, which `require` and `run` can be told to refuse.
    """
    where = place(path)
    write_atomically(where, chunks, force=force)
    write_atomically(manifest_place(where), [manifest.encode()], force=force)


def save_artifact(
    held: Artifact | JaxContainer,
    path: str | PathLike[str],
    *,
    force: bool,
    manifest: bool,
    made: Making | None = None,
) -> None:
    """Write an artifact or a jax.export file; ``made`` is by default what it knows itself."""
    if not manifest:
        write_atomically(place(path), held.chunks, force=force)
        return
    from vhlo_tools.artifact.manifest import Manifest

    write_with_manifest(path, held.chunks, Manifest.of(held, made=made), force=force)


def _beside(where: Place, suffix: str) -> Place:
    if isinstance(where, Url):
        return where.as_object().with_key(where.key + suffix)
    return where.with_name(where.name + suffix)


# Checks of files against the manifests beside them

#: ``none``: there is no manifest, or none was asked for.
ManifestState = Literal["none", "matches", "differs"]
#: ``None``: the manifest beside the file, if there is one; ``True``: the one beside it, which must be there; ``False``:
#: none; otherwise this manifest, or the path or the URL of one.
ManifestChoice = Union[bool, str, PathLike[str], "Manifest", None]

_REMEDY: Final = (
    "fetch the file and its manifest again from where they came from; if the change was meant, "
    "`vhlo manifest write --force` describes the file as it is now"
)


@dataclass(frozen=True, slots=True)
class ManifestCheck:
    """The comparison of a file with its manifest."""

    state: ManifestState
    name: str  # of the file, in messages
    manifest: str | None = None  # name in messages; None if there is none
    differences: tuple[ManifestDifference, ...] = ()

    def require(self) -> None:
        """Raise ``ManifestError`` with the differences, if there are any."""
        if self.state == "differs":
            raise ManifestError(
                f"{self.name} is not the file that its manifest {self.manifest} describes: {_REMEDY}",
                [str(each) for each in self.differences],
            )


def check_manifest(
    data: Buffer | Artifact | JaxContainer,
    path: str | PathLike[str] | None,
    manifest: ManifestChoice = None,
    *,
    contents: bool = False,
    name: str | None = None,
) -> ManifestCheck:
    """Compare bytes with their manifest, by default the one beside ``path``.

    ``path`` is ``None`` for bytes of no file; ``contents`` compares the statements about the program too.
    """
    called = name or (str(path) if path is not None else "the input")
    if manifest is None or isinstance(manifest, bool | str | PathLike) or is_path(manifest):
        where: Place | None = None
        if is_path(manifest):
            where = place(manifest)
        elif manifest is not False:
            where = _manifest_beside(path, called, required=manifest is True)
        if where is None:
            return ManifestCheck("none", called)
        shown, expected = str(where), _loaded(where)
    else:
        shown, expected = "given", manifest
    differences = expected.verify(data, contents=contents)
    return ManifestCheck("differs" if differences else "matches", called, shown, differences)


def check_source(source: Source, manifest: ManifestChoice = None, *, contents: bool = False) -> ManifestCheck:
    """Like :func:`check_manifest`, for a program that was identified."""
    path = source.given if is_path(source.given) and not source.is_text else None
    data = source.given if isinstance(source.given, Artifact) else source.data
    called = source.name or "the program"
    if data is None:
        if manifest in (None, False):
            return ManifestCheck("none", called)
        raise ManifestError(f"{called} has no bytes that a manifest could describe: `vhlo serialize` makes an artifact")
    return check_manifest(data, path, manifest, contents=contents, name=called)


def require_manifest(
    data: Buffer | Artifact | JaxContainer,
    path: str | PathLike[str] | None,
    manifest: ManifestChoice = None,
    *,
    name: str | None = None,
) -> None:
    """Raise an error unless bytes are those that their manifest describes, by size and digest."""
    check_manifest(data, path, manifest, name=name).require()


def manifest_finding(path: str, digest: bytes | None, *, required: bool = False) -> Finding | None:
    """Return the finding about a file that contradicts its manifest, or that has none though one is ``required``.

    Without ``digest`` (SHA-256), the file is read.
    """
    try:
        beside: Place | None = find_manifest(path)
        if beside is None and required and isinstance(wanted := manifest_place(path), Url):
            beside = wanted
        if beside is None:
            return _missing(path) if required else None
        try:
            expected = _loaded(beside)
        except FileNotFoundError:
            if not required:
                raise
            return _missing(path)
        if digest is not None and expected.sha256 == digest.hex():
            return None
        found = read_bytes(place(path)) if digest is None else None
        if found is not None and not (differences := expected.verify(found, contents=False)):
            return None
        unlike = f"sha256: expected {expected.sha256}, found {digest.hex() if digest else 'none'}"
        what = unlike if found is None else "; ".join(map(str, differences))
    except ManifestError as error:
        return Finding("manifest_unreadable", "error", "manifest", str(error).replace("\n", " "), remedy=_REMEDY)
    message = f"{path} is not the file that its manifest {beside} describes: {what}"
    return Finding("manifest_differs", "error", "manifest", message, remedy=_REMEDY)


def _missing(path: str) -> Finding:
    message = f"{path} has no manifest, and one is required: expected {manifest_place(path)}"
    remedy = (
        "fetch it from where the file came from; `vhlo manifest write` makes it, once the file is known to be right"
    )
    return Finding("manifest_missing", "error", "manifest", message, remedy=remedy)


def _loaded(where: Place) -> Manifest:
    # Imported here because most files have none.
    from vhlo_tools.artifact.manifest import Manifest

    return Manifest.load(where)


def _manifest_beside(path: str | PathLike[str] | None, called: str, *, required: bool) -> Place | None:
    if path is None:
        if required:
            raise ManifestError(f"{called} is no file beside which a manifest could be: name the manifest")
        return None
    found: Place | None = find_manifest(path)
    if found is None and required:
        wanted = manifest_place(path)
        if isinstance(wanted, Path):
            raise ManifestError(
                f"{called} has no manifest, and one is required: expected {wanted}; `vhlo manifest write` makes it, "
                f"once you know that the file is right"
            )
        return wanted
    return found
