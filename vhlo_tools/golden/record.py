"""Records on disk: a folder with an artifact, its inputs and outputs as `.npy` files, and a manifest.

The manifest `golden.json` lists every file with its digest, so that a replay distinguishes a modified record from
different results.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from vhlo_tools.artifact import Artifact
from vhlo_tools.documents import read_json
from vhlo_tools.errors import GoldenError
from vhlo_tools.execution import as_saved
from vhlo_tools.golden.array_files import read_array, read_file
from vhlo_tools.records import dataclass
from vhlo_tools.verification import Tolerance

MANIFEST: Final = "golden.json"
ARTIFACT: Final = "model.mlirbc"
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class StoredArray:
    """A recorded input or output.

    Attributes:
        place: The number of the value, within tuples as in ``0.1``.
        file: The path of its file, relative to the folder; ``None`` for a token, which has no value.
        dtype: The element type, which `.npy` files do not store for types of ml_dtypes.
        sha256: The SHA-256 of the file.
    """

    place: str
    file: str | None
    dtype: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A recorded program with its inputs and outputs.

    Attributes:
        folder: The folder of the record.
        artifact_sha256: The SHA-256 of the artifact.
        stablehlo: The version of the artifact.
        inputs: The inputs.
        outputs: The outputs.
        engine: The engine that computed the outputs.
        library: The library that was installed, and its StableHLO version.
        tolerance: The maximum distance between outputs of a replay and the recorded outputs.
    """

    folder: Path
    artifact_sha256: str
    stablehlo: str
    inputs: tuple[StoredArray, ...]
    outputs: tuple[StoredArray, ...]
    engine: str
    library: str
    tolerance: Tolerance

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    def artifact(self) -> Artifact:
        """Return the artifact.

        Raises:
            GoldenError: If the file differs from the recorded one.
            MalformedArtifactError: If it was already damaged when it was recorded.
        """
        return Artifact(read_file(self.folder, ARTIFACT, self.artifact_sha256), name=str(self.folder / ARTIFACT))

    def values(self, stored: Sequence[StoredArray]) -> tuple[Any, ...]:
        """Return inputs or outputs, with their original nesting.

        Raises:
            GoldenError: If a file differs from the recorded one.
        """
        try:
            return _nested([(tuple(map(int, each.place.split("."))), self._value(each)) for each in stored])
        except IndexError as error:
            places = ", ".join(each.place for each in stored)
            raise GoldenError(f"{self.folder / MANIFEST} has values at the same place: {places:.200}") from error

    def _value(self, stored: StoredArray) -> np.ndarray[Any, Any] | None:
        if stored.file is None:
            return None
        data = read_file(self.folder, stored.file, stored.sha256)
        try:
            return read_array(data, stored.dtype)
        except ValueError as error:
            raise GoldenError(f"{self.folder / stored.file} is not an array of {stored.dtype}: {error}") from error

    @classmethod
    def unreadable(cls, folder: Path) -> Record:
        """Return a record of which nothing is known but its folder."""
        return cls(folder, "", "", (), (), "", "", Tolerance())


def records_in(folder: Path) -> list[Path]:
    """Folders with a manifest, and those that cannot be read, by name."""
    with os.scandir(folder) as entries:
        found = sorted(Path(each.path) for each in entries if _is_record(each))
    if not found:
        raise GoldenError(f"{folder} contains no records: create some with `vhlo golden record {folder} MODEL`")
    return found


def _is_record(entry: os.DirEntry[str]) -> bool:
    # A name with a dot is that of a folder that is being written.
    if entry.name.startswith("."):
        return False
    try:
        if not entry.is_dir():
            return False
    except OSError:
        return False  # a loop of links
    try:
        os.lstat(Path(entry.path) / MANIFEST)
    except FileNotFoundError:
        return False
    except OSError:
        pass  # it may be a record: reading it says why it cannot be read
    return True


def read_record(folder: Path) -> Record:
    """The other files are read on demand."""
    path = folder / MANIFEST
    if not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(folder.parent)):
        raise GoldenError(f"{folder} leads to {os.path.realpath(folder)}, outside of the suite")
    try:
        said = read_json(read_file(folder, MANIFEST))
        if not isinstance(said, dict) or "format" not in said:
            raise ValueError("expected an object with a format")
        if said["format"] != FORMAT:
            raise GoldenError(f"{path} has the format {said['format']}, expected {FORMAT}: install a newer vhlo_tools")
        texts = {name: _text(said, name) for name in ("artifact_sha256", "stablehlo", "engine", "library")}
        return Record(
            folder=folder,
            inputs=tuple(map(_stored, said["inputs"])),
            outputs=tuple(map(_stored, said["outputs"])),
            tolerance=_tolerance(said["tolerance"]),
            **texts,
        )
    except KeyError as error:
        raise GoldenError(f"{path} is not a record: it lacks {error}") from error
    except (ValueError, TypeError) as error:
        raise GoldenError(f"{path} is not a record: {error}") from error


def _text(said: dict[str, Any], name: str) -> str:
    found = said[name]
    if not isinstance(found, str):
        raise ValueError(f"{name} is {found!r:.50}, expected a string")
    return found


def _stored(said: Any) -> StoredArray:
    if not isinstance(said, dict) or not said.keys() <= {"place", "file", "dtype", "sha256"}:
        raise ValueError(f"{said!r:.50} is not an input or output")
    place, file = _text(said, "place"), said["file"]
    if not _PLACE.fullmatch(place):
        raise ValueError(f"{place!r:.50} is not a place, such as 0 or 1.2")
    if file is None:
        return StoredArray(place, None)
    name = _text(said, "file")
    if Path(name).name != name or "\0" in name:
        raise ValueError(f"{name!r:.200} is not the name of a file in the record")
    return StoredArray(place, name, _text(said, "dtype"), _text(said, "sha256"))


# Tuples are not nested deeper, and have fewer elements.
_PLACE: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){0,63}", re.ASCII)


def _tolerance(said: Any) -> Tolerance:
    names = [field.name for field in fields(Tolerance)]
    if not isinstance(said, dict) or not said.keys() <= set(names):
        raise ValueError(f"{said!r:.50} is not a tolerance")
    for name, number in said.items():
        if isinstance(number, bool) or not isinstance(number, int if name == "ulp" else int | float) or number < 0:
            raise ValueError(f"the tolerance {name} is {number!r:.50}, expected a number that is not negative")
    return Tolerance(**said)


def write_record(
    folder: Path,
    artifact: Artifact,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    *,
    engine: str,
    library: str,
    tolerance: Tolerance,
    force: bool = False,
) -> Record:
    """The write is atomic; ``force`` replaces an existing record, but no other folder."""
    if folder.exists() and not (force and (folder / MANIFEST).is_file()):
        raise FileExistsError(17, "a record with this name exists: give another --name, or --force", str(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    # A temporary folder beside it, which is renamed when it is complete.
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        data = bytes(artifact)
        (made / ARTIFACT).write_bytes(data)
        record = Record(
            folder,
            hashlib.sha256(data).hexdigest(),
            str(artifact.version),
            tuple(_store(made, "input", inputs)),
            tuple(_store(made, "output", outputs)),
            engine,
            library,
            tolerance,
        )
        said = asdict(record)
        del said["folder"]
        text = json.dumps({"format": FORMAT, **said}, indent=2)
        (made / MANIFEST).write_text(f"{text}\n")
        made.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return record


def _store(folder: Path, what: str, values: Sequence[Any], place: str = "") -> Iterator[StoredArray]:
    for number, value in enumerate(values):
        here = f"{place}{number}"
        if isinstance(value, tuple | list):
            yield from _store(folder, what, value, f"{here}.")
        elif value is None:
            yield StoredArray(here, None)
        else:
            array = np.asarray(value)
            file = io.BytesIO()
            np.save(file, as_saved(array))
            name = f"{what}.{here}.npy"
            (folder / name).write_bytes(file.getvalue())
            yield StoredArray(here, name, str(array.dtype), hashlib.sha256(file.getvalue()).hexdigest())


def _nested(leaves: Sequence[tuple[tuple[int, ...], Any]]) -> tuple[Any, ...]:
    """The positions are in order."""
    groups: dict[int, list[tuple[tuple[int, ...], Any]]] = {}
    for place, value in leaves:
        groups.setdefault(place[0], []).append((place[1:], value))
    return tuple(group[0][1] if group[0][0] == () else _nested(group) for group in groups.values())
