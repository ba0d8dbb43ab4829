"""A function whose arguments change: its type, the attributes of its arguments, and who calls it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from vhlo_tools.bytecode import Block, File, Operation, Value, walk
from vhlo_tools.compat.places import attributes_of
from vhlo_tools.dialect import property_slots
from vhlo_tools.errors import InvalidInputError, MalformedArtifactError
from vhlo_tools.retargeting.layout import AttributeLayout, Attributes
from vhlo_tools.retargeting.tables import Tables
from vhlo_tools.weights.survey import Holder

__all__ = ["EntryFunction", "find_function"]

_FUNCTION: Final = "vhlo.func_v1"
_NAMES_SHOWN: Final = 8
#: The attributes of ops that name functions.
_CALLS: Final = ("callee", "called_computations", "decomposition")
#: The attributes of a module that say something of each argument of its main function.
_OF_ARGUMENTS: Final = (
    "mhlo.xla_entry_computation_parameter_layouts",
    "mhlo.xla_entry_computation_parameter_tiles",
)


@dataclass(slots=True)
class EntryFunction:
    """A function that nobody in its program calls, so that its arguments may change.

    Attributes:
        file: The file.
        tables: Its tables.
        name: What it is called.
        holder: Its op.
        entry: The block that its arguments are of.
    """

    file: File
    tables: Tables
    name: str
    holder: Holder
    entry: Block

    @property
    def op(self) -> Operation:
        """Its op."""
        return self.holder.place.op

    def set_types(self, kept: int, added: Sequence[int]) -> set[int]:
        """Give it the types of ``kept`` of its arguments followed by others.

        Returns:
            The attributes that it has lost.

        Raises:
            MalformedArtifactError: If its attributes are damaged.
        """
        layout, op = self.layout(), self.op
        inherent, discardable = layout.read(op, slots := property_slots(_FUNCTION))
        holder, kind = self._type(inherent)
        inputs, outputs = kind.fields
        new = self.tables.add("type", replace(kind, fields=(inputs[:kept] + tuple(added), outputs)))
        changed = {**inherent, "function_type": self.tables.add("attribute", replace(holder, fields=(new,)))}
        array = self._value(inherent, "arg_attrs", "array_v1")
        if elements := array.field("elements"):
            empty = self.tables.structure("attribute", {"attribute": "dict_v1", "elements": ()})
            elements = elements[:kept] + (empty,) * len(added)
            changed["arg_attrs"] = self.tables.add("attribute", replace(array, fields=(elements,)))
        lost = {inherent[name] for name in inherent if inherent[name] != changed[name]}
        if op.attributes is not None and op.properties is None:
            lost.add(op.attributes)
        op.properties, op.attributes = layout.write(changed, discardable, slots, op)
        return lost

    def check(self) -> None:
        """See that its type and the attributes of its arguments are of as many arguments as it has.

        Raises:
            MalformedArtifactError: If they are not.
        """
        attributes = attributes_of(self.file, self.op)
        _, kind = self._type(attributes)
        described = self._value(attributes, "arg_attrs", "array_v1").field("elements")
        number = len(self.entry.arguments)
        if len(kind.field("inputs")) != number or len(described) not in (0, number):
            raise self._malformed(f"@{self.name} has {number} arguments, and says something else of them")

    def _type(self, attributes: Attributes) -> tuple[Value, Value]:
        holder = self._value(attributes, "function_type", "type_v1")
        kind = self.file.decode("type", holder.field("value"))
        if kind is None or kind.name != "func_v1":
            raise self._malformed(f"@{self.name} has no type of a function")
        return holder, kind

    def layout(self) -> AttributeLayout:
        """Return what keeps the attributes of ops where this function has its own.

        Some producers left all in dictionaries, whatever the version of the format.
        """
        return AttributeLayout(self.file, self.tables, in_properties=self.op.properties is not None)

    def _value(self, attributes: Attributes, name: str, kind: str) -> Value:
        index = attributes.get(name)
        value = self.file.decode("attribute", index) if index is not None else None
        if value is None or value.name != kind:
            raise self._malformed(f"@{self.name} has no {name}")
        return value

    def _malformed(self, message: str) -> MalformedArtifactError:
        return self.file.attributes[self.op.location].malformed(message)


def find_function(file: File, functions: Sequence[Holder], name: str) -> EntryFunction:
    """Return the function called ``name``, whose arguments may change.

    Args:
        file: The file.
        functions: The ops that have regions.
        name: The name.

    Raises:
        InvalidInputError: If there is none, or if others depend on the number of its arguments.
        MalformedArtifactError: If the file is damaged.
    """
    named: dict[str | None, Holder] = {}
    for each in functions:
        if file.op_name(each.place.op.name) == _FUNCTION:
            named.setdefault(_text_of(file, each.place.op, "sym_name"), each)
    if name not in named:
        others = ", ".join(f"@{other}" for other in islice(named, _NAMES_SHOWN))
        raise InvalidInputError(f"the program has no function @{name}; it has {others or 'none'}")
    op = named[name].place.op
    if len(op.regions) != 1 or not op.regions[0].blocks:
        raise InvalidInputError(f"the function @{name} has no body")
    seen: set[tuple[int, int | None, int | None]] = set()
    for item in walk(file.ir):
        if not isinstance(item, Operation) or (item.name, item.properties, item.attributes) in seen:
            continue
        seen.add((item.name, item.properties, item.attributes))
        if name in _called(file, item):
            raise InvalidInputError(f"@{name} is called by other functions, which would have to pass new arguments")
        if file.op_name(item.name) == "builtin.module":
            held = attributes_of(file, item)
            if said := [key for key in _OF_ARGUMENTS if key in held]:
                raise InvalidInputError(f"the module says of each argument of @{name} what its {said[0]} is")
    entry = EntryFunction(file, Tables(file), name, named[name], op.regions[0].blocks[0])
    entry.check()
    return entry


def _called(file: File, op: Operation) -> Iterator[str]:
    """Yield the functions that an op names."""
    name = file.op_name(op.name)
    if name.startswith("builtin.") or (op.attributes is None and op.properties is None):
        return
    attributes = attributes_of(file, op)
    for key in _CALLS:
        pending = [attributes[key]] if key in attributes else []
        while pending:
            value = file.decode("attribute", pending.pop())
            if value is not None and value.name in ("array", "array_v1"):
                pending += value.field("elements")
            elif value is not None and value.name in ("string", "string_v1"):
                yield file.string(value.field("value"))


def _text_of(file: File, op: Operation, name: str) -> str | None:
    index = attributes_of(file, op).get(name)
    value = file.decode("attribute", index) if index is not None else None
    return file.string(value.field("value")) if value is not None and value.name == "string_v1" else None
