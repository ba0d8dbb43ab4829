"""A record on disk: a folder with an artifact, its inputs and outputs as `.npy` files, and what was known of them.

`golden.json` names every file with its digest, so that a replay tells a record that was changed from a library that
computes something else.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import GoldenError
from vhlo_tools.interpreter import as_saved
from vhlo_tools.verification import Tolerance

__all__ = ["MANIFEST", "Record", "StoredArray", "read_record", "records_in", "write_record"]

MANIFEST: Final = "golden.json"
ARTIFACT: Final = "model.mlirbc"
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An input or an output.

    Attributes:
        place: Which one: its number, in tuples ``0.1``.
        file: Its file, relative to the folder; ``None`` for a token, which has no value.
        dtype: The type of its elements, which `.npy` files do not keep of the types of ml_dtypes.
        sha256: The digest of the file.
    """

    place: str
    file: str | None
    dtype: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """What was recorded.

    Attributes:
        folder: Where.
        artifact_sha256: The digest of the artifact.
        stablehlo: The version of the artifact.
        inputs: Its inputs.
        outputs: The outputs that it had.
        engine: What it ran on.
        library: The library that it ran with, and its StableHLO.
        tolerance: How far outputs of a replay may be from these.
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
        """The name of its folder."""
        return self.folder.name

    def artifact(self) -> Artifact:
        """Return the artifact.

        Raises:
            GoldenError: If it is not what was recorded.
            MalformedArtifactError: If it is damaged, and was so when it was recorded.
        """
        return Artifact(_read(self.folder / ARTIFACT, self.artifact_sha256), name=str(self.folder / ARTIFACT))

    def values(self, stored: Sequence[StoredArray]) -> tuple[Any, ...]:
        """Return inputs or outputs, nested as they were.

        Raises:
            GoldenError: If a file is not what was recorded.
        """
        return _nested([(tuple(map(int, each.place.split("."))), self._value(each)) for each in stored])

    def _value(self, stored: StoredArray) -> np.ndarray[Any, Any] | None:
        if stored.file is None:
            return None
        data = _read(self.folder / stored.file, stored.sha256)
        try:
            array: np.ndarray[Any, Any] = np.load(io.BytesIO(data), allow_pickle=False)
            return array.view(_dtype(stored.dtype)) if array.dtype.kind == "V" else array
        except (ValueError, EOFError, TypeError) as error:
            raise GoldenError(f"{self.folder / stored.file} is no array of {stored.dtype}: {error}") from error


def records_in(folder: Path) -> list[Path]:
    """Return the folders of records in ``folder``, by name.

    Raises:
        GoldenError: If there are none.
        OSError: If it cannot be read.
    """
    found = sorted(each.parent for each in folder.glob(f"*/{MANIFEST}"))
    if not found:
        raise GoldenError(f"{folder} holds no records: make some with `vhlo golden record {folder} MODEL`")
    return found


def read_record(folder: Path) -> Record:
    """Read what is known of a record; its files are read when they are asked for.

    Raises:
        GoldenError: If it is not one, or of a newer format.
        OSError: If it cannot be read.
    """
    path = folder / MANIFEST
    try:
        said = json.loads(path.read_bytes())
        if said["format"] != FORMAT:
            raise GoldenError(f"{path} has the format {said['format']}, expected {FORMAT}: install a newer vhlo_tools")
        return Record(
            folder,
            said["artifact_sha256"],
            said["stablehlo"],
            tuple(StoredArray(**each) for each in said["inputs"]),
            tuple(StoredArray(**each) for each in said["outputs"]),
            said["engine"],
            said["library"],
            Tolerance(**said["tolerance"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise GoldenError(f"{path} is no record: {type(error).__name__} {error}") from error


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
    """Write a record, whole or not at all.

    Args:
        folder: Its folder.
        artifact: The artifact.
        inputs: Its inputs: arrays, ``None`` for tokens, tuples of these.
        outputs: The outputs that it had.
        engine: What it ran on.
        library: The library that it ran with.
        tolerance: How far outputs of a replay may be from these.
        force: Whether a record of that name is replaced.

    Raises:
        FileExistsError: If there is something of that name, and ``force`` is not set.
        OSError: If it cannot be written.
    """
    if folder.exists() and not (force and (folder / MANIFEST).is_file()):
        raise FileExistsError(17, "there is a record of that name: give another --name, or --force", str(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside it, so that it gets its name when all of it is there.
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


def _read(path: Path, sha256: str) -> bytes:
    data = path.read_bytes()
    if (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise GoldenError(f"{path} was changed after it was recorded: its SHA-256 is {found}, expected {sha256}")
    return data


def _dtype(name: str) -> np.dtype[Any]:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name, name))


def _nested(leaves: Sequence[tuple[tuple[int, ...], Any]]) -> tuple[Any, ...]:
    """Return values nested by their places, which are in order."""
    groups: dict[int, list[tuple[tuple[int, ...], Any]]] = {}
    for place, value in leaves:
        groups.setdefault(place[0], []).append((place[1:], value))
    return tuple(group[0][1] if group[0][0] == () else _nested(group) for group in groups.values())
