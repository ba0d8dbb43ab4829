"""Shardings of Shardy, whose dialect stands beside VHLO since 1.11.0, dropped or in the form of HLO."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

from vhlo_tools.bindings import Operation, functions_of, named_attributes, source_of
from vhlo_tools.conversion.expansion.expanding import WholeModule
from vhlo_tools.conversion.patterns import discardable
from vhlo_tools.conversion.shardy import (
    drop_shardy,
    has_several_devices,
    is_of_shardy,
    is_readable,
    replace_shardy,
    shardy_attributes,
)
from vhlo_tools.spec import known_feature
from vhlo_tools.version import Version

# Shardings of Shardy, whose dialect stands beside VHLO since 1.11.0, dropped
#
# Meshes, shardings and constraints say how values are split over devices, and not what they are: without them, the
# program computes the same values on one device. This does not hold for what runs once for each part of a value: a
# manual computation is replaced by its body only if each part is the whole value, as it is along axes of size 1; and a
# program with ops that devices exchange values with, or know their numbers by, remains as it is.
#
# Source: ``shardy/dialect/sdy/ir/ops.td`` and ``docs/sharding_representation.md`` in openxla/shardy.

#: The ops of StableHLO whose results depend on the device, or on what other devices compute.
OF_DEVICES: Final = {
    *("stablehlo.all_gather", "stablehlo.all_reduce", "stablehlo.all_to_all", "stablehlo.collective_broadcast"),
    *("stablehlo.collective_permute", "stablehlo.collective_reduce", "stablehlo.partition_id", "stablehlo.recv"),
    *("stablehlo.reduce_scatter", "stablehlo.replica_id", "stablehlo.send"),
}
#: The ops of Shardy whose operand has another value on each device, which only reductions add up.
_REDUCTIONS: Final = frozenset(
    f"sdy.{name}" for name in ("all_reduce", "reduce_scatter", "replicated_to_unreduced", "sharded_to_unreduced")
)


def _drop(whole: WholeModule) -> None:
    ops = whole.provider.walk(whole.module)
    shardy = [op for op in ops if is_of_shardy(op) or any(shardy_attributes(op))]
    several = any(map(has_several_devices, shardy))
    refusals = [(op, reason) for op in ops for reason in _reasons(op)] if several else []
    for op, reason in refusals:
        whole.refuse(op, reason)
    if shardy and not refusals:
        # MLIR invalidates them on erasure.
        del ops, shardy
        drop_shardy(whole.provider, whole.module, whole.notes)


def _reasons(op: Operation) -> Iterator[str]:
    """The reasons why the program would compute something else without Shardy."""
    name = str(op.name)
    if name in OF_DEVICES:
        yield f"{name} is for several devices, and without shardings the program is for one"
    elif name in _REDUCTIONS:
        yield f"{name} has another operand on each device"
    elif name == "sdy.manual_computation" and _has_parts(op):
        yield f"the body of {name} runs once for each part of the values that it takes or returns"
    held = [attribute for _, attribute in named_attributes(op.attributes)] if is_of_shardy(op) else []
    if any("unreduced={" in str(each) for each in (*held, *(each.value for each in shardy_attributes(op)))):
        yield f"{name} has a sharding with unreduced axes: its value is the sum of those of several devices"
    if any(each.side for each in shardy_attributes(op)) and not is_readable(op):
        yield f"an argument or a result of {name} has attributes that the bindings cannot read"


def _has_parts(op: Operation) -> bool:
    block = op.regions[0].blocks[0]
    *_, end = block.operations
    sides = ((op.operands, block.arguments), (op.results, end.operation.operands))
    return any(one.type != other.type for side in sides for one, other in zip(*side, strict=True))


SHARDY_DROPPED_RELAXED: Final = _drop


# Shardings of Shardy, whose dialect stands beside VHLO since 1.11.0, in the form that XLA itself passes through HLO
#
# HLO has no ops of Shardy. XLA writes what a program has of it into attributes and custom calls, and makes Shardy of
# these again before it partitions the program; jax 0.4.35 to 0.6 wrote such programs to files. The form consists of
#
# - ``xla.sdy.meshes`` in ``mhlo.frontend_attributes`` of the module, with all meshes by name;
# - ``xla.sdy.sharding`` in ``mhlo.frontend_attributes`` of arguments and ops, and on a custom call
#   ``@xla.sdy.FuncResultSharding`` in front of each result that has a sharding, because HLO drops attributes of
#   results;
# - custom calls ``@Sharding`` and ``@xla.sdy.ShardingGroup`` for constraints and groups;
# - ``xla.sdy.sharding_rule`` in ``mhlo.frontend_attributes`` of custom calls, where XLA reads it: it says how shardings
#   of operands and results are related, and without it those are chosen that need no such relation;
# - for a manual computation a call of a function with its body, between ``@xla.sdy.GlobalToLocalShape`` and
#   ``@xla.sdy.LocalToGlobalShape``. Up to jaxlib 0.5.3 the attributes of the manual computation were read from the
#   call, from 0.6 on from the two custom calls. Both have them here, so that all of these releases read them.
#
# The same values are computed, and split in the same way: a newer XLA gives a program of Shardy this form, too. The
# consumer must use Shardy (in these releases of jax, ``jax_use_shardy_partitioner``).
#
# Sources: ``xla/service/spmd/shardy/sdy_round_trip/`` and ``constants.h`` in openxla/xla; what jaxlib 0.5.3 and 0.6.2
# give for ``sdy_round_trip_export_pipeline``, and which files jaxlib 0.4.33 to 0.6.2 compile.

_FRONTEND: Final = "mhlo.frontend_attributes"
_SHARDING: Final = "xla.sdy.sharding"
#: The first version whose consumers know groups of shardings, and split one manual computation in another: that of
#: jaxlib 0.4.36. XLA of jaxlib 0.4.35 aborts on the latter, in whichever form it gets them.
_GROUPS_AND_NESTING_SINCE: Final = Version("1.8.5")
#: The first version whose consumers read rules that the program gives: that of jaxlib 0.6.1. XLA of older ones rejects
#: the program, or aborts.
_RULES_SINCE: Final = Version("1.10.9")
RULE: Final = "sdy.sharding_rule"
#: The ops of Shardy that have this form.
_OPS: Final = {
    *("sdy.constant", "sdy.manual_computation", "sdy.mesh", "sdy.return"),
    *("sdy.sharding_constraint", "sdy.sharding_group"),
}
#: The attributes of Shardy of ops of other dialects that have this form.
_ATTRIBUTES: Final = frozenset({"sdy.sharding", RULE})
_ENTRY: Final = "main"
_CUSTOM_CALL: Final = "stablehlo.custom_call"
#: The target of a constraint.
CONSTRAINT: Final = "Sharding"


#: Why an op of a program has no form that consumers of the target know.
Reasons = Callable[[Operation, WholeModule], Iterator[str]]


def to_round_trip(whole: WholeModule) -> None:
    written(whole, ShardyWriter, _reasons_against)


def written(whole: WholeModule, writer: Callable[[WholeModule], ShardyWriter], reasons: Reasons) -> None:
    """Write the program as ``writer`` does, unless an op has a reason against it."""
    ops = [op for op in whole.provider.walk(whole.module) if is_of_shardy(op) or any(shardy_attributes(op))]
    if not ops:
        return
    if not any(map(has_several_devices, ops)):
        # It has no meaning. MLIR invalidates the ops on erasure.
        del ops
        drop_shardy(whole.provider, whole.module, whole.notes, ": the program is for one device")
        return
    has_inlined_meshes = any("mesh<" in str(each) for op in ops for each in shardings_of(op))
    if has_inlined_meshes:
        del ops
        with whole.module.context:
            whole.provider.run_passes(whole.module, "sdy-lift-inlined-meshes", verify=False)
        ops = [op for op in whole.provider.walk(whole.module) if is_of_shardy(op) or any(shardy_attributes(op))]
    refusals = [(op, reason) for op in ops for reason in reasons(op, whole)]
    for op, reason in refusals:
        whole.refuse(op, reason)
    if refusals:
        return
    del ops, refusals
    with whole.module.context:
        writer(whole).write()


def reasons_against(op: Operation) -> Iterator[str]:
    """The reasons why an op or its attributes have neither form."""
    name, mixed = str(op.name), known_feature("mixed_dialects")
    if is_of_shardy(op) and name not in _OPS:
        yield f"{name} has no form that XLA reads before StableHLO {mixed.introduced}"
    if any("unreduced={" in str(each) for each in shardings_of(op)):
        yield f"{name} has a sharding with unreduced axes, which XLA does not read before StableHLO {mixed.introduced}"
    for each in shardy_attributes(op):
        if each.name not in _ATTRIBUTES:
            yield f"{each.name} of {name} has no form that XLA reads before StableHLO {mixed.introduced}"
        elif each.side is not None and symbol_of(op) != _ENTRY:
            yield f"{each.name} of {name} @{symbol_of(op)} has no such form: only shardings of @{_ENTRY} are read back"
        elif each.side is not None and not is_readable(op):
            yield f"an argument or a result of {name} has attributes that the bindings cannot read"


def _reasons_against(op: Operation, whole: WholeModule) -> Iterator[str]:
    """The reasons why an op has no form that consumers of the target know."""
    yield from reasons_against(op)
    if whole.target < _GROUPS_AND_NESTING_SINCE:
        if (name := str(op.name)) == "sdy.sharding_group":
            yield f"{name} has no form that XLA reads before StableHLO {_GROUPS_AND_NESTING_SINCE}"
        elif name == "sdy.manual_computation" and is_nested(op):
            yield f"XLA before StableHLO {_GROUPS_AND_NESTING_SINCE} aborts on a {name} in another one"


def is_nested(op: Operation) -> bool:
    """Whether the op is within a manual computation."""
    parent = op.operation.parent
    while parent is not None and str(parent.name) != "sdy.manual_computation":
        parent = parent.operation.parent
    return parent is not None


def symbol_of(function: Operation) -> str:
    return str(function.attributes["sym_name"].value)


def shardings_of(op: Operation) -> Iterator[Any]:
    if is_of_shardy(op):
        yield from (each for name, each in named_attributes(op.attributes) if "sharding" in name)
    yield from (each.value for each in shardy_attributes(op) if each.name == "sdy.sharding")


class ShardyWriter:
    body = "xla.sdy.manual_computation_body"  # the name of the function of a manual computation

    def __init__(self, whole: WholeModule) -> None:
        self._whole = whole
        self._ir = whole.provider.ir
        self._functions = set(functions_of(whole.module))
        self._meshes: dict[str, str] = {}
        self._by_op: dict[str, Callable[[Operation], str]] = {
            "sdy.constant": self._constant,
            "sdy.manual_computation": self._manual_computation,
            "sdy.mesh": self._mesh,
            "sdy.sharding_constraint": self._constraint,
            "sdy.sharding_group": self._group,
        }

    def write(self) -> None:
        # Innermost ops first: bodies then have the names that XLA gives them.
        for op in self._whole.provider.walk(self._whole.module, innermost_first=True):
            self._annotated(op)
            if (write := self._by_op.get(str(op.name))) is not None:
                name, location = str(op.name), source_of(op.location)
                became = write(op)
                op.operation.erase()
                self._whole.notes.add_at(name, location, f"{name} was rewritten to {became}")
        self.finish()

    def finish(self) -> None:
        """Write what the module has of meshes."""
        if self._meshes:
            told = ", ".join(f"{name} = {mesh}" for name, mesh in sorted(self._meshes.items()))
            self._tell(self._whole.module, {"xla.sdy.meshes": f"{{{told}}}"})

    def _annotated(self, op: Operation) -> None:
        """Rewrites attributes of an op of another dialect, of its arguments and of its results."""
        found = list(shardy_attributes(op))
        is_read = self._whole.target >= _RULES_SINCE
        for name in dict.fromkeys(each.name for each in found):
            became = f"rewritten to {_FRONTEND}"
            if name == RULE and not is_read:
                became = f"removed: XLA does not read it before StableHLO {_RULES_SINCE}"
            self._whole.notes.add(op, f"{name} of {op.name} was {became}", "attribute")
        for each in found:
            text = str(each.value)
            if each.name == RULE and not is_read:
                changed = {}
            elif each.side is None:
                changed = {_FRONTEND: self._told(op.attributes, {f"xla.{each.name}": text})}
            elif each.side == "arg_attrs":
                changed = {_FRONTEND: self._told(op.attributes[each.side][each.number], {_SHARDING: text})}
            else:
                changed = {}
                self._mark_result(op, each.number, text)
            replace_shardy(self._whole.provider, op, each, changed)

    def _mark_result(self, function: Operation, number: int, sharding: str) -> None:
        """The custom call is in front of the function's end."""
        *_, end = function.regions[0].blocks[0].operations
        value = end.operation.operands[number]
        told = {_SHARDING: _of_one(sharding)}
        marked = self._custom_call(end, "xla.sdy.FuncResultSharding", [value], [value.type], told)
        end.operation.operands[number] = marked.results[0]

    # Ops; each returns what the op became

    def _mesh(self, op: Operation) -> str:
        self._meshes[symbol_of(op)] = str(op.attributes["mesh"])
        return _FRONTEND

    def _constraint(self, op: Operation) -> str:
        value, told = op.operands[0], {_SHARDING: _of_one(str(op.attributes["sharding"]))}
        made = self._custom_call(op, CONSTRAINT, [value], [value.type], told)
        return self._replace(op, made.results, made)

    def _group(self, op: Operation) -> str:
        told = {"xla.sdy.sharding_group_id": str(op.attributes["group_id"])}
        made = self._custom_call(op, "xla.sdy.ShardingGroup", [op.operands[0]], [], told)
        return self._replace(op, [], made)

    def _constant(self, op: Operation) -> str:
        made = self._make(op, "stablehlo.constant", [], [op.results[0].type], value=op.attributes["value"])
        return self._replace(op, made.results, made)

    def _manual_computation(self, op: Operation) -> str:
        axes, ins, outs = (str(op.attributes[name]) for name in ("manual_axes", "in_shardings", "out_shardings"))
        before = {"xla.sdy.in_shardings": ins, "xla.sdy.manual_axes": axes}
        after = {"xla.sdy.manual_axes": axes, "xla.sdy.out_shardings": outs}
        function = self._function(op)
        values: Sequence[Any] = list(op.operands)
        if values:
            inner = [each.type for each in function.regions[0].blocks[0].arguments]
            values = self._custom_call(op, "xla.sdy.GlobalToLocalShape", values, inner, before).results
        call = self._call(op, function, values)
        self._tell(call, before | after)
        values = call.results
        if len(values):
            outer = [each.type for each in op.results]
            values = self._custom_call(op, "xla.sdy.LocalToGlobalShape", values, outer, after).results
        self._replace(op, values, call)
        return f"{_CUSTOM_CALL}, func.call"

    def _call(self, op: Operation, function: Any, values: Sequence[Any]) -> Any:
        types = self._ir.FunctionType(function.attributes["function_type"].value).results
        callee = self._ir.FlatSymbolRefAttr.get(symbol_of(function))
        return self._make(op, "func.call", values, types, callee=callee)

    def _function(self, op: Operation) -> Any:
        """The function gets the body of the manual computation."""
        ir, block = self._ir, op.regions[0].blocks[0]
        *_, end = block.operations
        returned = list(end.operation.operands)
        # The first names are those that XLA gives.
        names = (f"{self.body}_{number}" if number >= 0 else self.body for number in count(-1))
        name = next(each for each in names if each not in self._functions)
        self._functions.add(name)
        type_ = ir.FunctionType.get([each.type for each in block.arguments], [each.type for each in returned])
        held = {"sym_name": ir.StringAttr.get(name), "function_type": ir.TypeAttr.get(type_)}
        point = ir.InsertionPoint(self._whole.module.operation.regions[0].blocks[0])
        function = ir.Operation.create("func.func", attributes=held, regions=1, loc=op.location, ip=point)
        block.append_to(function.regions[0])
        made = self._make(end, "func.return", returned, [])
        self._replace(end, [], made)
        end.operation.erase()
        return function

    # What they are written with

    def _make(self, at: Any, name: str, operands: Sequence[Any], types: Sequence[Any], **attributes: Any) -> Any:
        """Builds the op in front of ``at``, with its location."""
        point, place = self._ir.InsertionPoint(at.operation), at.operation.location
        create = self._ir.Operation.create
        return create(name, list(types), list(operands), attributes=attributes, loc=place, ip=point)

    def _custom_call(
        self, at: Any, target: str, operands: Sequence[Any], types: Sequence[Any], told: Mapping[str, str]
    ) -> Any:
        """Builds the call in front of ``at``; one with an effect is neither removed nor merged with another."""
        attributes = {"has_side_effect": self._ir.BoolAttr.get(True)} if target.startswith("xla.sdy.") else {}
        name = self._ir.StringAttr.get(target)
        made = self._make(at, _CUSTOM_CALL, operands, types, call_target_name=name, **attributes)
        if told:
            self._tell(made, told)
        return made

    def _replace(self, op: Any, values: Sequence[Any], heir: Any) -> str:
        """``heir`` gets the discardable attributes of the op."""
        for result, value in zip(op.operation.results, values, strict=True):
            result.replace_all_uses_with(value)
        for name, attribute in discardable(op.operation).items():
            if name == _FRONTEND:
                own = named_attributes(heir.attributes[_FRONTEND]) if _FRONTEND in heir.attributes else ()
                attribute = self._told(op.operation.attributes, {key: each.value for key, each in own})
            heir.attributes[name] = attribute
        return str(heir.name)

    def _tell(self, op: Any, told: Mapping[str, str]) -> None:
        op.operation.attributes[_FRONTEND] = self._told(op.operation.attributes, told)

    def _told(self, held: Any, told: Mapping[str, str]) -> Any:
        texts = {name: self._ir.StringAttr.get(text) for name, text in told.items()}
        present = dict(named_attributes(held[_FRONTEND])) if _FRONTEND in held else {}
        return self._ir.DictAttr.get(present | texts)


def _of_one(sharding: str) -> str:
    """The sharding of one value, in the form for the results of an op."""
    return f"#sdy.sharding_per_value<[{sharding.removeprefix('#sdy.sharding')}]>"
