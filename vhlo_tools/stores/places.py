"""Places in stores: bases of relative paths, and destinations of results of a migration."""

from __future__ import annotations

import glob
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from vhlo_tools.files import Url, is_saved_model, is_url, place
from vhlo_tools.stores.members import IN_PLACE
from vhlo_tools.stores.stamps import object_url

if TYPE_CHECKING:
    from vhlo_tools.files import Kind

#: The suffix of what a migration writes for a file that it does not replace.
RESULT_SUFFIX: Final = ".mlirbc"


def resolved(path: str) -> str:
    """Resolve all links in a path; a URL stays."""
    return path if is_url(path) else os.path.realpath(path)


def below(folder: str, path: str, base: str) -> str:
    """Return the place in ``folder`` for a file at ``path``, which is in ``base``."""
    relative = relative_to(base, path)
    if is_url(folder):
        return f"{folder.rstrip('/')}/{relative}"
    return os.path.realpath(os.path.join(folder, relative))  # noqa: PTH118


def relative_to(base: str, path: str) -> str:
    """Return a relative path with forward slashes."""
    return path[len(base) :].lstrip("/") if is_url(path) else os.path.relpath(path, base).replace(os.sep, "/")


def result_at(destination: str, kind: Kind | None) -> str:
    """Return the destination of a result; only some kinds of files are replaced."""
    return destination if kind is None or kind in IN_PLACE else str(place(destination).with_suffix(RESULT_SUFFIX))


def result_name(relative: str) -> str:
    """As :func:`result_at`, for the relative path of a file that is not replaced."""
    folder, slash, name = relative.rpartition("/")
    return f"{folder}{slash}{PurePosixPath(name).stem}{RESULT_SUFFIX}"


def is_store(path: str) -> bool:
    """Whether a path stands for many programs: a folder, a prefix of keys, or a glob that is no file's name."""
    where = place(path)
    if isinstance(where, Url):
        from vhlo_tools.files import is_glob, objects_under, stamp_of

        if where.is_prefix:
            return True
        return stamp_of(where) is None and (is_glob(where) or any(objects_under(where.with_key(f"{where.key}/"))))
    if is_saved_model(where):
        return False
    return where.is_dir() or (glob.has_magic(str(where)) and not where.exists())


def base_of(path: str) -> str:
    """Return the folder that files of a path are relative to; for a URL with a final slash, except for a bucket."""
    if is_url(path):
        return _base_of_objects(path)
    if Path(path).is_dir():
        return path
    folder = Path(path).parent
    while glob.has_magic(str(folder)):
        folder = folder.parent
    return str(folder)


def _base_of_objects(path: str) -> str:
    from vhlo_tools.files import glob_start, is_glob, stamp_of

    url = object_url(path)
    if url.is_prefix:
        return str(url)
    if stamp_of(url) is not None:
        return str(url.parent)
    if is_glob(url):
        start = glob_start(url)
        return str(start if start.is_prefix else start.parent)
    return f"{url}/"
