"""Generic VHLO text made from the specification of an op, and what its steps make of the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from vhlo_tools.spec import Op, OpVersion, Slot, find_op, find_op_version, known_default
from vhlo_tools.spec.ops import Structure

#: Of four dimensions, so that the padding of a convolution has two spatial ones.
TENSOR = "!vhlo.tensor_v1<1x2x3x4x!vhlo.f32_v1>"
#: Kept by every step.
DISCARDABLE = '{test.note = #vhlo.string_v1<"kept">}'
REGION = f'{{\n^bb0(%a: {TENSOR}):\n  "vhlo.return_v1"(%a) : ({TENSOR}) -> ()\n}}'

# Attributes of which the library's code takes the kind for granted; to any other it is all one.
_VALUES = {
    "api_version": "#vhlo<api_version_v1 API_VERSION_ORIGINAL>",
    "function_type": "#vhlo.type_v1<!vhlo.func_v1<(()) -> ()>>",
}


def tensor_of(element: str) -> str:
    """Return the type of a tensor of ``element``, such as ``f8E5M2_v1``."""
    return f"!vhlo.tensor_v1<1x2x3x4x!vhlo.{element}>"


@dataclass(frozen=True)
class OpText:
    """An op with its values, all as text."""

    name: str  # the name of the op version, without dialect
    operands: tuple[str, ...]  # the types of its operands
    results: tuple[str, ...]  # the types of its results
    attributes: Mapping[str, str] = field(default_factory=dict)  # its inherent attributes
    regions: int = 0  # the number of its regions

    def __str__(self) -> str:
        types = dict.fromkeys(self.operands)
        values = {type_: f"%v{index}" for index, type_ in enumerate(types)}
        made = [
            f'{value} = "vhlo.constant_v1"() <{{value = #vhlo.string_v1<"value">}}> : () -> {type_}\n'
            for type_, value in values.items()
        ]
        attributes = ", ".join(f"{name} = {value}" for name, value in self.attributes.items())
        properties = f" <{{{attributes}}}>" if attributes else ""
        regions = f" ({', '.join([REGION] * self.regions)})" if self.regions else ""
        results = f"%r:{len(self.results)} = " if self.results else ""
        operands = ", ".join(values[type_] for type_ in self.operands)
        signature = f"({', '.join(self.operands)}) -> ({', '.join(self.results)})"
        return (
            f'{"".join(made)}{results}"vhlo.{self.name}"({operands}){properties}{regions} {DISCARDABLE} : {signature}'
        )

    def with_attribute(self, name: str, value: str) -> OpText:
        return replace(self, attributes={**self.attributes, name: value})

    def with_operand(self, name: str, types: Sequence[str]) -> OpText:
        """Return the op with other types, or another number, of an operand."""
        version = find_op_version(self.name)
        assert version is not None
        where = version.operand_slices(len(self.operands))[name]
        return replace(self, operands=(*self.operands[: where.start], *types, *self.operands[where.stop :]))


def op_text(op: Op, version: OpVersion) -> OpText:
    """Return ``version`` of ``op``, with the values that every step lets through, and else with values of no meaning.

    Variadics have two values, or the one or none that a step asks for.
    """
    single = {name for step in op.steps for name in step.single}
    empty = {name for step in op.steps for name in step.empty}
    defaults = {name: known_default(default).text for step in op.steps for name, default in step.added.items()}

    def count(slots: tuple[Slot, ...]) -> int:
        return sum(0 if slot.name in empty else 1 if slot.name in single or not slot.variadic else 2 for slot in slots)

    def value(name: str) -> str:
        return defaults.get(name) or _VALUES.get(name) or f'#vhlo.string_v1<"{name}">'

    return OpText(
        version.name,
        (TENSOR,) * count(version.operands),
        (TENSOR,) * count(version.results),
        {name: value(name) for name in version.attributes},
        count(version.regions),
    )


def converted(op: Op, text: OpText, number: int) -> OpText:
    """Return what the steps of ``op`` make of ``text`` on the way to version ``number``; nothing stands in the way."""
    at = int(text.name.rpartition("_v")[2])
    while at != number:
        up = number > at
        step = next(step for step in op.steps if (step.older if up else step.newer) == at)
        gained, lost = (step.added, step.removed) if up else (step.removed, step.added)
        attributes = {name: value for name, value in text.attributes.items() if name not in lost}
        attributes |= {name: default_text(default, op, text) for name, default in gained.items()}
        at = step.newer if up else step.older
        text = replace(text, name=f"{op.name}_v{at}", attributes=attributes)
    return text


def default_text(identifier: str, op: Op, text: OpText) -> str:
    """Return a default as text, computed of ``text`` where it is not always the same."""
    default = known_default(identifier)
    if default.text is not None:
        return default.text
    assert default.computed == "no_padding"
    assert default.of is not None
    version = next(version for version in op.versions if version.name == text.name)
    (of,) = text.operands[version.operand_slices(len(text.operands))[default.of]]
    rank = of.partition("!vhlo.tensor_v1<")[2].partition("!")[0].count("x")
    zeros = "0" if rank > 2 else ""
    return f"#vhlo.tensor_v1<dense<{zeros}> : tensor<{rank - 2}x2xi64>>"


def structure_text(value: Structure) -> str:
    match value:
        case {"attribute": kind, "case": case}:
            return f"#vhlo<{kind} {case}>"
        case {"attribute": "array_v1", "elements": elements}:
            return f"#vhlo.array_v1<[{', '.join(map(structure_text, elements))}]>"
        case {"attribute": "bool_v1", "value": bool(truth)}:
            return f"#vhlo.bool_v1<{str(truth).lower()}>"
        case {"attribute": "result_accuracy_v1", "atol": atol, "rtol": rtol, "ulps": ulps, "mode": mode}:
            numbers = f"atol = {atol:e}, rtol = {rtol:e}, ulps = {ulps}"
            return f"#vhlo.result_accuracy_v1<{numbers}, mode = {structure_text(mode)}>"
        case {"attribute": "tensor_v1", "type": {"type": "tensor_v1", "shape": shape, "element": element}, "data": ""}:
            dimensions = "".join(f"{size}x" for size in shape)
            return f"#vhlo.tensor_v1<dense<> : tensor<{dimensions}{element['type'].removesuffix('_v1')}>>"
        case {"attribute": "type_v1", "type": {"type": kind}}:
            return f"#vhlo.type_v1<!vhlo.{kind}>"
    raise NotImplementedError(value)


def find(name: str) -> Op:
    """Return the op called ``name``, which must be there."""
    op = find_op(name)
    assert op is not None
    return op
