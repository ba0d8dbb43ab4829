"""Results that the StableHLO specification leaves open: ops that may return any of several results for some inputs.

Source: ``docs/spec.md`` of openxla/stablehlo, under the name of each op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Operation
from vhlo_tools.conversion import dimension_numbers
from vhlo_tools.errors import EngineError
from vhlo_tools.execution import CONTROL_FLOW, Executable, main_of
from vhlo_tools.records import dataclass
from vhlo_tools.verification.bisection import Trace, inlined
from vhlo_tools.verification.comparison import is_float

Arrays = Sequence[np.ndarray[Any, Any]]

#: The values of which any number may be combined with others, by the op that combines. Those of other ops may be
#: combined any number of times, whatever they are.
_NEUTRAL: Final[Mapping[str, int]] = {"add": 0, "multiply": 1, "xor": 0}
_COMMUTATIVE: Final = frozenset({*_NEUTRAL, "and", "maximum", "minimum", "or"})
#: The most index vectors whose windows are compared pair by pair.
_MOST_PAIRED: Final = 2048


@dataclass(frozen=True, slots=True)
class OpenResult:
    """An op that may return any of several results for these inputs.

    Attributes:
        op: The name of the op.
        location: Its source location, as MLIR prints it; empty if unknown.
        reason: What is left open.
    """

    op: str
    location: str
    reason: str

    def __str__(self) -> str:
        place = f" at {self.location}" if self.location else ""
        return f"the specification leaves this open: {self.op}{place}: {self.reason}"


def _name(op: Any) -> str:
    return str(getattr(op, "name", "")).partition(".")[2]


def _is_set(op: Operation, attribute: str) -> bool:
    return attribute in op.attributes and bool(op.attributes[attribute].value)


def _combiners(op: Operation) -> list[str | None]:
    """For each result of the body, the op that combines its two arguments; ``None`` if it is anything else."""
    block = op.regions[0].blocks[0]
    arguments = list(block.arguments)
    returned = list(list(block.operations)[-1].operation.operands)
    names: list[str | None] = []
    for number, value in enumerate(returned):
        made = value.owner
        pair = {arguments[number], arguments[number + len(returned)]}
        is_simple = _name(made) in _COMMUTATIVE and set(made.operands) == pair
        names.append(_name(made) if is_simple else None)
    return names


def _reduction(op: Operation, operands: Arrays) -> str | None:
    initial = operands[len(operands) // 2 :]
    for name, value in zip(_combiners(op), initial, strict=False):
        if name is not None and name in _NEUTRAL and (value != value.dtype.type(_NEUTRAL[name])).any():
            return f"the initial value {value} is not neutral for {name}, and may be combined any number of times"
    return None


def _sort(op: Operation, operands: Arrays) -> str | None:
    if _is_set(op, "is_stable") or len(operands) < 2:
        return None
    block = op.regions[0].blocks[0]
    (compared,) = (each.owner for each in list(block.operations)[-1].operation.operands)
    pairs = {frozenset(list(block.arguments)[at : at + 2]): at // 2 for at in range(0, len(block.arguments), 2)}
    key = pairs.get(frozenset(compared.operands)) if _name(compared) == "compare" else None
    if key is None:
        return "the sort is not stable, and elements may compare as equal"
    along = int(op.attributes["dimension"].value) if "dimension" in op.attributes else -1
    ordered = np.sort(operands[key].astype(np.float64 if is_float(operands[key].dtype) else operands[key].dtype), along)
    equal = np.diff(ordered, axis=along) == 0
    return "the sort is not stable, and some of its keys are equal" if equal.any() else None


def _index_vectors(op: Operation, indices: np.ndarray[Any, Any], numbers: Mapping[str, list[int]]) -> Any:
    (vector,) = numbers["index_vector_dim"]
    whole = indices[..., None] if vector == indices.ndim else np.moveaxis(indices, vector, -1)
    return whole.reshape(-1, whole.shape[-1]).astype(np.int64)


def _is_sorted(vectors: Any) -> bool:
    return all(tuple(one) <= tuple(other) for one, other in pairwise(vectors))


def _gather(op: Operation, operands: Arrays) -> str | None:
    vectors = _index_vectors(op, operands[1], dimension_numbers(op.attributes["dimension_numbers"]))
    if _is_set(op, "indices_are_sorted") and not _is_sorted(vectors):
        return "the indices are not sorted, although indices_are_sorted says so"
    return None


def _scatter(op: Operation, operands: Arrays) -> str | None:
    numbers = dimension_numbers(op.attributes["scatter_dimension_numbers"])
    middle = len(operands) // 2
    vectors = _index_vectors(op, operands[middle], numbers)
    if _is_set(op, "indices_are_sorted") and not _is_sorted(vectors):
        return "the indices are not sorted, although indices_are_sorted says so"
    is_unique = _is_set(op, "unique_indices")
    if not is_unique and None not in _combiners(op):
        return None
    if not _overlap(vectors, _window(operands[0], operands[middle + 1], numbers)):
        return None
    if is_unique:
        return "several updates are of one element, although unique_indices says that there are none"
    return "several updates are of one element, and their order matters"


def _window(operand: Any, updates: Any, numbers: Mapping[str, list[int]]) -> list[int]:
    """The sizes of windows along the indexed dimensions."""
    without = {*numbers.get("inserted_window_dims", ()), *numbers.get("input_batching_dims", ())}
    kept = [each for each in range(operand.ndim) if each not in without]
    sizes = dict(zip(kept, (updates.shape[each] for each in numbers.get("update_window_dims", ())), strict=True))
    return [sizes.get(each, 1) for each in numbers.get("scatter_dims_to_operand_dims", ())]


def _overlap(vectors: Any, window: list[int]) -> bool:
    if len(np.unique(vectors, axis=0)) < len(vectors):
        return True
    if set(window) <= {1} or len(vectors) > _MOST_PAIRED:
        return False
    near = (np.abs(vectors[:, None] - vectors[None]) < np.array(window)).all(-1)
    return bool(near.sum() > len(vectors))


def _division(op: Operation, operands: Arrays) -> str | None:
    if operands[1].dtype.kind in "iu" and (operands[1] == 0).any():
        return "integers are divided by zero"
    return None


def _conversion(op: Operation, operands: Arrays) -> str | None:
    (value,), element = operands, str(op.results[0].type.element_type)
    if not is_float(value.dtype) or not element.lstrip("u").startswith("i") or element == "i1":
        return None
    bits = int(element.lstrip("ui"))
    low, high = (0, 2.0**bits) if element.startswith("u") else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
    whole = np.trunc(value.astype(np.float64))
    is_inside = bool(((low <= whole) & (whole < high)).all())
    return None if is_inside else f"floats are converted that are not in the range of {element}"


def _random(op: Operation, operands: Arrays) -> str | None:
    if "rng_algorithm" in op.attributes and "DEFAULT" not in str(op.attributes["rng_algorithm"]):
        return None
    return "random numbers are of the algorithm of the implementation"


_RULES: Final[Mapping[str, Callable[[Operation, Arrays], str | None]]] = {
    "convert": _conversion,
    "divide": _division,
    "gather": _gather,
    "reduce": _reduction,
    "reduce_window": _reduction,
    "remainder": _division,
    "rng": _random,
    "rng_bit_generator": _random,
    "scatter": _scatter,
    "sort": _sort,
}


def open_outputs(executable: Executable, inputs: Sequence[Any]) -> list[OpenResult | None]:
    """For each array among the results of ``main``, an op whose result it depends on and these inputs leave open.

    The interpreter runs the program, for the operands. If it cannot, nothing is known to be open.
    """
    program = inlined(executable)
    (block,) = main_of(program.module, program.name).regions[0].blocks
    sites = dict(_sites(block, "@main"))
    returned = list(list(block.operations)[-1].operation.operands)
    opened: dict[Operation, OpenResult] = {}
    if any(_name(op) in _RULES for op in sites.values()):
        with TemporaryDirectory() as folder, suppress(EngineError):
            trace = Trace(program, executable.leaves_of(inputs), Path(folder) / "values")
            for number, value in enumerate(trace.values):
                op = sites.get(value.site.path)
                if op is None or op in opened or (rule := _RULES.get(_name(op))) is None:
                    continue
                operands = [each.read() for each in trace.operands(number)]
                if len(operands) == len(op.operands) and (reason := rule(op, operands)):
                    opened[op] = OpenResult(str(op.name), value.site.location, reason)
    reached: dict[Any, OpenResult] = {}
    for each in block.operations:
        if (cause := _cause(each.operation, opened, reached)) is not None:
            reached |= dict.fromkeys(each.operation.results, cause)
    return [reached.get(value) for value in returned]


def _sites(block: Any, path: str) -> Iterator[tuple[str, Operation]]:
    """The ops that probes see, by the paths of their sites."""
    for index, each in enumerate(block.operations):
        op, at = each.operation, f"{path}/{index}:{each.operation.name}"
        yield at, op
        if str(op.name) in CONTROL_FLOW:
            for number, region in enumerate(op.regions):
                for inner in region:
                    yield from _sites(inner, f"{at}/{number}")


def _cause(
    op: Operation, opened: Mapping[Operation, OpenResult], reached: Mapping[Any, OpenResult]
) -> OpenResult | None:
    """An op with regions depends on all that is in them."""
    found = opened.get(op) or next((reached[value] for value in op.operands if value in reached), None)
    inner = (each.operation for region in op.regions for block in region for each in block.operations)
    return found or next(filter(None, (_cause(each, opened, reached) for each in inner)), None)
