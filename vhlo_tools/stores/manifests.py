"""Manifests of the artifacts of a store: written and compared, each beside its file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

from vhlo_tools.artifact import Making, Manifest, check_manifest, find_manifest, manifest_place
from vhlo_tools.errors import ManifestError, MigrationError, VhloToolsError
from vhlo_tools.files import (
    MANIFEST_SUFFIX,
    Others,
    is_saved_model,
    is_url,
    nobody,
    opened_folder,
    place,
    programs_at,
    read_bytes,
    recognise,
    write_in,
)
from vhlo_tools.records import dataclass
from vhlo_tools.stores.members import IN_PLACE, base_of, resolved

if TYPE_CHECKING:
    from vhlo_tools.artifact import ManifestDifference
    from vhlo_tools.files import Buffer

#: ``damaged``: there is something of the name of the manifest that is none; ``unsigned``: it matches, and no signature
#: of it is valid; ``unreadable``: the file itself, or the place of its manifest, cannot be used.
ManifestStatus = Literal["written", "matches", "differs", "unsigned", "missing", "damaged", "unreadable"]

_FORCE: Final = "--force replaces it, once you know that the file is right"


@dataclass(frozen=True, slots=True)
class ManifestResult:
    """An artifact or a jax.export file, and its manifest."""

    path: str
    status: ManifestStatus
    differences: tuple[ManifestDifference, ...] = ()
    message: str | None = None  # why it was neither written nor matches


def manifests_at(
    path: str, *, write: bool = False, force: bool = False, exclude: tuple[str, ...] = (), others: Others = nobody
) -> Iterator[ManifestResult]:
    """Compare the artifacts that a path selects with their manifests, in order.

    ``write`` makes those that are missing, and ``force`` replaces those that do not match; what matches stays, for it
    may say how the file was made. Nothing is written outside of the folder: a link gets a manifest beside itself.
    ``others`` is told of all files that are no artifacts. ``MigrationError`` if the path matches nothing.
    """
    base = "" if is_url(path) else base_of(path)
    number = 0

    def other(each: str) -> None:
        nonlocal number
        number += 1
        others(each)

    for each in programs_at(path, exclude, others=other):
        number += 1
        try:
            data = None if is_saved_model(each) else read_bytes(place(each))
            if data is None or recognise(data, each) not in IN_PLACE:
                others(each)
                continue
            result = _compared(each, data, write=write)
            if write and (result.status == "missing" or (force and result.status in ("differs", "damaged"))):
                _write(each, data, base)
                result = ManifestResult(each, "written")
            yield result
        except OSError as error:
            yield ManifestResult(each, "unreadable", message=f"{error.filename or each}: {error.strerror or error}")
        except VhloToolsError as error:
            yield ManifestResult(each, "unreadable", message=str(error))
    if not number:
        raise MigrationError(f"{path}: not a file, not a folder with programs, and not a glob that matches a file")


def _compared(path: str, data: Buffer, *, write: bool) -> ManifestResult:
    advice = f": {_FORCE}" if write else ""
    try:
        # Behind URLs none is looked for.
        if not is_url(path) and find_manifest(path) is None:
            return _missing(path)
        checked = check_manifest(data, path, True, contents=not write)
    except FileNotFoundError:
        return _missing(path)
    except ManifestError as error:
        return ManifestResult(path, "damaged", message=f"{error}{advice}")
    if checked.state == "matches":
        return ManifestResult(path, "matches")
    said = "; ".join(map(str, checked.differences))
    return ManifestResult(path, "differs", checked.differences, f"its manifest describes another file: {said}{advice}")


def _missing(path: str) -> ManifestResult:
    return ManifestResult(path, "missing", message=f"it has no manifest: expected {manifest_place(path)}")


def _write(path: str, data: Buffer, base: str) -> None:
    manifest = Manifest.of(data, made=Making("manifest write"))
    if is_url(path):
        manifest.save(manifest_place(path), force=True)
        return
    folder, name = os.path.split(path)
    # As the folder was named, with its links resolved; none is followed below.
    where = os.path.join(resolved(base), os.path.relpath(folder or os.curdir, base))  # noqa: PTH118
    with opened_folder(where) as opened:
        write_in(opened, name + MANIFEST_SUFFIX, [manifest.encode()], force=True)
