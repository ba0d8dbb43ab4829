"""Shardings of Shardy in the form of GSPMD, for consumers that never learned Shardy.

GSPMD has no meshes and no ops. A sharding is text in an attribute ``mhlo.sharding``, with the devices in the order of
the parts: ``{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}`` splits the first of two dimensions in two, and each part
is on two devices. The form consists of

- that attribute on arguments and results of the entry, and on ops;
- custom calls ``@Sharding`` for constraints, with dimensions that propagation may split further as
  ``unspecified_dims``;
- for a manual computation a call of a function with its body, between ``@Sharding`` and ``@SPMDFullToShardShape``
  before it, ``@Sharding`` and ``@SPMDShardToFullShape`` behind it. Within, the devices of manual axes are a dimension
  of their own, ``last_tile_dims={manual}``, or all of them ``{manual}``.

The same values are computed, and values are split in the same way wherever the program says how: what it leaves open,
each compiler decides, as each release of one does.

Sources: ``xla/hlo/ir/hlo_sharding.cc`` and ``xla/service/spmd/shardy/stablehlo_round_trip/export_shardings.cc`` in
openxla/xla; ``docs/sharding_representation.md`` in openxla/shardy; what jax 0.4.31 writes for ``shard_map``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Operation, functions_of
from vhlo_tools.conversion.expansion.expanding import WholeModule
from vhlo_tools.conversion.expansion.shardy import (
    CONSTRAINT,
    OF_DEVICES,
    RULE,
    ShardyWriter,
    is_nested,
    reasons_against,
    shardings_of,
    symbol_of,
    to_round_trip,
    written,
)
from vhlo_tools.conversion.shardy import ShardyAttribute, is_of_shardy, replace_shardy, shardy_attributes
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

#: The first version whose consumers read Shardy's own form: that of jaxlib 0.4.35.
_ROUND_TRIP_SINCE: Final = Version("1.7.8")
#: The first version whose consumers find the shardings of collectives in a computation that is manual for some axes:
#: that of jaxlib 0.4.30. Those of jaxlib 0.4.26 refuse the program without.
_FOUND_SINCE: Final = Version("1.1.0")
_SHARDING: Final = "mhlo.sharding"
_PARTITIONS: Final = "mhlo.num_partitions"

_AXIS: Final = re.compile(r'"([\w.-]+)"(?::\((\d+)\)(\d+))?')
_DIMENSION: Final = re.compile(r"\{([^{}]*)\}(?:p\d+)?")
_ONE: Final = re.compile(
    r"<@(?P<mesh>[\w.$-]+), \[(?P<dimensions>(?:\{[^{}]*\}(?:p\d+)?(?:, )?)*)\](?:, replicated=\{[^{}]*\})?>"
)
_MESH: Final = re.compile(r"mesh<\[([^\]]*)\](?:, *device_ids=\[([\d, ]*)\])?>")
_MESH_AXIS: Final = re.compile(r'"([\w.-]+)"=(\d+)')


@dataclass(frozen=True, slots=True)
class _Axis:
    """Of an axis of a mesh the part that is behind one of ``before`` parts, itself in ``size`` parts."""

    name: str
    before: int
    size: int


@dataclass(frozen=True, slots=True)
class _Sharding:
    mesh: str
    dimensions: tuple[tuple[_Axis, ...], ...]
    open: tuple[int, ...]  # the dimensions that propagation may split further

    def without(self, axes: Collection[str]) -> _Sharding:
        kept = (tuple(each for each in held if each.name not in axes) for held in self.dimensions)
        return _Sharding(self.mesh, tuple(kept), self.open)


@dataclass(frozen=True, slots=True)
class _Mesh:
    axes: Mapping[str, int]  # their sizes
    ids: tuple[int, ...]  # the devices, by rows
    is_maximal: bool  # it is one device, which alone has a value

    def hlo(self, sharding: _Sharding, manual: Collection[str] = ()) -> str:
        """Return a sharding in the syntax of HLO; ``manual`` has the axes of the manual computation around."""
        if self.is_maximal:
            return f"{{maximal device={self.ids[0]}}}"
        parts = list(self._parts(sharding))
        ids = np.array(self.ids).reshape([each.size for each in parts])
        of_dimensions = [
            [at for axis in held for at, part in enumerate(parts) if _is_part(part, axis)]
            for held in sharding.dimensions
        ]
        used = [at for held in of_dimensions for at in held]
        of_manual = [at for at, part in enumerate(parts) if part.name in manual]
        rest = [at for at in range(len(parts)) if at not in used and at not in of_manual]
        sizes = [math.prod(parts[at].size for at in held) for held in (*of_dimensions, of_manual, rest)]
        *split, manuals, copies = sizes
        if manuals == ids.size and manual:
            return "{manual}"
        if math.prod(split) * manuals == 1:
            return "{replicated}"
        kinds = [word for word, number in (("manual", manuals), ("replicated", copies)) if number > 1]
        tiles = [*split, *(number for number in (manuals, copies) if number > 1)]
        devices = ",".join(map(str, ids.transpose([*used, *of_manual, *rest]).flat))
        ending = " last_tile_dim_replicate" if kinds == ["replicated"] else ""
        if manuals > 1:
            ending = f" last_tile_dims={{{', '.join(kinds)}}}"
        return f"{{devices=[{','.join(map(str, tiles))}]{devices}{ending}}}"

    def _parts(self, sharding: _Sharding) -> Iterator[_Axis]:
        """Split the axes where the sharding does."""
        named = [axis for held in sharding.dimensions for axis in held]
        for name, size in self.axes.items():
            cuts = {1, size}
            for axis in named:
                if axis.name == name and axis.size:
                    cuts |= {axis.before, axis.before * axis.size}
            places = sorted(cuts)
            yield from (_Axis(name, before, after // before) for before, after in pairwise(places))
            if size == 1:
                yield _Axis(name, 1, 1)


def _is_part(part: _Axis, axis: _Axis) -> bool:
    if part.name != axis.name:
        return False
    return not axis.size or axis.before <= part.before < axis.before * axis.size


def _read(text: str) -> list[_Sharding] | None:
    """Read all shardings in an attribute; ``None`` if there are others than are known here."""
    found = list(_ONE.finditer(text))
    if len(found) != text.count("<@"):
        return None
    shardings = []
    for each in found:
        held = _DIMENSION.findall(each["dimensions"])
        axes = [
            tuple(_Axis(name, int(before or 1), int(size or 0)) for name, before, size in _AXIS.findall(dimension))
            for dimension in held
        ]
        if any(dimension.count('"') != 2 * len(read) for dimension, read in zip(held, axes, strict=True)):
            return None
        shardings.append(_Sharding(each["mesh"], tuple(axes), tuple(at for at, one in enumerate(held) if "?" in one)))
    return shardings


def _mesh_of(text: str) -> _Mesh | None:
    found = _MESH.search(text)
    if found is None:
        return None
    axes = {name: int(size) for name, size in _MESH_AXIS.findall(found[1])}
    ids = [int(each) for each in (found[2] or "").split(",") if each.strip()]
    count = math.prod(axes.values())
    if found[1].count('"') != 2 * len(axes) or (ids and len(ids) != count) or count > _MOST_DEVICES:
        return None
    return _Mesh(axes, tuple(ids or range(count)), is_maximal=bool(ids) and not axes)


#: More than any system has; every sharding lists them.
_MOST_DEVICES: Final = 1 << 16


def _to_gspmd(whole: WholeModule) -> None:
    if whole.target >= _ROUND_TRIP_SINCE:
        to_round_trip(whole)
    else:
        written(whole, _Writer, _reasons)


def _reasons(op: Operation, whole: WholeModule) -> Iterator[str]:
    """The reasons why an op or its attributes have no such form."""
    name = str(op.name)
    yield from reasons_against(op)
    if name == "sdy.sharding_group":
        yield f"{name} has no form in GSPMD"
    elif name == "sdy.manual_computation" and is_nested(op):
        yield f"{name} in another one has no form in GSPMD"
    elif name == "sdy.manual_computation" and (called := _called_with_shardings(op, whole)):
        yield f"@{called}, which is called in a {name}, has shardings, whose manual axes GSPMD does not know"
    elif name == "sdy.mesh" and _mesh_of(str(op.attributes["mesh"])) is None:
        yield f"{name} has axes or devices of another form than GSPMD's writer knows"
    if any(_read(str(each)) is None for each in shardings_of(op)):
        yield f"{name} has a sharding of another form than GSPMD's writer knows"


def _called_with_shardings(computation: Operation, whole: WholeModule) -> str | None:
    """A function that runs in a manual computation, and has something of Shardy itself."""
    functions = functions_of(whole.module)
    left, seen = [computation], set[str]()
    while left:
        for op in whole.provider.walk(left.pop()):
            name = str(op.attributes["callee"].value) if str(op.name) == "func.call" else ""
            if name not in functions or name in seen:
                continue
            seen.add(name)
            left.append(functions[name])
            held = whole.provider.walk(functions[name])
            if any(is_of_shardy(each) or any(shardy_attributes(each)) for each in held):
                return name
    return None


class _Writer(ShardyWriter):
    body = "manual_computation"

    def __init__(self, whole: WholeModule) -> None:
        super().__init__(whole)
        ops = (op for op in whole.provider.walk(whole.module) if str(op.name) == "sdy.mesh")
        self._held = {symbol_of(op): _mesh_of(str(op.attributes["mesh"])) for op in ops}

    def finish(self) -> None:
        attributes = self._whole.module.operation.attributes
        count = max((len(mesh.ids) for mesh in self._held.values() if mesh is not None), default=1)
        if _PARTITIONS not in attributes and count > 1:
            attributes[_PARTITIONS] = self._ir.IntegerAttr.get(self._ir.IntegerType.get_signless(32), count)

    def _text(self, sharding: _Sharding, manual: Collection[str] = ()) -> str:
        mesh = self._held[sharding.mesh]
        assert mesh is not None
        return mesh.hlo(sharding, manual)

    def _annotated(self, op: Operation) -> None:
        found = list(shardy_attributes(op))
        for name in dict.fromkeys(each.name for each in found):
            became = "removed: GSPMD has none" if name == RULE else f"rewritten to {_SHARDING}"
            self._whole.notes.add(op, f"{name} of {op.name} was {became}", "attribute")
        manual = _manual_around(op)
        for each in found:
            replace_shardy(self._whole.provider, op, each, self._changed(each, manual))

    def _changed(self, held: ShardyAttribute, manual: Collection[str]) -> dict[str, Any]:
        if held.name == RULE:
            return {}
        texts = [self._text(each.without(manual), manual) for each in _read(str(held.value)) or ()]
        if not texts:
            # An op without results.
            return {}
        is_tuple = held.side is None and len(texts) != 1
        return {_SHARDING: self._ir.StringAttr.get(f"{{{', '.join(texts)}}}" if is_tuple else texts[0])}

    def _mesh(self, op: Operation) -> str:
        return _SHARDING

    def _constraint(self, op: Operation) -> str:
        manual = _manual_around(op)
        (sharding,) = _read(str(op.attributes["sharding"])) or [_Sharding("", (), ())]
        made = self._constrained(op, op.operands[0], sharding.without(manual), manual)
        return self._replace(op, made.results, made)

    def _manual_computation(self, op: Operation) -> str:
        ins, outs = (_read(str(op.attributes[name])) or [] for name in ("in_shardings", "out_shardings"))
        manual = _manual_axes(op)
        if self._whole.target < _FOUND_SINCE and (ins or outs):
            self._mark_collectives(op, (*ins, *outs)[0].mesh, manual)
        function = self._function(op)
        inner = [each.type for each in function.regions[0].blocks[0].arguments]
        values = [
            self._reshaped(op, "SPMDFullToShardShape", value, type_, sharding, ((), manual))
            for value, type_, sharding in zip(op.operands, inner, ins, strict=True)
        ]
        call = self._call(op, function, values)
        results = [
            self._reshaped(op, "SPMDShardToFullShape", value, result.type, sharding, (manual, ()))
            for value, result, sharding in zip(call.results, op.results, outs, strict=True)
        ]
        self._replace(op, results, call)
        return "stablehlo.custom_call, func.call"

    def _mark_collectives(self, op: Operation, mesh: str, manual: Collection[str]) -> None:
        """Of ops that devices exchange values with, split along free axes is given up."""
        for each in self._whole.provider.walk(op):
            if str(each.name) in OF_DEVICES and _SHARDING not in each.attributes:
                texts = [self._text(_Sharding(mesh, ((),) * len(one.type.shape), ()), manual) for one in each.results]
                text = texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}"
                each.attributes[_SHARDING] = self._ir.StringAttr.get(text)

    def _reshaped(
        self,
        at: Any,
        target: str,
        value: Any,
        type_: Any,
        sharding: _Sharding,
        manual: tuple[Collection[str], Collection[str]],
    ) -> Any:
        """``manual`` has the manual axes before and behind."""
        before, behind = manual
        constrained = self._constrained(at, value, sharding.without(before), before).results[0]
        made = self._custom_call(at, target, [constrained], [type_], {})
        made.attributes[_SHARDING] = self._ir.StringAttr.get(self._text(sharding.without(behind), behind))
        return made.results[0]

    def _constrained(self, at: Any, value: Any, sharding: _Sharding, manual: Collection[str]) -> Any:
        made = self._custom_call(at, CONSTRAINT, [value], [value.type], {})
        made.attributes[_SHARDING] = self._ir.StringAttr.get(self._text(sharding, manual))
        if sharding.open:
            config = f"unspecified_dims=[{','.join(map(str, sharding.open))}]"
            made.attributes["backend_config"] = self._ir.StringAttr.get(config)
        return made


def _manual_axes(op: Any) -> tuple[str, ...]:
    return tuple(name for name, _, _ in _AXIS.findall(str(op.attributes["manual_axes"])))


def _manual_around(op: Operation) -> tuple[str, ...]:
    """The axes of the manual computation that the op is in."""
    parent = op.operation.parent
    while parent is not None:
        if str(parent.name) == "sdy.manual_computation":
            return _manual_axes(parent)
        parent = parent.operation.parent
    return ()


SHARDINGS_EXACT: Final = _to_gspmd
