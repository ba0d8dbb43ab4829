"""Constraints of StableHLO's specification that MLIR's verifier does not check, as rules on the ops of a file.

Which these are, and what engines make of programs that violate them, was measured (`tests/conformance/constraints.py`).
A rule says nothing of what it cannot read, such as types, sizes and groups that are known only when a program runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vhlo_tools.bytecode import File, Head, Place, SourceLocations, attributes_of, program_name, visit
from vhlo_tools.compat.uses import Structures
from vhlo_tools.findings import Finding, Level
from vhlo_tools.lazy import pattern

if TYPE_CHECKING:
    from vhlo_tools.spec import Structure

_MODULES: Final = ("builtin.module", "vhlo.module_v1")
#: Longer tensors are not examined.
_MOST: Final = 10_000
_VERSION: Final = pattern(r"_v\d+$")


class Checked(NamedTuple):
    """What rules examine of an op."""

    attributes: Mapping[str, Any]
    operands: Sequence[Structure]  # types
    results: Sequence[Structure]  # types
    bodies: Sequence[Sequence[Structure]]  # of each region, the types of its arguments
    devices: (
        tuple[int, int] | None
    )  # the numbers of replicas and partitions that the module was made for, if it says so


#: Returns what was found and expected, or ``None`` if the constraint holds; it may rely on what the verifier checks.
Rule = Callable[[Checked], str | None]


class Constraint(NamedTuple):
    number: str  # as in the specification, such as ``C3``
    rule: Rule
    engines: str  # what becomes of a program that violates it
    level: Level = "error"  # a warning if engines agree, and a note if producers count on that
    is_silent: bool = False  # whether an engine returns wrong numbers without a word

    def violated_by(self, op: Checked) -> str | None:
        """What was found and expected, or ``None`` if it holds, or cannot be examined: bytes are not verified."""
        try:
            return self.rule(op)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return None


# What types and attributes say; None where they do not


def _shape(kind: Structure) -> list[int] | None:
    shape: list[int] | None = kind.get("shape") if kind.get("type") == "tensor_v1" else None
    return None if shape is None or any(size < 0 for size in shape) else shape


def _element(kind: Structure) -> str | None:
    """The element type as in text; ``None`` for quantized ones, to which other rules apply."""
    return _spelled(kind["element"]) if kind.get("type") == "tensor_v1" else None


def _spelled(element: Structure) -> str | None:
    name = str(element.get("type")).removesuffix("_v1")
    if name == "complex":
        inner = _spelled(element["element"])
        return inner and f"complex<{inner}>"
    return None if name.startswith("quant") else "i1" if name == "bool" else name


def _width(element: str) -> tuple[str, int]:
    """The kind of an element type, within which one can be promoted to another, and its width."""
    match = re.search(r"(complex<f|ui|i|f)(\d+)", element.replace("bf", "f").replace("tf32", "f19"))
    if match is None or element == "i1":
        return element, 0
    return match[1].replace("ui", "i"), int(match[2])


def _numbers(attribute: Any) -> list[int] | None:
    """The integers of 64 bits in a tensor."""
    shape = _shape(attribute["type"]) if isinstance(attribute, dict) and "data" in attribute else None
    if shape is None or not re.fullmatch(r"(?:[0-9a-f]{16})*", attribute["data"]):
        return None
    data = bytes.fromhex(attribute["data"])
    found = [int.from_bytes(data[at : at + 8], "little", signed=True) for at in range(0, len(data), 8)]
    count = prod(shape)
    return None if count > _MOST else found * count if len(found) == 1 else found


def _value(attribute: Any) -> Any:
    return attribute.get("case", attribute.get("value")) if isinstance(attribute, dict) else None


# Rules of one op


def _compare_type(*, orders: bool) -> Rule:
    """``orders`` is whether the result depends on it: not on equality of integers."""

    def rule(op: Checked) -> str | None:
        found, element = _value(op.attributes.get("compare_type")), _element(op.operands[0])
        # A case that the data do not name is of a newer version.
        if element is None or not isinstance(found, str) or found == "NOTYPE":
            return None
        is_integer = element.startswith(("ui", "i"))
        if element.startswith("complex"):
            fitting = ["FLOAT"]
        elif is_integer:
            fitting = ["UNSIGNED" if element.startswith("ui") or element == "i1" else "SIGNED"]
        else:
            fitting = ["FLOAT", "TOTALORDER"]
        is_equality = is_integer and _value(op.attributes.get("comparison_direction")) in ("EQ", "NE")
        is_weak = found == "WEAKORDER" and fitting[0] == "FLOAT"  # of floats, since 1.22.0
        if found in fitting or is_weak or is_equality == orders:
            return None
        return f"compare_type is {found}, expected {' or '.join(fitting)} for {element}"

    return rule


def _precisions(op: Checked) -> str | None:
    # None is what an op without the attribute has in VHLO.
    config = op.attributes.get("precision_config")
    count = len(config.get("elements", ())) if isinstance(config, dict) else 0
    return f"precision_config has {count} element, expected 2" if count == 1 else None


def _factors(op: Checked) -> str | None:
    left, right = map(_element, op.operands[:2])
    if left is None or right is None or left == right:
        return None
    return f"rhs has elements of {right}, expected {left} as lhs"


def _product(op: Checked) -> str | None:
    left, result = _element(op.operands[0]), _element(op.results[0])
    if left is None or result is None or left == result:
        return None
    return f"the result has elements of {result}, expected {left} as lhs"


def _fft_length(op: Checked) -> str | None:
    length, shape = _numbers(op.attributes.get("fft_length")), _shape(op.operands[0])
    if length is None or shape is None or _value(op.attributes.get("fft_type")) not in ("FFT", "IFFT"):
        return None
    expected = shape[len(shape) - len(length) :]
    if length == expected:
        return None
    # The specification names real operands alone.
    return f"fft_length is {length}, expected {expected}, the sizes of the operand, complex ones included"


def _state_type(op: Checked) -> str | None:
    given, returned = _element(op.operands[0]), _element(op.results[0])
    return None if given == returned else f"output_state has elements of {returned}, expected {given} of initial_state"


def _state_size(op: Checked) -> str | None:
    shape, algorithm = _shape(op.operands[0]), _value(op.attributes.get("rng_algorithm"))
    sizes = {"THREE_FRY": (2,), "PHILOX": (2, 3)}.get(str(algorithm))
    if sizes is None or shape is None or _element(op.operands[0]) not in ("ui64", "i64") or shape[0] in sizes:
        return None
    return f"initial_state has {shape[0]} numbers, expected {' or '.join(map(str, sizes))} for {algorithm}"


def _convolved(op: Checked) -> str | None:
    left, right, result = map(_shape, (*op.operands[:2], *op.results))
    value = {key: _value(each) for key, each in op.attributes.items()}
    batch, feature = value.get("output_batch_dimension"), value.get("output_feature_dimension")
    if left is None or right is None or result is None or batch is None or feature is None:
        return None
    batches = left[value["input_batch_dimension"]] // value["batch_group_count"]
    expected = {batch: batches, feature: right[value["kernel_output_feature_dimension"]]}
    wrong = {at: size for at, size in expected.items() if at < len(result) and result[at] != size}
    at = min(wrong, default=0)
    return f"dimension {at} of the result has size {result[at]}, expected {wrong[at]}" if wrong else None


def _convolved_rank(op: Checked) -> str | None:
    left, result = _shape(op.operands[0]), _shape(op.results[0])
    if left is None or result is None or len(left) == len(result):
        return None
    return f"the result has rank {len(result)}, expected {len(left)}"


# Rules of several ops, for the operands that they are about


def _same_elements(first: slice, second: slice, what: str) -> Rule:
    """Elements of one type in pairs of operands."""

    def rule(op: Checked) -> str | None:
        count = len(op.results)
        pairs = zip(_part(op.operands, first, count), _part(op.operands, second, count), strict=False)
        for one, other in ((_element(one), _element(other)) for one, other in pairs):
            if one and other and one != other:
                return f"{what} has elements of {other}, expected {one}"
        return None

    return rule


def _part(operands: Sequence[Structure], part: slice, count: int) -> Sequence[Structure]:
    """Part of the operands of an op with ``count`` results; ``part`` is of an op with one."""
    return operands[part.start * count : part.stop * count]


def _combines(region: int = 0, *, widens: bool = True, each: bool = True) -> Rule:
    """A region takes two values of a type, for each input or once for all; to which inputs can be promoted."""

    def rule(op: Checked) -> str | None:
        taken = [_element(kind) for kind in op.bodies[region]] if region < len(op.bodies) else []
        half = len(taken) // 2
        given = [_element(kind) for kind in op.operands[: len(op.results) if each else None]]
        pairs = [(element, taken[i % half], taken[i % half + half]) for i, element in enumerate(given) if half]
        for element, one, other in pairs:
            if not (element and one and other):
                continue
            (kind, width), (wide, most) = _width(element), _width(one)
            fits = kind == wide and width <= most if widens else element == one
            if one != other or not fits:
                to = "or a wider type" if widens else "the element type of the operand"
                return f"its region takes {one} and {other}, expected twice {element}, {to}"
        return None

    return rule


def _gathered(dimension: str, *, divides: bool) -> Rule:
    """The size of results along a dimension, which is that of operands times or by the size of a group."""

    def rule(op: Checked) -> str | None:
        at, size = _value(op.attributes.get(dimension)), _group_size(op)
        for operand, result in zip(map(_shape, op.operands), map(_shape, op.results), strict=False):
            if at is None or not size or operand is None or result is None:
                continue
            expected = operand[at] // size if divides else operand[at] * size
            if result[at] != expected:
                return f"dimension {at} of the result has size {result[at]}, expected {expected} for groups of {size}"
        return None

    return rule


def _group_size(op: Checked) -> int | None:
    groups = op.attributes.get("replica_groups", {})
    numbers = _numbers(groups)
    if not numbers or min(numbers) < 0 or len(groups["type"]["shape"]) != 2:
        return None  # all devices, or groups of several sizes
    size: int = groups["type"]["shape"][1]
    if _is_cross_partition(op):
        return size * op.devices[1] if op.devices else None
    return size


def _is_cross_partition(op: Checked) -> bool:
    """``cross_replica_and_partition``, where a group has all partitions of its replicas."""
    is_global = _value(op.attributes.get("use_global_device_ids"))
    return (_value(op.attributes.get("channel_id")) or 0) > 0 and not is_global


def _has_channel(op: Checked) -> str | None:
    channel = _value(op.attributes.get("channel_id")) or 0
    if not _value(op.attributes.get("use_global_device_ids")) or channel > 0:
        return None
    return f"channel_id is {channel}, expected a positive one with use_global_device_ids"


def _grouped(*, by_partition: bool) -> Rule:
    """Groups of as many devices as the module says; ``by_partition`` is for ops whose channel means partitions."""

    def rule(op: Checked) -> str | None:
        numbers = [each for each in _numbers(op.attributes.get("replica_groups")) or () if each >= 0]
        if not numbers or op.devices is None:
            return None
        replicas, partitions = op.devices
        has_channel = (_value(op.attributes.get("channel_id")) or 0) > 0
        if by_partition:
            expected = partitions if has_channel else replicas
        else:
            expected = replicas * partitions if _value(op.attributes.get("use_global_device_ids")) else replicas
        if len(numbers) == expected:
            return None
        return f"its groups have {len(numbers)} devices, expected {expected} of {replicas} x {partitions} in the module"

    return rule


def _ids(attribute: str) -> Rule:
    """Numbers of replicas, or of partitions if the op has a channel."""

    def rule(op: Checked) -> str | None:
        numbers = _numbers(op.attributes.get(attribute)) or ()
        most = op.devices[(_value(op.attributes.get("channel_id")) or 0) > 0] if op.devices else None
        wrong = [each for each in numbers if each < 0 or (most is not None and each >= most)]
        below = "" if most is None else f" below {most}, of the devices of the module"
        return f"{attribute} has {wrong[0]}, expected natural numbers{below}" if wrong else None

    return rule


def _pairs(test: Callable[[list[int], list[int]], bool], expected: str) -> Rule:
    """The sources and targets of a transfer."""

    def rule(op: Checked) -> str | None:
        pairs = op.attributes.get("source_target_pairs", {})
        numbers = _numbers(pairs)
        if not numbers:
            return None
        width = pairs["type"]["shape"][-1]
        sources, targets = numbers[::width], numbers[1::width]
        return None if test(sources, targets) else f"source_target_pairs are {numbers}, expected {expected}"

    return rule


def _is_pairs(op: Checked) -> str | None:
    pairs = op.attributes.get("source_target_pairs", {})
    shape = _shape(pairs["type"]) if _numbers(pairs) else None
    return f"source_target_pairs has the shape {shape}, expected Nx2" if shape and shape[1:] != [2] else None


def _scattered(op: Checked) -> str | None:
    # One operand, the indices, stands between inputs and updates.
    count = len(op.results)
    updates = op._replace(operands=[*op.operands[:count], *op.operands[count + 1 :]])
    return _same_elements(slice(0, 1), slice(1, 2), "an update")(updates)


_REFUSED: Final = "one of the interpreter and XLA refuses it"
_DIES: Final = "it ends the process of the interpreter, and XLA refuses it or returns other types than it says"
_UNWRITTEN: Final = "XLA leaves a part of the result unwritten, without a word"
_OTHERS: Final = "XLA runs it on other devices than it is for, without a word, and the interpreter refuses it"
_WIDENED: Final = "producers write it, and the interpreter and XLA take it"
_UNHEEDED: Final = "the interpreter and XLA do not heed it"
_CHANNELS: Final = Constraint("C4", _has_channel, _REFUSED)
_TRANSFER: Final = (
    Constraint("C1", _is_pairs, _UNHEEDED, "warning"),
    Constraint("C2", _pairs(lambda s, t: len({*s}) == len(s), "each source once"), _UNHEEDED, "warning"),
    Constraint("C3", _pairs(lambda s, t: len({*t}) == len(t), "each target once"), _UNHEEDED, "warning"),
    Constraint("C4", _ids("source_target_pairs"), _UNHEEDED, "warning"),
)

#: The rules of each op, by its name without a version.
CONSTRAINTS: Final[dict[str, tuple[Constraint, ...]]] = {
    "all_gather": (
        Constraint("C3", _grouped(by_partition=False), _OTHERS),
        _CHANNELS._replace(number="C5"),
        Constraint("C6", _gathered("all_gather_dim", divides=False), _UNWRITTEN, is_silent=True),
    ),
    "all_reduce": (
        Constraint("C2", _grouped(by_partition=False), _OTHERS),
        Constraint("C5", _combines(each=False), _DIES, is_silent=True),
    ),
    "all_to_all": (Constraint("C6", _grouped(by_partition=True), _OTHERS),),
    "collective_broadcast": (Constraint("C2", _ids("replica_groups"), _OTHERS),),
    "collective_permute": (Constraint("C4", _ids("source_target_pairs"), _OTHERS),),
    "compare": (
        Constraint("C3", _compare_type(orders=False), "some releases of XLA refuse it"),
        Constraint(
            "C3",
            _compare_type(orders=True),
            "XLA refuses it, or heeds it for constants alone, and the interpreter never does",
            is_silent=True,
        ),
    ),
    "convolution": (
        Constraint("C24", _precisions, _UNHEEDED, "warning"),
        Constraint("C27", _product, _WIDENED, "note"),
    ),
    "dot_general": (
        Constraint("C11", _precisions, _UNHEEDED, "warning"),
        Constraint("C13", _factors, _WIDENED, "note"),
    ),
    "dynamic_conv": (
        Constraint("C24", _precisions, _UNHEEDED, "warning"),
        Constraint("C25", _convolved, _DIES),
        Constraint("C26", _convolved_rank, _DIES),
        Constraint("C27", _product, _WIDENED, "note"),
    ),
    "fft": (Constraint("C4", _fft_length, _UNWRITTEN, is_silent=True),),
    "recv": _TRANSFER,
    "reduce": (
        Constraint("C2", _same_elements(slice(0, 1), slice(1, 2), "an initial value"), _DIES),
        Constraint("C6", _combines(), _DIES),
    ),
    "reduce_scatter": (
        Constraint("C4", _grouped(by_partition=False), _OTHERS),
        Constraint("C7", _combines(), _DIES, is_silent=True),
        Constraint("C8", _gathered("scatter_dimension", divides=True), _OTHERS, is_silent=True),
    ),
    "reduce_window": (
        Constraint("C3", _same_elements(slice(0, 1), slice(1, 2), "an initial value"), _DIES),
        Constraint("C13", _combines(), _DIES),
    ),
    "rng_bit_generator": (
        Constraint("C1", _state_type, "XLA returns another type than it says"),
        Constraint("C2", _state_size, "XLA and the interpreter refuse it", "warning"),
    ),
    "scatter": (
        Constraint("C6", _scattered, _REFUSED),
        Constraint("C23", _combines(), _DIES),
    ),
    "select_and_scatter": (
        Constraint("C1", _same_elements(slice(0, 1), slice(1, 2), "source"), _REFUSED),
        Constraint("C3", _same_elements(slice(0, 1), slice(2, 3), "init_value"), _DIES),
        Constraint("C9", _combines(0, widens=False), _DIES),
        Constraint("C10", _combines(1), _DIES),
    ),
    "send": _TRANSFER,
}


#: The rules whose violations make an engine wrong without a word.
SILENT: Final[Mapping[str, tuple[Constraint, ...]]] = {
    op: tuple(each for each in rules if each.is_silent)
    for op, rules in CONSTRAINTS.items()
    if any(each.is_silent for each in rules)
}


def violations(file: File, name: str) -> list[Finding]:
    """Return a finding for each constraint that an op violates, in program order, with equal ones counted.

    Ops without rules are not looked at, and equal ops once.
    """
    chosen: dict[int, tuple[Constraint, ...]] = {}
    modules = set()
    for index in range(len(file.dialects.ops)):
        dialect, _, op = file.op_name(index).partition(".")
        short = _VERSION.sub("", op)
        if dialect == "vhlo" and short in CONSTRAINTS:
            chosen[index] = CONSTRAINTS[short]
        elif file.op_name(index) in _MODULES:
            modules.add(index)
    if not chosen:
        return []
    structures, places = Structures(file), SourceLocations(file, name)
    said: dict[tuple[object, ...], list[tuple[Constraint, str]]] = {}
    found: dict[Finding, Finding] = {}
    devices: tuple[int, int] | None = None

    def examine(place: Place, values: list[int]) -> None:
        nonlocal devices
        op = place.op
        if op.name in modules:
            devices = _devices(structures, attributes_of(file, op))
            return
        operands = tuple([values[index] for index in op.operands])
        arguments = [tuple([each.type for each in body.blocks[0].arguments]) for body in op.regions if body.blocks]
        key = (op.name, op.properties, op.attributes, op.results, operands, *arguments)
        if key not in said:
            kinds = [[structures.of("type", each) for each in types] for types in (operands, op.results, *arguments)]
            attributes = {key: structures.of("attribute", each) for key, each in attributes_of(file, op).items()}
            examined = Checked(attributes, kinds[0], kinds[1], kinds[2:], devices)
            said[key] = [(each, text) for each in chosen[op.name] if (text := each.violated_by(examined)) is not None]
        for constraint, text in said[key]:
            shown = program_name(file.op_name(op.name))
            finding = Finding(
                feature="violates_specification",
                level=constraint.level,
                kind="constraint",
                message=_message(shown, constraint, text),
                op=shown,
                location=places.source(op.location),
                remedy=_remedy(constraint),
                function=places.function(place),
            )
            known = found.get(finding)
            path = places.path(place) if known is None else known.path
            count = 1 if known is None else known.count + 1
            found[finding] = replace(finding, path=path, count=count)

    def wanted(head: Head) -> bool:
        return head.name in chosen or head.name in modules

    visit(file.program, examine, wanted)
    return list(found.values())


def violation_text(op: str, constraint: Constraint, said: str) -> str:
    """The message and the remedy of a finding in one."""
    return f"{_message(op, constraint, said)}; {_remedy(constraint)}"


def _message(op: str, constraint: Constraint, said: str) -> str:
    return f"{op} violates constraint ({constraint.number}) of the specification: {said}"


def _remedy(constraint: Constraint) -> str:
    return f"correct it in what wrote the program: {constraint.engines}"


def _devices(structures: Structures, attributes: Mapping[str, int]) -> tuple[int, int] | None:
    """The replicas and partitions that a module was made for; ``None`` unless it says both."""
    named = [attributes.get(f"mhlo.num_{each}") for each in ("replicas", "partitions")]
    values = [_value(structures.of("attribute", index)) for index in named if index is not None]
    return (values[0], values[1]) if len(values) == 2 and all(isinstance(each, int) for each in values) else None
