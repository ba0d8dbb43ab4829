"""Editing of bytecode files: adding table entries, moving attributes, renumbering values, collecting garbage."""

from vhlo_tools.bytecode.editing.attribute_layout import AttributeLayout, Attributes, change_attributes
from vhlo_tools.bytecode.editing.garbage import collect_garbage
from vhlo_tools.bytecode.editing.tables import Tables
from vhlo_tools.bytecode.editing.value_numbers import Values, read_orders, write_orders

__all__ = [
    "AttributeLayout",
    "Attributes",
    "Tables",
    "Values",
    "change_attributes",
    "collect_garbage",
    "read_orders",
    "write_orders",
]
