"""``vhlo spec new-version``: edit the files of a specification to add a version of StableHLO and its changes."""

from vhlo_tools.dialect.scaffold.changes import (
    NewAttribute,
    NewCase,
    NewEntry,
    NewKind,
    NewOp,
    parse_attribute,
    parse_case,
    parse_kind,
    parse_op,
)
from vhlo_tools.dialect.scaffold.document import Edit
from vhlo_tools.dialect.scaffold.plan import Plan, Remaining
from vhlo_tools.dialect.scaffold.planner import plan_version
from vhlo_tools.dialect.scaffold.writing import write_edits

__all__ = [
    "Edit",
    "NewAttribute",
    "NewCase",
    "NewEntry",
    "NewKind",
    "NewOp",
    "Plan",
    "Remaining",
    "parse_attribute",
    "parse_case",
    "parse_kind",
    "parse_op",
    "plan_version",
    "write_edits",
]
