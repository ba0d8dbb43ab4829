"""Probes: intermediate values of a run, kept in memory or in a folder.

A folder gets a file of numpy for each value, and ``index.csv``, which says what each is. Numbers of the types of
ml_dtypes are in these files as raw bytes; the index has the name of the type.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from vhlo_tools.errors import EngineError, InvalidInputError
from vhlo_tools.interpreter.values import as_saved

__all__ = ["ARGUMENT", "COLUMNS", "INDEX", "Probe", "ProbeSite", "ProbedValue", "read_probes"]

#: The columns of the index.
COLUMNS: Final = ("file", "op", "result", "dtype", "shape", "location", "path", "function", "iteration", "device")

#: What stands for the name of an op where a value is an argument of a block.
ARGUMENT: Final = "argument"

#: The name of the index.
INDEX: Final = "index.csv"

#: How many bytes of values a probe keeps in memory, if nothing else is said.
_MEMORY: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class ProbeSite:
    """A result of an op whose values are kept.

    Attributes:
        op: The name of the op; :data:`ARGUMENT` for what a block takes.
        result: The number of the result, or of the argument.
        location: Where the op comes from, as MLIR prints it; empty if that is not known.
        path: Where the op stands in the program: ``@main/4:stablehlo.while/1/2:stablehlo.add``, from the function
            inwards, each op with its position in its block, and between them the number of the region.
        function: The function that it stands in.
        operands: What it takes: each the path of an op and the number of its result, or of a block and the number of
            its argument.
    """

    op: str
    result: int
    location: str
    path: str
    function: str
    operands: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ProbedValue:
    """A value that a run came to.

    Attributes:
        site: What gave it.
        iteration: The iterations, counted from zero, of the loops that it was in, from the outermost.
        dtype: The type of its elements, by the name that numpy or ml_dtypes has for it.
        shape: Its shape.
        device: The number of the device that came to it: zero if there is only one.
        file: The file that it stands in; ``None`` if it is in memory.
        array: The value, if it is in memory.
    """

    site: ProbeSite
    iteration: tuple[int, ...]
    dtype: str
    shape: tuple[int, ...]
    device: int = 0
    file: Path | None = None
    array: np.ndarray[Any, Any] | None = None

    def read(self) -> np.ndarray[Any, Any]:
        """Return the value."""
        if self.array is not None:
            return self.array
        assert self.file is not None
        stored: np.ndarray[Any, Any] = np.load(self.file, allow_pickle=False)
        dtype = _dtype(self.dtype)
        return stored if stored.dtype == dtype else stored.view(dtype)


class Probe:
    """Which intermediate values of a run are kept, and these values.

    A value is kept if its op matches all that is given. What the bodies of reductions, sorts and their like compute is
    not kept.

    >>> probe = Probe("multiply")

    Args:
        pattern: A regular expression that is searched for in the name of an op and in its location.
        function: The name of a function: only ops in it.
        folder: Where values are written as they come, by default they stay in memory.
        arguments: Whether what functions and bodies of loops take is kept too.
        memory: How many bytes of values may stay in memory.
        replace: Whether an index in the folder may be replaced; values of another run that are not replaced stay.

    Attributes:
        selection: What it is that it wants, by which plans of runs are known.
        arguments: Whether what functions and bodies of loops take is kept too.
        values: What was kept, in the order in which it came.

    Raises:
        InvalidInputError: If the pattern is no regular expression.
        FileExistsError: If there is an index in the folder already, and it must not be replaced.
    """

    def __init__(
        self,
        pattern: str | None = None,
        function: str | None = None,
        folder: str | Path | None = None,
        *,
        arguments: bool = False,
        memory: int = _MEMORY,
        replace: bool = False,
    ) -> None:
        try:
            self._pattern = re.compile(pattern or "")
        except re.error as error:
            raise InvalidInputError(f"{pattern!r} is no regular expression: {error}") from error
        self.selection = (pattern or "", function, arguments)
        self.arguments = arguments
        self.values: list[ProbedValue] = []
        self._function = function
        self._left = memory
        self._folder = None if folder is None else Path(folder)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / INDEX).open("w" if replace else "x", newline="", encoding="utf-8") as file:
                csv.writer(file).writerow(COLUMNS)

    def wants(self, op: str, location: str, function: str) -> bool:
        """Tell whether results of an op are kept.

        Args:
            op: Its name.
            location: Where it comes from, as MLIR prints it.
            function: The function that it stands in.
        """
        if self._function not in (None, function):
            return False
        return bool(self._pattern.search(op) or self._pattern.search(location))

    def take(self, site: ProbeSite, iteration: tuple[int, ...], array: np.ndarray[Any, Any], device: int = 0) -> None:
        """Keep a value.

        Args:
            site: What gave it.
            iteration: The iterations of the loops that it was in.
            array: The value.
            device: The number of the device that it is of.

        Raises:
            EngineError: If more would stay in memory than may.
        """
        described = site, iteration, array.dtype.name, array.shape, device
        if self._folder is None:
            self._left -= array.nbytes
            if self._left < 0:
                raise EngineError(
                    f"the values that are probed take more memory than they may, at {site.path}: give the probe a "
                    "folder, or a pattern that fewer ops match"
                )
            self.values.append(ProbedValue(*described, array=array.copy()))
            return
        name = f"{len(self.values):06}.npy"
        np.save(self._folder / name, as_saved(array), allow_pickle=False)
        self.values.append(ProbedValue(*described, file=self._folder / name))
        with (self._folder / INDEX).open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(_row(self.values[-1], name))


def read_probes(folder: str | Path) -> Iterator[ProbedValue]:
    """Yield what the index of a folder lists.

    Args:
        folder: The folder that a :class:`Probe` wrote.

    Raises:
        OSError: If there is no index.
    """
    with (Path(folder) / INDEX).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            site = ProbeSite(row["op"], int(row["result"]), row["location"], row["path"], row["function"])
            iteration, shape = (tuple(json.loads(row[name])) for name in ("iteration", "shape"))
            device = int(row["device"])
            yield ProbedValue(site, iteration, row["dtype"], shape, device, Path(folder) / row["file"])


def _row(value: ProbedValue, name: str) -> list[object]:
    site = value.site
    shape, iteration = (json.dumps(list(each)) for each in (value.shape, value.iteration))
    return [
        name,
        site.op,
        site.result,
        value.dtype,
        shape,
        site.location,
        site.path,
        site.function,
        iteration,
        value.device,
    ]


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype
