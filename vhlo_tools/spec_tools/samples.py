"""Sample ops, types and attributes, built from a specification alone, for tests of the specification."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vhlo_tools.spec import OpStructure

if TYPE_CHECKING:
    from vhlo_tools.spec import EntryKind, Field, OpVersion, Slot, Specification, Structure
    from vhlo_tools.version import Version

#: A value that is the default of no attribute.
OTHER_VALUE: Structure = {"attribute": "string_v1", "value": "not the default"}

# Four dimensions, so that the padding of a convolution has two spatial ones.
_TENSOR: Structure = {"type": "tensor_v1", "shape": [1, 2, 3, 4], "element": {"type": "f32_v1"}}


def sample(specs: Specification, version: OpVersion) -> OpStructure:
    """Build an op of ``version`` that every step accepts.

    Attributes that no step names are strings, and all values have one type, because the meaning of ops is unspecified.
    """
    op = specs.op(version.op)
    steps = op.steps if op else ()
    single = {name for step in steps for name in step.single}
    empty = {name for step in steps for name in step.empty}
    added = {name: specs.default(default) for step in steps for name, default in step.added.items()}

    def value(name: str) -> Structure:
        default = added.get(name)
        return (default.value if default else None) or {"attribute": "string_v1", "value": name}

    def count(slots: tuple[Slot, ...]) -> int:
        return sum(0 if slot.name in empty else 1 if slot.name in single or not slot.variadic else 2 for slot in slots)

    return OpStructure(
        version.name,
        {name: value(name) for name in version.attributes},
        (_TENSOR,) * count(version.operands),
        (_TENSOR,) * count(version.results),
        count(version.regions),
    )


def sample_structure(specs: Specification, kind: EntryKind, name: str) -> Structure:
    """Build the minimal type or attribute that the encoding permits.

    A type without parameters becomes the element type of a tensor, as in programs, if the specification has tensors.
    """
    encoding = specs.kinds[kind][name].encodings[0]
    structure: dict[str, object] = {kind: name}
    for field in encoding.fields:
        key = "case" if field.enum else "type" if name == "type_v1" else field.name
        structure[key] = _content(specs, field)
    if kind == "type" and not encoding.fields and "tensor_v1" in specs.kinds["type"]:
        return {**_TENSOR, "element": structure}
    return structure


def sample_holding(specs: Specification, held: Structure, *versions: Version) -> OpStructure:
    """Build an op that contains ``held`` and is the same in all ``versions``.

    The op is as old as VHLO and has no constraints, so that only ``held`` can exclude it from a version.
    """
    is_type = "attribute" not in held
    fitting = [
        first
        for first, constraints in ((op.versions[0], op.constraints) for op in specs.ops)
        if first.min == specs.versions[0].version and all(first.is_in(version) for version in versions)
        if not constraints and (first.operands if is_type else first.attributes)
    ]
    if not fitting:
        raise LookupError(f"no op is the same in {' and '.join(map(str, versions))} and can contain {held}")
    operation = sample(specs, min(fitting, key=lambda each: (len(each.attributes), len(each.operands), each.op)))
    if is_type:
        return replace(operation, operands=(held,) * len(operation.operands))
    name = next(iter(operation.attributes))
    return replace(operation, attributes={**operation.attributes, name: held})


def _content(specs: Specification, field: Field) -> object:
    if field.is_list:
        return []
    if field.enum is not None:
        enum = specs.enum(field.enum)
        return enum.cases[0].name if enum else 0
    match field.kind:
        case "type":
            return _TENSOR["element"]
        case "attribute":
            return {"attribute": "string_v1", "value": ""}
        case "attribute?" | "flagged attribute":
            return None
        case "string" | "blob":
            return ""
        case "f64":
            return 0.0
    return 0
