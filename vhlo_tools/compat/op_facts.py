"""Facts of the specification about the name of an op, whatever else a file has; cached across files."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from vhlo_tools.dialect import Constraint, Op, OpVersion, known_specification, minimum_version
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

_KNOWN_DIALECTS: Final = ("builtin", "vhlo")


@dataclass(frozen=True, slots=True)
class OpFacts:
    name: str  # with its dialect
    op: Op | None  # None if it is unknown or of another dialect
    version: OpVersion | None
    since: frozenset[Version]  # introductions of ``version``, and of those before it
    constraints: frozenset[Constraint]  # on these versions
    look: bool  # whether uses of the op may matter
    about_operands: bool  # whether that depends on operands and results
    is_call: bool
    is_foreign: bool  # the dialect is neither VHLO nor builtin


# Names may come from hostile files.
@lru_cache(maxsize=4096)
def facts_of(name: str) -> OpFacts:
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
