"""Random programs under construction, with what numpy makes of every value of them.

Floats are integers small enough that all sums and products are exact in their types, in any order: :class:`UnfitError`
says that a result would not be. Only a value with an `error` is rounded, and only ops that move elements take one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final, NamedTuple, TypeVar

import ml_dtypes
import numpy as np
from numpy.random import Generator
from support.element_types import EVERY_TYPE, TYPES

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
T = TypeVar("T")

SIGNED: Final = ("i8", "i16", "i32", "i64", "i2", "i4")
UNSIGNED: Final = ("ui8", "ui16", "ui32", "ui64", "ui2", "ui4")
INTEGERS: Final = SIGNED + UNSIGNED
FLOATS: Final = ("f32", "f64", "bf16", "f16")
#: jaxlib 0.10.2 has no floats of six bits on devices; f8E8M0FNU has neither zero nor negative numbers.
NARROW: Final = (*(each for each in TYPES if each.startswith("f8") and "E8M0" not in each), "f4E2M1FN")
COMPLEX: Final = ("complex<f32>", "complex<f64>")
REAL: Final = (*INTEGERS, *FLOATS, *NARROW)
NUMBERS: Final = (*REAL, *COMPLEX)
EVERY: Final = (*NUMBERS, "i1", "f8E8M0FNU")
#: XLA packs elements of these, and has less for them: no sorts, no convolutions, no reductions beside other types.
PACKED: Final = ("i2", "ui2", "i4", "ui4")
#: Those of an index, whose values are drawn to be within the type.
INDICES: Final = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32")

#: Sizes around which XLA changes its ways; the most elements of a small, a usual and a large program.
THRESHOLDS: Final = (1024, 2048, 4096, 8192, 16384, 32768)
SMALL: Final = (1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 8, 16, 31, 64, 128)
MOST: Final = {"small": 600, "usual": 40_000, "large": 1_000_000}
#: The most evaluations of a program in the interpreter, which makes four million a second, and of one op elsewhere.
STEPS: Final = 300_000
EVALUATIONS: Final = 4_000_000


class UnfitError(Exception):
    """An op cannot take what was drawn: its result would not be exact, or is left open, or would be too large."""


def part_of(element: str) -> str:
    return element.removeprefix("complex<").removesuffix(">")


def widest(element: str) -> Any:
    """Return the type in which sums and products of a type are exact, or wrap as in their own."""
    if element in ("i1", "ui64"):
        return TYPES[element]
    return np.int64 if element in INTEGERS else np.complex128 if element in COMPLEX else np.float64


def facts_of(element: str) -> Any:
    """Return the limits of a type, or of the parts of complex numbers."""
    info: Any = ml_dtypes.iinfo if element in INTEGERS else ml_dtypes.finfo
    return info(EVERY_TYPE[part_of(element)])


def greatest(element: str) -> int:
    """Return the number up to which all integers are exact."""
    facts = facts_of(element)
    return int(facts.max) if element in INTEGERS else int(min(2 ** (facts.nmant + 1), float(facts.max)))


@dataclass(frozen=True, eq=False)
class Value:
    """A value of a program, and what numpy makes of it."""

    name: str
    element: str
    shape: Shape
    array: Array
    signs: bool = True  # whether the signs of zeros are defined
    error: float = 0  # how far the elements may be from those of numpy
    cost: int = 0  # what computing it took in the interpreter, in evaluations

    def __str__(self) -> str:
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element}>"

    @property
    def wide(self) -> Array:
        return np.asarray(self.array.astype(widest(self.element)))

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_finite(self) -> bool:
        return self.element in (*INTEGERS, "i1") or bool(np.isfinite(self.wide).all())


Values = Sequence[Value]


class Node(NamedTuple):
    """A line of a program: an op with its regions."""

    text: str
    uses: Values
    results: Values
    function: str = ""  # what it calls


class Drawn(NamedTuple):
    """A program, its inputs, and its results."""

    text: str
    inputs: list[Array]
    results: Values
    nodes: Sequence[Node] = ()

    @property
    def cost(self) -> int:
        return sum(result.cost for node in self.nodes for result in node.results[:1])


def attribute(value: Any) -> str:
    """Return the text of an attribute: of a text as it stands, of a number, of integers, or of pairs of them."""
    if isinstance(value, str | bool):
        return str(value) if isinstance(value, str) else str(value).lower()
    if isinstance(value, int):
        return f"{value} : i64"
    array = np.asarray(value, int)
    if array.ndim == 2:
        return f"dense<{array.tolist() if len(array) else ''}> : tensor<{len(array)}x2xi64>"
    return f"array<i64: {', '.join(map(str, array))}>" if len(array) else "array<i64>"


def exact(given: Any, element: str) -> Array:
    """Return numbers in a type that has them exactly; integers wrap."""
    wide: Array = np.asarray(given)
    if wide.dtype == EVERY_TYPE[element]:
        return np.asarray(wide)
    array = wide.astype(EVERY_TYPE[element])
    if element not in (*INTEGERS, "i1"):
        back = array.astype(widest(element))
        if not np.all((back == wide) | ((back != back) & (wide != wide))):
            raise UnfitError("a result is rounded")
    return np.asarray(array)


def must(condition: Any) -> None:
    if not np.all(condition):
        raise UnfitError("the specification leaves the result open, or it may be rounded")


def return_text(nodes: Sequence[Node], results: Values, name: str) -> Drawn:
    """Return a function that computes results, without the ops that these do not need."""
    needed, kept = {each.name for each in results}, list[Node]()
    for node in reversed(nodes):
        if any(each.name in needed for each in node.results):
            kept.insert(0, node)
            needed.update(each.name for each in node.uses)
    made = {each.name for node in kept for each in node.results}
    used = {each.name: each for node in kept for each in node.uses} | {each.name: each for each in results}
    inputs = [each for each in used.values() if each.name not in made]
    given = ", ".join(f"{each.name}: {each}" for each in inputs)
    types = ", ".join(map(str, results))
    body = [node.text for node in kept]
    end = f"return {', '.join(each.name for each in results)} : {types}"
    functions = dict.fromkeys(node.function for node in kept if node.function)
    lines = (f"func.func @{name}({given}) -> ({types}) {{", *body, end, "}", *functions)
    return Drawn("\n".join(lines), [each.array for each in inputs], results, kept)


@dataclass
class Program:
    """A program under construction."""

    rng: Generator
    nodes: list[Node] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)  # those that later ops may take
    count: int = 0  # the names that were given
    #: Whether ops take what the one before them made, of the types and sizes that XLA has kernels for.
    is_sequence: bool = False

    def __post_init__(self) -> None:
        rng = self.rng
        self.size = rng.choice(
            ["small", "usual", "large"], p=[0.15, 0.83, 0.02] if self.is_sequence else [0.5, 0.48, 0.02]
        )
        ranks = (1, 2, 2, 3, 4, 7, 7, 8, 8) if self.is_sequence else (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 7, 8, 8)
        self.rank = pick(rng, ranks)
        self.few = rng.random() < 0.5  # whether numbers are small
        self.special = rng.random() < 0.15  # whether floats are NaN, infinite or minus zero as well
        self.is_piped = 0.95 if self.is_sequence else pick(rng, (1.0, 0.8, 0.5))
        self.element = self.pick_element(EVERY)

    # Values

    def pick_element(self, elements: Sequence[str]) -> str:
        if "f32" in elements and self.rng.random() < (0.45 if self.is_sequence else 0.2):
            return "f32"
        usual = [each for each in (*FLOATS, "i32") if each in elements]
        return pick(self.rng, usual if usual and self.rng.random() < 0.4 else elements)

    def element_of(self, elements: Sequence[str]) -> str:
        """Return the element type of most values of this program, if it may be that one."""
        is_usual = self.element in elements and self.rng.random() < 0.8
        return self.element if is_usual else self.pick_element(elements)

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def argument(self, element: str, array: Any) -> Value:
        array = exact(array, element)
        value = Value(self.name(), element, array.shape, array)
        self.values.append(value)
        return value

    def fresh(self, element: str, shape: Shape, terms: int = 1, power: int = 1, top: int = 1 << 62) -> Value:
        """Return an argument: `terms` products of `power` of its numbers can be summed exactly."""
        return self.argument(element, self.numbers(element, shape, terms, power, top))

    def numbers(self, element: str, shape: Shape, terms: int = 1, power: int = 1, top: int = 1 << 62) -> Any:
        rng = self.rng
        if element == "i1":
            return rng.random(shape) < 0.5
        if element == "f8E8M0FNU":
            return 2.0 ** rng.integers(-3, 4, shape)
        if element in INTEGERS:
            info = facts_of(element)
            limit = min(3, top) if self.few else top
            low, high = max(int(info.min), -limit), min(int(info.max), limit)
            return rng.integers(low, high, shape, np.uint64 if element == "ui64" else np.int64, endpoint=True)
        if element in COMPLEX:
            real, other = (self.numbers(part_of(element), shape, terms * 2**power, power, top) for _ in range(2))
            return np.nan_to_num(real, posinf=1, neginf=-1) + 1j * np.nan_to_num(other, posinf=1, neginf=-1)
        most = min(int((greatest(element) / terms) ** (1 / power)), top)
        limit = min(3, most) if self.few else most
        if limit:
            array = rng.integers(-limit, limit, shape, endpoint=True).astype(float)
        else:
            array = np.where(rng.random(shape) < greatest(element) / terms / 4, rng.choice((-1.0, 1.0), shape), 0.0)
        if self.special and terms == power == 1 and top > 4:
            odd = [-0.0, *(each for each in (np.inf, -np.inf, np.nan) if holds(element, each))]
            array = np.where(rng.random(shape) < 0.1, rng.choice(odd, shape), array)
        return array

    def take(self, fits: Callable[[Value], Any], otherwise: Callable[[], Value]) -> Value:
        """Return a value that fits, the newest most often, or a new one; none that is empty, as of gathers."""
        filled = (each for each in self.values if each.array.size)
        if self.rng.random() < self.is_piped and (options := [each for each in filled if fits(each)]):
            is_newest = self.rng.random() < (0.8 if self.is_sequence else 0.6)
            return options[-1] if is_newest else pick(self.rng, options)
        return otherwise()

    def any(
        self, elements: Sequence[str] = EVERY, least: int = 0, rounded: bool = False, most: int = 8, **bounds: int
    ) -> Value:
        """Return a value of one of some element types, of a rank of at least `least` and at most `most`."""
        return self.take(
            lambda v: v.element in elements and least <= v.rank <= most and (rounded or not v.error),
            lambda: self.fresh(self.element_of(elements), self.shape(least, most), **bounds),
        )

    def like(self, value: Value, element: str = "", **bounds: int) -> Value:
        """Return a value of the same shape, and of the same or another element type."""
        element = element or value.element
        return self.take(
            lambda v: v.shape == value.shape and v.element == element and not v.error,
            lambda: self.fresh(element, value.shape, **bounds),
        )

    def constant(self, element: str, number: Any, shape: Shape = ()) -> Value:
        scalar = np.array(number).astype(EVERY_TYPE[element])
        text = str(scalar).lower()
        if element in COMPLEX:
            text = f"({scalar.real}, {scalar.imag})"
        elif element not in (*INTEGERS, "i1"):
            bits = int.from_bytes(scalar.tobytes(), "little")
            text = str(float(scalar)) if np.isfinite(scalar) else f"0x{bits:0{scalar.itemsize * 2}X}"
        kind = Value("", element, shape, scalar)
        return self.emit(
            "constant", [], element, np.full(shape, scalar), value=f"dense<{text}> : {kind}", signs=True, kept=False
        )

    def integers(self, numbers: Any, element: str = "i64") -> Value:
        """Return a constant of one dimension."""
        array = exact(np.asarray(numbers, np.int64), element)
        text = f"dense<{array.tolist()}> : tensor<{len(array)}x{element}>"
        return self.emit("constant", [], element, array, value=text, signs=True, kept=False)

    def is_argument(self, value: Value) -> bool:
        return not any(value in node.results for node in self.nodes)

    # Ops

    def emit(self, name: str, operands: Values, element: str, wide: Any, **attrs: Any) -> Value:
        """Append an op of one result."""
        return self.several(name, operands, [element], [wide], **attrs)[0]

    def several(
        self,
        name: str,
        operands: Values,
        elements: Sequence[str],
        arrays: Sequence[Any],
        *,
        region: str = "",
        signs: bool = False,
        error: float = 0,
        cost: int = 0,
        uses: Values = (),
        kept: bool = True,
        **attrs: Any,
    ) -> list[Value]:
        """Append an op, whose regions use values as well; results that are rounded are given in their own type."""
        made = self.name()
        results = []
        for i, (element, wide) in enumerate(zip(elements, arrays, strict=True)):
            array = np.asarray(wide).astype(EVERY_TYPE[element]) if error else exact(wide, element)
            label = made if len(elements) == 1 else f"{made}#{i}"
            signed = signs and all(each.signs for each in operands)
            must(array.size <= MOST["large"])
            results.append(Value(label, element, array.shape, array, signed, error, cost or array.size))
        names = ", ".join(each.name for each in operands)
        types = f"({', '.join(map(str, operands))}) -> ({', '.join(map(str, results))})"
        texts = ", ".join(f"{key} = {attribute(value)}" for key, value in attrs.items())
        properties = f" <{{{texts}}}>" if attrs else ""
        count = f":{len(results)}" if len(results) > 1 else ""
        text = f'{made}{count} = "stablehlo.{name}"({names}){properties}{region and " " + region} : {types}'
        self.add(Node(text, (*operands, *uses), results), kept)
        return results

    def add(self, node: Node, kept: bool = True) -> None:
        self.nodes.append(node)
        self.values += node.results if kept else ()

    def attempt(self, step: Callable[[Program], Any], times: int = 6) -> bool:
        """Append an op if one can be drawn, or nothing."""
        for _ in range(times):
            before = len(self.nodes), len(self.values)
            try:
                step(self)
            except UnfitError:
                del self.nodes[before[0] :], self.values[before[1] :]
            else:
                return True
        return False

    def returning(self) -> Drawn:
        """Return what nothing uses, and sometimes another value."""
        used = {each.name for node in self.nodes for each in node.uses}
        made = [each for node in self.nodes for each in node.results if each in self.values]
        results = [each for each in made if each.name not in used]
        if self.rng.random() < 0.15:
            results += [each for each in made if each.name in used][-1:]
        return return_text(self.nodes, results, "main")

    # Shapes

    def shape(self, least: int = 0, most: int = 8) -> Shape:
        """Return sizes: near a threshold, or any; of one dimension beside small ones, or of all together."""
        rng, limit = self.rng, MOST[self.size]
        rank = 0 if least == 0 and rng.random() < 0.03 else min(max(self.rank, least, 1), most)
        if self.size == "small":
            huge = int(limit ** rng.random())
        elif self.size == "large":
            huge = int(MOST["usual"] * (limit / MOST["usual"]) ** rng.random())
        elif rng.random() < 0.5:
            huge = pick(rng, THRESHOLDS) + int(rng.integers(-1, 2))
        else:
            huge = int(2_000 * 20 ** rng.random())
        sizes = [1] * rank
        if not rank:
            return ()
        if rng.random() < (0.5 if rank > 5 else 0.3):
            while prod(sizes) * 3 <= huge:
                sizes[rng.integers(rank)] *= pick(rng, (2, 2, 3))
            return tuple(sizes)
        is_split = rng.random() < 0.5
        room, sizes = huge if is_split else limit // huge, []
        for _ in range(rank - 1):
            size = pick(rng, SMALL)
            sizes.append(size if size <= room else 1)
            room //= sizes[-1]
        return tuple(map(int, rng.permutation([*sizes, room if is_split else huge])))

    def axes(self, rank: int) -> list[int]:
        count = 1 if self.rng.random() < 0.5 else self.rng.integers(1, rank + 1)
        return sorted(map(int, self.rng.choice(rank, count, replace=False)))


def holds(element: str, number: float) -> bool:
    """Return whether a type has an infinity, or a NaN."""
    if element == "f4E2M1FN":
        return False
    seen = float(np.array(number).astype(EVERY_TYPE[element]))
    return seen == number or (number != number and seen != seen)


def pick(rng: Generator, options: Sequence[T]) -> T:
    return options[int(rng.integers(len(options)))]
