"""Probes: intermediate values of a run, and the instrumentation of programs that records them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import ModuleOp, Operation, Provider
from vhlo_tools.errors import EngineError, InvalidInputError
from vhlo_tools.execution.op_traits import CONTROL_FLOW
from vhlo_tools.execution.values import as_saved
from vhlo_tools.records import dataclass

# Probes: intermediate values of a run, recorded in memory or in a folder
#
# A folder receives a numpy file for each value, and ``index.csv`` with a description of each. Elements of types of
# ml_dtypes are raw bytes in these files; the index contains the name of the type.

#: The columns of the index.
COLUMNS: Final = ("file", "op", "result", "dtype", "shape", "location", "path", "function", "iteration", "device")

#: Used instead of an op name for values that are arguments of a block.
ARGUMENT: Final = "argument"

#: The name of the index.
INDEX: Final = "index.csv"

#: The default limit of the bytes of values that a probe keeps in memory.
_MEMORY: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class ProbeSite:
    """A result of an op whose values are recorded.

    Attributes:
        op: The name of the op; :data:`ARGUMENT` for an argument of a block.
        result: The number of the result, or of the argument.
        location: The source location of the op, as MLIR prints it; empty if unknown.
        path: The position of the op in the program, ``@main/4:stablehlo.while/1/2:stablehlo.add``: from the function
            inwards, each op with its position in its block, and between them the number of the region.
        function: The function that contains the op.
        operands: The operands: each as the path of an op and the number of its result, or of a block and the number
            of its argument.
    """

    op: str
    result: int
    location: str
    path: str
    function: str
    operands: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ProbedValue:
    """A recorded value of a run.

    Attributes:
        site: The site that produced the value.
        iteration: The iterations, counted from zero, of the enclosing loops, from the outermost.
        dtype: The element type, by its name in numpy or ml_dtypes.
        shape: The shape.
        device: The number of the device that produced the value; zero if there is only one.
        file: The file that contains the value; ``None`` if the value is in memory.
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
    """A selection of intermediate values of a run, and the recorded values.

    A value is recorded if its op matches all criteria. Values in the bodies of reductions, sorts and similar ops are
    not recorded.

    >>> probe = Probe("multiply")

    Args:
        pattern: A regular expression that is searched for in the name of an op and in its location.
        function: The name of a function, to select only ops in it.
        folder: The folder that values are written to as they are produced; by default they stay in memory.
        arguments: Whether arguments of functions and of loop bodies are recorded too.
        memory: The limit in bytes of the values in memory.
        replace: Whether an index in the folder may be replaced; value files of another run that are not overwritten
            stay.

    Attributes:
        selection: The selection criteria, the key under which plans of runs are cached.
        arguments: Whether arguments of functions and of loop bodies are recorded too.
        values: The recorded values, in the order of their production.

    Raises:
        InvalidInputError: If the pattern is not a valid regular expression.
        FileExistsError: If the folder already contains an index that must not be replaced.
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
            raise InvalidInputError(f"{pattern!r} is not a valid regular expression: {error}") from error
        self.selection: tuple[str, str | None, bool] = (pattern or "", function, arguments)
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
        """Return whether the results of an op are recorded.

        Args:
            op: The name of the op.
            location: Its source location, as MLIR prints it.
            function: The function that contains it.
        """
        if self._function not in (None, function):
            return False
        return bool(self._pattern.search(op) or self._pattern.search(location))

    def take(self, site: ProbeSite, iteration: tuple[int, ...], array: np.ndarray[Any, Any], device: int = 0) -> None:
        """Record a value.

        Args:
            site: The site that produced the value.
            iteration: The iterations of the enclosing loops.
            array: The value.
            device: The number of the device that produced the value.

        Raises:
            EngineError: If the values in memory would exceed the limit.
        """
        described = site, iteration, array.dtype.name, array.shape, device
        if self._folder is None:
            self._left -= array.nbytes
            if self._left < 0:
                raise EngineError(
                    f"the probed values exceed the memory limit at {site.path}: give the probe a folder, or a pattern "
                    f"that fewer ops match"
                )
            self.values.append(ProbedValue(*described, array=array.copy()))
            return
        name = f"{len(self.values):06}.npy"
        np.save(self._folder / name, as_saved(array), allow_pickle=False)
        self.values.append(ProbedValue(*described, file=self._folder / name))
        shape, iterations = (json.dumps(list(each)) for each in (array.shape, iteration))
        row = [name, site.op, site.result, array.dtype.name, shape, site.location, site.path, site.function]
        with (self._folder / INDEX).open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([*row, iterations, device])


def read_probes(folder: str | Path) -> Iterator[ProbedValue]:
    """Yield the values that the index of a folder lists.

    Args:
        folder: The folder that a :class:`Probe` wrote.

    Raises:
        OSError: If the folder has no index.
    """
    with (Path(folder) / INDEX).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            site = ProbeSite(row["op"], int(row["result"]), row["location"], row["path"], row["function"])
            iteration, shape = (tuple(json.loads(row[name])) for name in ("iteration", "shape"))
            device = int(row["device"])
            yield ProbedValue(site, iteration, row["dtype"], shape, device, Path(folder) / row["file"])


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype


def no_probes(name: str, engine: str) -> EngineError:
    return EngineError(f"{name}: {engine} does not expose intermediate values: use the engine reference for probes")


# Instrumentation of probed values of a program; it survives all rewriting
#
# An instrumentation is a custom call with the value as its operand. When an op is rewritten before it runs, the operand
# becomes the value that replaces its result.

_TARGET: Final = "vhlo_tools.probe"

#: Ops in whose regions values are instrumented. The regions of other ops are computed element by element, and not
#: stepped through.
_ENTERED: Final = CONTROL_FLOW | {"func.func"}


def is_instrumentation(op: Operation) -> bool:
    return str(op.name) == "stablehlo.custom_call" and op.attributes["call_target_name"].value == _TARGET


def site_of(op: Operation) -> int:
    return int(op.attributes["backend_config"].value)


def instrument(provider: Provider, module: ModuleOp, probe: Probe) -> list[ProbeSite]:
    """Instruments in place; the sites are indexed by the numbers in the instrumentation."""
    instrumenting = _Instrumenting(provider, probe)
    with module.context:
        for op in module.operation.regions[0].blocks[0].operations:
            if str(op.operation.name) == "func.func":
                name = str(op.operation.attributes["sym_name"].value)
                instrumenting.enter(op.operation, f"@{name}", name)
    return instrumenting.sites


class _Instrumenting:
    def __init__(self, provider: Provider, probe: Probe) -> None:
        self.sites: list[ProbeSite] = []
        self._ir = provider.ir
        self._probe = probe
        # The producers of values, for the operands of sites.
        self._origins: dict[Any, tuple[str, int]] = {}

    def enter(self, op: Operation, path: str, function: str) -> None:
        for number, region in enumerate(op.regions):
            within = path if str(op.name) == "func.func" else f"{path}/{number}"
            for block in region:
                for index, argument in enumerate(block.arguments):
                    self._origins[argument] = within, index
                # Listed before anything is inserted, because instrumentation is not part of the program.
                ops = [each.operation for each in block.operations]
                if self._probe.arguments and self._probe.wants(ARGUMENT, "", function):
                    for index, argument in enumerate(block.arguments):
                        site = ProbeSite(ARGUMENT, index, location_text(op), within, function)
                        self._instrument(argument, site, self._ir.InsertionPoint(ops[0]), op.location)
                for index, each in enumerate(ops[:-1]):
                    self._op(each, self._ir.InsertionPoint(ops[index + 1]), f"{within}/{index}:{each.name}", function)

    def _op(self, op: Operation, after: Any, path: str, function: str) -> None:
        name, location = str(op.name), location_text(op)
        for index, result in enumerate(op.results):
            self._origins[result] = path, index
        if self._probe.wants(name, location, function):
            operands = tuple(self._origins[value] for value in op.operands if value in self._origins)
            for index, result in enumerate(op.results):
                site = ProbeSite(name, index, location, path, function, operands)
                self._instrument(result, site, after, op.location)
        if name in _ENTERED:
            self.enter(op, path, function)

    def _instrument(self, value: Any, site: ProbeSite, place: Any, location: Any) -> None:
        # Other types a custom call does not take, or numpy does not represent.
        if not (text := str(value.type)).startswith("tensor<") or "index" in text or "*" in text:
            return
        string = self._ir.StringAttr.get
        attributes = {
            "call_target_name": string(_TARGET),
            "backend_config": string(str(len(self.sites))),
            "has_side_effect": self._ir.BoolAttr.get(True),
        }
        self._ir.Operation.create(
            "stablehlo.custom_call", operands=[value], attributes=attributes, loc=location, ip=place
        )
        self.sites.append(site)


def location_text(op: Operation) -> str:
    text = str(op.location)
    text = text[len("loc(") : -1] if text.startswith("loc(") else text
    return "" if text == "unknown" else text
