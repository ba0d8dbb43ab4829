"""Editing of a function's arguments: its type and argument attributes, and a check for callers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from vhlo_tools.artifact import EntryFunction, functions_in
from vhlo_tools.bytecode import (
    AttributeLayout,
    Attributes,
    Block,
    File,
    Head,
    Operation,
    Tables,
    Value,
    attributes_of,
    change_attributes,
    heads_in,
)
from vhlo_tools.errors import InvalidInputError, MalformedArtifactError
from vhlo_tools.externalization.constant_uses import RegionOp
from vhlo_tools.records import dataclass

_NAMES_SHOWN: Final = 8
#: The attributes of ops that name functions.
_CALLS: Final = ("callee", "called_computations", "decomposition")
#: The attributes of a module with a value for each argument of its main function.
_OF_ARGUMENTS: Final = (
    "mhlo.xla_entry_computation_parameter_layouts",
    "mhlo.xla_entry_computation_parameter_tiles",
)


@dataclass(slots=True)
class SignatureEditor:
    """Editor of the arguments of a function without callers in its program."""

    file: File
    tables: Tables
    function: EntryFunction
    holder: RegionOp  # place of the function's op
    entry: Block  # block of the function's arguments

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def op(self) -> Operation:
        return self.function.op

    def set_types(self, kept: int, added: Sequence[int]) -> set[int]:
        """Set the types to those of the first ``kept`` arguments and ``added``; return attributes that the op lost."""
        attributes = attributes_of(self.file, self.op)
        holder, kind = self._type(attributes)
        inputs, outputs = kind.fields
        new = self.tables.add("type", replace(kind, fields=(inputs[:kept] + tuple(added), outputs)))
        changed = {"function_type": self.tables.add("attribute", replace(holder, fields=(new,)))}
        array = self._value(attributes, "arg_attrs", "array_v1")
        if elements := array.field("elements"):
            empty = self.tables.structure("attribute", {"attribute": "dict_v1", "elements": ()})
            elements = elements[:kept] + (empty,) * len(added)
            changed["arg_attrs"] = self.tables.add("attribute", replace(array, fields=(elements,)))
        return change_attributes(self.file, self.tables, self.op, changed)

    def check(self) -> None:
        """Check that type and argument attributes match the number of arguments."""
        attributes = attributes_of(self.file, self.op)
        _, kind = self._type(attributes)
        described = self._value(attributes, "arg_attrs", "array_v1").field("elements")
        number = len(self.entry.arguments)
        if len(kind.field("inputs")) != number or len(described) not in (0, number):
            raise self._malformed(
                f"@{self.name} has {number} arguments, but its type or argument attributes are for another number"
            )

    def _type(self, attributes: Attributes) -> tuple[Value, Value]:
        holder = self._value(attributes, "function_type", "type_v1")
        kind = self.file.decode("type", holder.field("value"))
        if kind is None or kind.name != "func_v1":
            raise self._malformed(f"@{self.name} does not have a function type")
        return holder, kind

    def layout(self) -> AttributeLayout:
        """Some producers put all attributes into dictionaries, whatever the version of the format."""
        return AttributeLayout(self.file, self.tables, in_properties=self.op.properties is not None)

    def _value(self, attributes: Attributes, name: str, kind: str) -> Value:
        index = attributes.get(name)
        value = self.file.decode("attribute", index) if index is not None else None
        if value is None or value.name != kind:
            raise self._malformed(f"@{self.name} has no {name}")
        return value

    def _malformed(self, message: str) -> MalformedArtifactError:
        return self.file.attributes[self.op.location].malformed(message)


def edit_signature(file: File, holders: Sequence[RegionOp], name: str) -> SignatureEditor:
    """Raise ``InvalidInputError`` if other code depends on the number of the function's arguments."""
    named: dict[str, EntryFunction] = {}
    for each in functions_in(file):
        named.setdefault(each.name, each)
    if name not in named:
        others = ", ".join(f"@{other}" for other in islice(named, _NAMES_SHOWN))
        raise InvalidInputError(f"the program has no function @{name}; it has {others or 'none'}")
    op = named[name].op
    if len(op.regions) != 1 or not op.regions[0].blocks:
        raise InvalidInputError(f"the function @{name} has no body")
    seen: set[tuple[int, int | None, int | None]] = set()
    for head in heads_in(file.program):
        if (head.name, head.properties, head.attributes) in seen:
            continue
        seen.add((head.name, head.properties, head.attributes))
        if name in _called(file, head):
            raise InvalidInputError(f"@{name} is called by other functions, which would have to pass new arguments")
        if file.op_name(head.name) == "builtin.module":
            held = attributes_of(file, head)
            if said := [key for key in _OF_ARGUMENTS if key in held]:
                raise InvalidInputError(
                    f"the module attribute {said[0]} has one entry for each argument of @{name}, "
                    f"so its arguments cannot change"
                )
    holder = next(each for each in holders if each.place.op is op)
    editor = SignatureEditor(file, Tables(file), named[name], holder, op.regions[0].blocks[0])
    editor.check()
    return editor


def _called(file: File, op: Head) -> Iterator[str]:
    """Yield the functions named by an op."""
    name = file.op_name(op.name)
    if name.startswith("builtin.") or (op.attributes is None and op.properties is None):
        return
    attributes = attributes_of(file, op)
    for key in _CALLS:
        pending, seen = [attributes[key]] if key in attributes else [], set[int]()
        while pending:
            index = pending.pop()
            if index in seen:
                continue
            seen.add(index)
            pending += file.elements(index) or ()
            if (callee := file.text(index)) is not None:
                yield callee
