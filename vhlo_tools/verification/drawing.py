"""Drawing of inputs: domains of values, and inputs from them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, get_args

import numpy as np

from vhlo_tools.bindings import Operation, functions_of
from vhlo_tools.errors import EngineError
from vhlo_tools.execution import (
    OP_TRAITS,
    ArgumentType,
    DomainKind,
    Executable,
    main_of,
    nested_values,
    ops_where,
    parse_value_type,
)
from vhlo_tools.records import dataclass
from vhlo_tools.verification.comparison import is_complex, is_float

# Domains of arguments: the values for which the ops that use an argument are intended
#
# Source of the domains: the semantics of each op in the specification of StableHLO. Outside of them the ops have
# results too, but mostly ones that do not distinguish programs: NaN, and indices that are clamped to the last one.

#: In ascending order of precedence: if ops require several domains, the last one applies.
_ORDER: Final[tuple[DomainKind, ...]] = get_args(DomainKind)


@dataclass(frozen=True, slots=True)
class Domain:
    #: shift: below the number of bits; unit: -1 to 1; definite: positive definite matrices; index: 0 to below ``end``
    kind: DomainKind = "any"
    end: int = 0

    def narrowed(self, other: Domain) -> Domain:
        if self.kind == other.kind == "index":
            return self if self.end <= other.end else other
        return max(self, other, key=lambda each: _ORDER.index(each.kind))


_Rule = Callable[[Operation, int], Domain]

_MOST_VALUES: Final = 2000


def domain_of(argument: Any, functions: dict[str, Operation]) -> Domain:
    domain, seen = Domain(), {argument}
    pending = [argument]
    while pending and len(seen) < _MOST_VALUES:
        for use in pending.pop().uses:
            op, number = use.owner.operation, use.operand_number
            if (rule := _DOMAINS.get((str(op.name), number))) or (rule := _DOMAINS.get((str(op.name), None))):
                domain = domain.narrowed(rule(op, number))
            for value in _same_values(op, number, functions):
                if value not in seen:
                    seen.add(value)
                    pending.append(value)
    return domain


def _same_values(op: Operation, number: int, functions: dict[str, Operation]) -> Iterator[Any]:
    """Derived from the operand, or equal to it."""
    name = str(op.name)
    if name in _KEEP_DOMAINS:
        yield op.results[0]
    elif name == "stablehlo.optimization_barrier":
        yield op.results[number]
    elif name == "stablehlo.while":
        for region in op.regions:
            yield region.blocks[0].arguments[number]
        yield op.results[number]
    elif name == "func.call":
        called = functions.get(op.attributes["callee"].value)
        if called is not None and len(called.regions[0].blocks):
            yield called.regions[0].blocks[0].arguments[number]


_KEEP_DOMAINS: Final = ops_where(lambda traits: traits.keeps_domain)


def _plain(domain: Domain, op: Operation, number: int) -> Domain:
    return domain


def _slice_start(first: int, sizes: int | None) -> _Rule:
    """``first`` is the first start; the operand ``sizes`` has the shape of the slice, by default the result has it."""

    def rule(op: Operation, number: int) -> Domain:
        if number < first:
            return Domain()
        whole, part = op.operands[0].type, (op.results[0] if sizes is None else op.operands[sizes]).type
        axis = number - first
        if whole.is_dynamic_dim(axis) or part.is_dynamic_dim(axis):
            return Domain("index", 1)
        return Domain("index", max(1, whole.get_dim_size(axis) - part.get_dim_size(axis) + 1))

    return rule


def _indices(attribute: str, field: str) -> _Rule:
    """Indices into the dimensions that a field of an attribute lists."""
    listed = re.compile(rf"{field} = \[([\d, ]*)\]")

    def rule(op: Operation, number: int) -> Domain:
        type_ = op.operands[0].type
        said = listed.search(str(op.attributes[attribute]))
        axes = [int(each) for each in said[1].split(",") if each.strip()] if said else range(type_.rank)
        sizes = [1 if type_.is_dynamic_dim(axis) else type_.get_dim_size(axis) for axis in axes]
        return Domain("index", max(1, min(sizes, default=1)))

    return rule


#: The ranges of indices, by op and operand.
INDEX_RULES: Final[Mapping[tuple[str, int | None], _Rule]] = {
    ("stablehlo.case", 0): lambda op, number: Domain("index", len(op.regions)),
    ("stablehlo.dynamic_slice", None): _slice_start(1, None),
    ("stablehlo.dynamic_update_slice", None): _slice_start(2, 1),
    ("stablehlo.gather", 1): _indices("dimension_numbers", "start_index_map"),
    ("stablehlo.dynamic_gather", 1): _indices("dimension_numbers", "start_index_map"),
    # With one input; several inputs shift the operand number of the indices.
    ("stablehlo.scatter", 1): _indices("scatter_dimension_numbers", "scatter_dims_to_operand_dims"),
}

#: Rules by op and operand, ``None`` for any operand.
_DOMAINS: Final[Mapping[tuple[str, int | None], _Rule]] = {
    (name, number): INDEX_RULES[name, number] if kind == "index" else partial(_plain, Domain(kind))
    for name, traits in OP_TRAITS.items()
    for number, kind in traits.domains.items()
}


# Random inputs from a seed, in the domains of the argument types and of the ops that use the arguments

#: The fraction of elements that are edge cases, if these are requested.
_EDGES: Final = 0.25
#: The limit of integers, which are small like sizes, counts and classes.
_LARGEST_INTEGER: Final = 8
#: The limit of an input in bytes while it is drawn, and of its dimensions, which is that of numpy.
_LARGEST: Final = 8 << 30
_MOST_DIMENSIONS: Final = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32


@dataclass(frozen=True, slots=True)
class Drawing:
    """The parameters of random inputs.

    Attributes:
        seed: The seed; equal seeds yield equal inputs.
        edges: Whether a quarter of the elements are edge cases: zeros of both signs, ones, the smallest and largest
            values of the type, and for floats subnormal numbers.
        non_finite: Whether infinities and NaN are among the edge cases.
        size: The size of dynamic dimensions.
        scale: The factor of floats whose domain has no fixed limits: their standard deviation.
    """

    seed: int = 0
    edges: bool = False
    non_finite: bool = False
    size: int = 3
    scale: float = 1.0


def draw_inputs(executable: Executable, drawing: Drawing) -> tuple[Any, ...]:
    """Refuses more dimensions than numpy has, or more memory than is there, or than 8 GiB while drawing."""
    functions = functions_of(executable.module)
    main = main_of(executable.module, executable.name)
    chance = np.random.default_rng(drawing.seed)
    drawn: list[Any] = []
    for argument in main.regions[0].blocks[0].arguments:
        type_ = parse_value_type(str(argument.type))
        if not isinstance(type_, ArgumentType):
            drawn.append(None)
            continue
        shape = tuple(
            size if size is not None else drawing.size if bound is None else min(bound, drawing.size)
            for size, bound in zip(type_.shape, type_.bounds, strict=True)
        )
        # Numbers are drawn in 64 bits.
        size = math.prod(shape) * max(type_.dtype.itemsize, 8)
        if len(shape) > _MOST_DIMENSIONS or size > _LARGEST:
            raise EngineError(
                f"argument {len(drawn)} of {executable.name} has {len(shape)} dimensions and takes {size} bytes: "
                f"inputs of at most {_MOST_DIMENSIONS} dimensions and {_LARGEST} bytes are drawn"
            )
        try:
            drawn.append(_draw(chance, type_, shape, domain_of(argument, functions), drawing))
        except MemoryError as error:
            raise EngineError(
                f"there is not enough memory to draw argument {len(drawn)} of {executable.name}, {size} bytes"
            ) from error
    return nested_values(iter(drawn), executable.signature.parameters)


def _draw(
    chance: np.random.Generator, type_: ArgumentType, shape: tuple[int, ...], domain: Domain, drawing: Drawing
) -> np.ndarray[Any, Any]:
    dtype = type_.dtype
    if is_complex(dtype):
        array = np.empty(shape, dtype)
        array.real, array.imag = (_floats(chance, shape, domain, drawing.scale) for _ in range(2))
        return array
    floating = is_float(dtype)
    if dtype.name == "float8_e8m0fnu":
        # The type has only powers of two.
        array = np.exp2(chance.integers(-3, 4, shape)).astype(dtype)
    elif floating:
        array = np.asarray(_floats(chance, shape, domain, drawing.scale)).astype(dtype)
    elif dtype == np.bool_:
        return np.asarray(chance.integers(0, 2, shape).astype(dtype))
    else:
        array = np.asarray(_integers(chance, shape, domain, dtype)).astype(dtype)
    if drawing.edges or drawing.non_finite:
        edges = _edges(dtype, domain, drawing)
        if len(edges) and domain.kind not in ("definite", "index"):
            chosen = chance.random(shape) < _EDGES
            array = np.where(chosen, edges[chance.integers(0, len(edges), shape)], array).astype(dtype)
    return array


def _floats(chance: np.random.Generator, shape: tuple[int, ...], domain: Domain, scale: float) -> np.ndarray[Any, Any]:
    drawn = np.asarray(chance.normal(size=shape)) * scale
    # So far from zero, whatever the scale.
    least = 0.125 * min(scale, 1.0)
    if domain.kind == "unit":
        return np.asarray(chance.uniform(-1, 1, shape))
    if domain.kind == "positive":
        return np.abs(drawn) + least
    if domain.kind == "above-one":
        return np.abs(drawn) + 1.0
    if domain.kind == "nonzero":
        return np.asarray(np.where(drawn < 0, drawn - least, drawn + least))
    if domain.kind == "definite" and len(shape) >= 2 and shape[-1] == shape[-2]:
        return drawn @ np.swapaxes(drawn, -1, -2) + shape[-1] * np.eye(shape[-1])
    return drawn


def _integers(
    chance: np.random.Generator, shape: tuple[int, ...], domain: Domain, dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    low, high = _range(dtype)
    if domain.kind == "index":
        return chance.integers(0, min(domain.end, high + 1), shape)
    if domain.kind == "shift":
        return chance.integers(0, int(_about(dtype).bits), shape)
    drawn = chance.integers(max(low, -_LARGEST_INTEGER), min(high, _LARGEST_INTEGER) + 1, shape)
    return np.asarray(np.where(drawn == 0, 1, drawn)) if domain.kind in ("nonzero", "positive") else drawn


def _about(dtype: np.dtype[Any]) -> Any:
    """``bits`` may be fewer than those of its bytes."""
    import ml_dtypes

    return ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]


def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    about = _about(dtype)
    return int(about.min), int(about.max)


def _edges(dtype: np.dtype[Any], domain: Domain, drawing: Drawing) -> np.ndarray[Any, Any]:
    if not is_float(dtype):
        low, high = _range(dtype)
        numbers = dict.fromkeys(each for each in (low, low + 1, -1, 0, 1, high - 1, high) if low <= each <= high)
        kept = [each for each in numbers if drawing.edges and _suits(each, domain, dtype)]
        return np.array(kept, np.int64 if low else np.uint64).astype(dtype)
    import ml_dtypes

    about: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    floats: list[float] = []
    if drawing.edges:
        positive = [1.0, *(float(each) for each in (about.smallest_subnormal, about.smallest_normal, about.max))]
        floats = [0.0, -0.0, *positive, *(-each for each in positive)]
    if drawing.non_finite:
        floats += [np.inf, -np.inf, np.nan]
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.array(floats).astype(dtype)
    return np.asarray(found[np.array([_suits(float(each), domain, dtype) for each in found], bool)])


def _suits(value: float, domain: Domain, dtype: np.dtype[Any]) -> bool:
    if value != value:
        return True
    if domain.kind == "shift":
        return 0 <= value < int(_about(dtype).bits)
    return {
        "nonzero": value != 0,
        "positive": value > 0,
        "above-one": value >= 1,
        "unit": -1 <= value <= 1,
    }.get(domain.kind, True)
