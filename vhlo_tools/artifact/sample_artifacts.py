"""Sample artifacts built from a specification alone: of any version in it, also of one that no library has yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from vhlo_tools.artifact.artifact import Artifact
from vhlo_tools.bytecode import (
    PROPERTIES_SINCE,
    AttributeLayout,
    Block,
    Operation,
    OpName,
    Region,
    Tables,
    encode,
    new_file,
)
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.files import ARTIFACT_PRODUCER
from vhlo_tools.spec import bytecode_version_of, property_slots

if TYPE_CHECKING:
    from vhlo_tools.spec import OpStructure, Structure
    from vhlo_tools.version import Version

_DIALECTS: Final = ("builtin", "vhlo")
_RETURN: Final = "return_v1"
_NO_VALUES: Final = {"attribute": "array_v1", "elements": []}
_FUNCTION: Final[Mapping[str, Structure]] = {
    "arg_attrs": _NO_VALUES,
    "function_type": {"attribute": "type_v1", "type": {"type": "func_v1", "inputs": [], "outputs": []}},
    "res_attrs": _NO_VALUES,
    "sym_name": {"attribute": "string_v1", "value": "main"},
    "sym_visibility": {"attribute": "string_v1", "value": ""},
}
_CONSTANT: Final[Mapping[str, Structure]] = {"value": {"attribute": "string_v1", "value": "value"}}


def sample_artifact(operation: OpStructure, version: Version) -> Artifact:
    """Return an artifact whose ``main`` contains ``operation``; it is unchecked and need not be meaningful."""
    return Artifact(_Builder(version).build(operation), name=f"a sample of {operation.name}")


class _Builder:
    def __init__(self, version: Version) -> None:
        bytecode = bytecode_version_of(version)
        self._file = new_file(bytecode, f"{ARTIFACT_PRODUCER.decode()}{version}", _DIALECTS)
        self._tables = Tables(self._file)
        self._layout = AttributeLayout(self._file, self._tables, in_properties=bytecode >= PROPERTIES_SINCE)
        self._location = self._tables.builtin("unknown")
        self._names: dict[str, int] = {}

    def build(self, operation: OpStructure) -> bytes:
        module = self._op("builtin.module")
        types = [self._tables.structure("type", each) for each in operation.operands]
        values = {type_: value for value, type_ in enumerate(dict.fromkeys(types))}
        constants = [self._vhlo("constant_v1", _CONSTANT, results=[type_]) for type_ in values]
        held = self._vhlo(
            operation.name,
            operation.attributes,
            operands=[values[type_] for type_ in types],
            results=[self._tables.structure("type", each) for each in operation.results],
        )
        held.regions = [_region([self._vhlo(_RETURN, {})]) for _ in range(operation.regions)]
        # The return op, a terminator, is the only op that nothing may follow.
        end = [] if operation.name == _RETURN else [self._vhlo(_RETURN, {})]
        main = self._vhlo("func_v1", _FUNCTION)
        main.isolated, main.regions = True, [_region([*constants, held, *end])]
        module.isolated, module.regions = True, [_region([main])]
        self._file.ir.operations.append(module)
        return encode(self._file)

    def _vhlo(
        self, name: str, attributes: Mapping[str, Structure], operands: Sequence[int] = (), results: Sequence[int] = ()
    ) -> Operation:
        slots = property_slots(f"vhlo.{name}")
        if slots is None or {slot.name for slot in slots} != attributes.keys():
            raise InvalidProgramError(f"vhlo.{name} is not an op with the attributes {sorted(attributes)}")
        op = self._op(f"vhlo.{name}")
        inherent = {key: self._tables.structure("attribute", value) for key, value in attributes.items()}
        op.properties, op.attributes = self._layout.write(inherent, {}, slots, op)
        op.operands, op.results = tuple(operands), tuple(results)
        return op

    def _op(self, name: str) -> Operation:
        """The ops of a dialect must be added one after the other."""
        dialect, _, short = name.partition(".")
        if name not in self._names:
            self._names[name] = len(self._names)
            self._file.dialects.ops.append(OpName(_DIALECTS.index(dialect), self._tables.string(short)))
        return Operation(self._names[name], self._location)


def _region(operations: list[Operation]) -> Region:
    return Region([Block(operations=operations)])
