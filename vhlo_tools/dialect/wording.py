"""Human-readable text for version ranges, steps and constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vhlo_tools.dialect.defaults import Structure
    from vhlo_tools.dialect.ops import Constraint, OpStep
    from vhlo_tools.version import Version


def life_text(low: Version | None, high: Version | None) -> str:
    """Format a range of versions: ``0.9.0 to 1.4.0``, ``1.5.0 to current``."""
    return f"{low} to {high or 'current'}"


def joined(names: Sequence[str], word: str = "and") -> str:
    """Format a list in a sentence: ``a, b and c``."""
    return f"{', '.join(names[:-1])} {word} {names[-1]}" if len(names) > 1 else "".join(names)


def structure_text(value: Structure) -> str:
    """Return the case of an enum, the type of a type attribute, or all of it as JSON."""
    if "case" in value:
        return str(value["case"])
    if set(value) == {"attribute", "type"}:
        return structure_text(value["type"])
    if set(value) == {"type"}:
        return str(value["type"])
    # Imported here because most structures are short.
    import json

    return json.dumps(value)


def constraint_text(constraint: Constraint) -> str:
    if constraint.requires == "same_element_types":
        return "operands and results of different element types"
    if constraint.requires == "operands_do_not_mix":
        types = constraint.types
        among = joined(types) if len(types) < 4 else f"{types[0]} ... {types[-1]} ({len(types)} types)"
        return f"different element types of {joined(constraint.operands)} among {among}"
    names = joined(constraint.attributes or constraint.operands, "or")
    return f"{structure_text(constraint.value) if constraint.value is not None else constraint.kind} as {names}"


def step_texts(step: OpStep) -> Iterator[tuple[str, str, bool]]:
    """Yield the direction, the text, and whether the part is a guard, which can refuse."""
    for name, default in step.added.items():
        yield "upgrade", f"{name} is set to {default}", False
    for name in step.removed:
        yield "upgrade", f"{name} is removed", False
    if not (step.added or step.removed):
        yield "upgrade", "only the name changes", False
    for name, default in step.removed.items():
        yield "downgrade", f"{name} is set to {default}", False
    for name, default in step.added.items():
        yield "downgrade", f"only if {name} is {default}", True
    if step.single:
        yield "downgrade", f"only with one value each of {joined(step.single)}", True
    if step.empty:
        yield "downgrade", f"only without {joined(step.empty)}", True
