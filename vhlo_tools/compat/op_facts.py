"""What the specification says of the name of an op in a file, whatever else the file has."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from vhlo_tools.dialect import Constraint, Op, OpVersion, known_specification, minimum_version
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

_KNOWN_DIALECTS: Final = ("builtin", "vhlo")


@dataclass(frozen=True, slots=True)
class OpFacts:
    """The facts about an op name of a file.

    Attributes:
        name: The name, with its dialect.
        op: The op; ``None`` if it is unknown or of another dialect.
        version: The version of the op.
        since: The introductions of that version, and of those before it.
        constraints: The constraints on these versions.
        look: Whether uses of it may matter.
        about_operands: Whether that depends on operands and results.
        is_call: Whether it calls a function.
        is_foreign: Whether its dialect is neither VHLO nor builtin.
    """

    name: str
    op: Op | None
    version: OpVersion | None
    since: frozenset[Version]
    constraints: frozenset[Constraint]
    look: bool
    about_operands: bool
    is_call: bool
    is_foreign: bool


# Names may come from hostile files.
@lru_cache(maxsize=4096)
def facts_of(name: str) -> OpFacts:
    """Return what the specification says of an op name, whatever else the file has."""
    specs = known_specification()
    dialect, _, short = name.partition(".")
    version = specs.op_versions.get(short) if dialect == "vhlo" else None
    op = specs.op(version.op) if version else None
    since, constraints = frozenset[Version](), frozenset[Constraint]()
    if op is not None and version is not None:
        number = version.number
        since = frozenset({version.min, *(each.min for each in op.versions if each.number <= number)})
        constraints = frozenset(each for each in op.constraints if min(each.versions) <= number)
    foreign = dialect not in _KNOWN_DIALECTS
    look = foreign or (dialect == "vhlo" and (op is None or len(op.versions) > 1 or bool(op.constraints)))
    return OpFacts(
        name=name,
        op=op,
        version=version,
        since=since,
        constraints=constraints,
        look=look or (version is not None and version.min > minimum_version()),
        about_operands=op is not None and bool(op.constraints or any(step.removed or step.single for step in op.steps)),
        is_call=dialect == "vhlo" and short.rpartition("_v")[0] in ("call", "composite"),
        is_foreign=foreign,
    )
