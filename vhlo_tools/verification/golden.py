"""Golden suites: recorded inputs and outputs of programs, and their replay."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from vhlo_tools.artifact import Artifact
from vhlo_tools.documents import read_json
from vhlo_tools.errors import GoldenError
from vhlo_tools.execution import as_saved
from vhlo_tools.files import Folder, open_regular, opened_folder
from vhlo_tools.records import dataclass
from vhlo_tools.system import BINARY
from vhlo_tools.verification.comparison import Comparison, Tolerance
from vhlo_tools.verification.rounds import compare_outputs
from vhlo_tools.version import VhloToolsError

# Reading of the files of a record: inside its folder, regular, and no larger than they say

#: The limit on the size of a file of a record.
LARGEST_FILE: Final = 8 << 30


def read_file(folder: Path, name: str, sha256: str | None = None) -> bytes:
    """Refuses a file outside of the folder, one that is too large, and one with another SHA-256."""
    path = folder / name
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise GoldenError(f"{path} leads to {os.path.realpath(path)}, outside of the record")
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST_FILE:
            raise GoldenError(f"{path} has {size} bytes; the limit is {LARGEST_FILE}")
        data = file.read(size)
    if sha256 is not None and (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise GoldenError(f"{path} was changed after it was recorded: its SHA-256 is {found}, expected {sha256}")
    return data


def read_array(data: bytes, dtype: str) -> np.ndarray[Any, Any]:
    """Allocates the array only if the file contains all of it; ``.npy`` files do not name types of ml_dtypes."""
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, is_fortran, stored = reader(file)
    except Exception as error:  # numpy parses headers as Python, and raises whatever that does
        raise ValueError(f"its header is damaged: {error}") from error
    if stored.hasobject:
        raise ValueError("it contains Python objects, which are not read")
    if any(type(size) is not int for size in shape):
        raise ValueError(f"its header is damaged: {shape} is no shape")
    expected, found = math.prod(shape) * stored.itemsize, len(data) - file.tell()
    if expected != found or any(size < 0 for size in shape):
        raise ValueError(f"its header announces {expected} bytes, and {found} follow")
    flat = np.frombuffer(data, stored, offset=file.tell()) if found else np.empty(0, stored)
    array = flat.reshape(shape, order="F" if is_fortran else "C").copy()
    return array.view(_dtype(dtype)) if stored.kind == "V" else array


def _dtype(name: str) -> np.dtype[Any]:
    import ml_dtypes

    try:
        found = np.dtype(getattr(ml_dtypes, name, name))
    except TypeError as error:
        raise ValueError(f"{name!r} is not an element type") from error
    if found.hasobject:
        raise ValueError(f"{name!r} is not an element type")
    return found


# Records on disk: a folder with an artifact, its inputs and outputs as `.npy` files, and a manifest
#
# The manifest `golden.json` lists every file with its digest, so that a replay distinguishes a modified record from
# different results.

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
    suite = os.path.realpath(folder.parent)
    with opened_folder(suite, make=True) as beside:
        # A temporary folder beside it, which is renamed when it is complete.
        name = f".{folder.name}.{secrets.token_hex(4)}"
        try:
            os.mkdir(beside.at(name), 0o755, dir_fd=beside.handle)
            with opened_folder(os.path.join(suite, name)) as at:  # noqa: PTH118
                data = bytes(artifact)
                _write(at, ARTIFACT, data)
                stored = (tuple(_store(at, "input", inputs)), tuple(_store(at, "output", outputs)))
                digest = hashlib.sha256(data).hexdigest()
                record = Record(folder, digest, str(artifact.version), *stored, engine, library, tolerance)
                said = asdict(record)
                del said["folder"]
                _write(at, MANIFEST, f"{json.dumps({'format': FORMAT, **said}, indent=2)}\n".encode())
            if folder.exists():
                shutil.rmtree(beside.at(folder.name), dir_fd=beside.handle)
            os.rename(beside.at(name), beside.at(folder.name), src_dir_fd=beside.handle, dst_dir_fd=beside.handle)
        except BaseException:
            shutil.rmtree(beside.at(name), ignore_errors=True, dir_fd=beside.handle)
            raise
    return record


def _write(folder: Folder, name: str, data: bytes) -> None:
    made = os.open(folder.at(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666, dir_fd=folder.handle)
    with os.fdopen(made, "wb") as file:
        file.write(data)


def _store(folder: Folder, what: str, values: Sequence[Any], place: str = "") -> Iterator[StoredArray]:
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
            _write(folder, name, file.getvalue())
            yield StoredArray(here, name, str(array.dtype), hashlib.sha256(file.getvalue()).hexdigest())


def _nested(leaves: Sequence[tuple[tuple[int, ...], Any]]) -> tuple[Any, ...]:
    """The positions are in order."""
    groups: dict[int, list[tuple[tuple[int, ...], Any]]] = {}
    for place, value in leaves:
        groups.setdefault(place[0], []).append((place[1:], value))
    return tuple(group[0][1] if group[0][0] == () else _nested(group) for group in groups.values())


# Replaying of records: the artifact is run with the installed library, and its outputs are compared


@dataclass(frozen=True, slots=True)
class Replayed:
    """The outcome of a replay.

    Attributes:
        record: The record.
        outputs: The comparison of each output with the recorded one.
        problem: The reason why the record could not be replayed, if so.
        readable: Whether the record itself could be read.
    """

    record: Record
    outputs: tuple[Comparison, ...] = ()
    problem: str | None = None
    readable: bool = True

    @property
    def passed(self) -> bool:
        """Whether all outputs match the recorded ones."""
        return self.problem is None and all(each.passed for each in self.outputs)

    def __str__(self) -> str:
        name = self.record.name
        if self.record.stablehlo:
            name = f"{name} (StableHLO {self.record.stablehlo}, recorded with {self.record.library})"
        if self.problem is not None:
            return f"{name}: {self.problem}"
        lines = [f"{name}: {'as recorded' if self.passed else 'differs'}"]
        lines += [f"  {each}" for each in self.outputs if not each.passed]
        return "\n".join(lines)


def replay(record: Record, run: Callable[[Artifact, Sequence[Any]], tuple[Any, ...]]) -> Replayed:
    """Problems are part of the outcome, and not raised."""
    try:
        outputs = run(record.artifact(), record.values(record.inputs))
        return Replayed(record, compare_outputs(outputs, record.values(record.outputs), record.tolerance))
    except (GoldenError, OSError) as error:
        return Replayed(record, problem=str(error), readable=False)
    except MemoryError:
        return Replayed(record, problem="there is not enough memory for it")
    except (VhloToolsError, ValueError, TypeError) as error:
        # Such as arrays of other shapes than the program has.
        return Replayed(record, problem=str(error))


def replay_folder(folder: Path, run: Callable[[Record, Artifact, Sequence[Any]], tuple[Any, ...]]) -> Replayed:
    """A record that cannot be read is an outcome too, and nothing is raised."""
    try:
        record = read_record(folder)
    except (GoldenError, OSError) as error:
        return Replayed(Record.unreadable(folder), problem=str(error), readable=False)
    return replay(record, partial(run, record))
