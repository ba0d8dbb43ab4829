"""Cache of the parsed files of ``dialect_specs/``: parsing them all takes as long as the rest of a command.

A snapshot is the source of a Python module, with the tables and a digest of the files that they were parsed from. The
build of a wheel makes one (``scripts/build_hook.py``), which is installed as any module is. A checkout, whose files
people edit, keeps one in ``__pycache__``, compiled, where and when Python keeps what it compiles. A snapshot counts
only while its digest is that of the files.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path
from typing import Any, Final, TypeAlias

#: The contents of files, by their paths inside the folder, with ``/``.
Tables: TypeAlias = Mapping[str, Mapping[str, Any]]

#: The module of this package that a wheel has, and a checkout has not.
SHIPPED: Final = "specs_snapshot"

#: The bytes of a digest.
_DIGEST: Final = 8


def read_tables(folder: Path) -> Tables:
    """Return the tables of our own ``folder`` from a current snapshot, or nothing.

    A checkout without a snapshot makes it, unless Python is told to keep nothing (``PYTHONDONTWRITEBYTECODE``).
    """
    files = files_below(folder)
    digest = digest_of(files)
    with suppress(ModuleNotFoundError):
        shipped = vars(import_module(f"{__package__}.{SHIPPED}"))
        if shipped["DIGEST"] == digest:
            return shipped["TABLES"]  # type: ignore[no-any-return]
    place = kept_place()
    if place is None:
        return {}
    head = MAGIC_NUMBER + digest
    with suppress(OSError):
        kept = place.read_bytes()
        code = kept[len(head) + _DIGEST :]
        # What was damaged could make Python crash.
        if kept.startswith(head) and kept[len(head) : len(head) + _DIGEST] == source_hash(code):
            return _tables(marshal.loads(code))
    if sys.dont_write_bytecode:
        return {}
    try:
        made = compile(snapshot_source(files), SHIPPED, "exec")
    except ValueError:
        # Whoever asks for that file is told what is wrong with it.
        return {}
    code = marshal.dumps(made)
    _keep(place, head + source_hash(code) + code)
    return _tables(made)


def files_below(folder: Path) -> dict[str, bytes]:
    """Paths are inside ``folder``, and sorted."""
    return dict(sorted(_files_below(folder, "")))


def _files_below(folder: Path, within: str) -> Iterator[tuple[str, bytes]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".toml"):
                yield within + entry.name, Path(entry.path).read_bytes()
            elif entry.is_dir():
                yield from _files_below(Path(entry.path), f"{within}{entry.name}/")


def digest_of(files: Mapping[str, bytes]) -> bytes:
    """The same digest by which Python knows the sources of compiled modules."""
    return source_hash(b"".join(b"%s\0%d\0%s" % (path.encode(), len(data), data) for path, data in files.items()))


def snapshot_source(files: Mapping[str, bytes]) -> str:
    # Imported here because a snapshot is made once.
    from vhlo_tools.documents import read_toml

    tables = {path: read_toml(data) for path, data in files.items()}
    said = '"""The files of ``dialect_specs/``, parsed by the build of this package."""'
    return f"{said}\n\nimport datetime\n\nDIGEST = {digest_of(files)!r}\nTABLES = {tables!r}\n"


def kept_place() -> Path | None:
    """Return the file of a checkout's snapshot; ``None`` where Python keeps nothing that it compiles."""
    with suppress(NotImplementedError):
        # Not with the suffix by which Python would take it for the module.
        return Path(cache_from_source(str(Path(__file__).with_name(f"{SHIPPED}.py")))).with_suffix(".kept")
    return None


def _tables(code: Any) -> Tables:
    scope: dict[str, Any] = {}
    exec(code, scope)
    return scope["TABLES"]  # type: ignore[no-any-return]


def _keep(place: Path, data: bytes) -> None:
    """A failure to write is no error: work without a snapshot is only slower."""
    written = place.with_name(f"{place.name}.{os.getpid()}")
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            written.write_bytes(data)
            written.replace(place)
        except OSError:
            written.unlink()
