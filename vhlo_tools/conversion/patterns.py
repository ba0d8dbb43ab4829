"""Patterns for replacing ops, and the driver that applies them to a module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from vhlo_tools.artifact import STAND_IN, op_of
from vhlo_tools.bindings import (
    MLIRFailure,
    ModuleOp,
    Operation,
    Provider,
    named_attributes,
    names_without_class,
    source_of,
)
from vhlo_tools.conversion.rewriter import MatchFailure, Notes, Rewriter
from vhlo_tools.findings import SourceLocation
from vhlo_tools.records import dataclass

#: Builds the values that replace the results of the rewriter's op, and returns them in order. ``None`` keeps the op
#: unchanged; :class:`MatchFailure` reports that the pattern does not match the op.
Build = Callable[[Rewriter], Sequence[Any] | None]

#: Takes an op that a pattern could not replace, and the reason.
Refuse = Callable[[Operation, str], None]


@dataclass(frozen=True, slots=True)
class Pattern:
    op: str
    build: Build
    required: bool = False  # an op that the pattern does not match is an error; otherwise it stays


class UnmatchedOpError(Exception):
    """A required pattern does not match its op; this error never leaves the package."""

    def __init__(self, op: Operation, reason: str) -> None:
        super().__init__(reason)
        self.op = op


# Ops that accept the sizes of dimensions as indices or as integers.
_TAKE_SIZES: Final = {
    *("stablehlo.dynamic_broadcast_in_dim", "stablehlo.dynamic_conv", "stablehlo.dynamic_gather"),
    *("stablehlo.dynamic_iota", "stablehlo.dynamic_pad", "stablehlo.dynamic_reshape", "stablehlo.real_dynamic_slice"),
}

# Ops that may have side effects. A call has those of its callee.
_EFFECTS: Final = {
    *("func.call", "stablehlo.composite", "stablehlo.custom_call"),
    *("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.recv", "stablehlo.send"),
}


def name_of(op: Operation) -> str:
    """The name of an op; of a stand-in, that of the op for which it stands."""
    name = str(op.name)
    if name != "stablehlo.custom_call":
        return name
    stood = op_of(str(op.attributes["call_target_name"].value), len(op.operands), len(op.results))
    return f"stablehlo.{stood.name}" if stood else name


def patterns_of(builds: Mapping[str, Build], *, required: bool = False) -> tuple[Pattern, ...]:
    return tuple(Pattern(op, build, required) for op, build in builds.items())


def apply_patterns(
    provider: Provider,
    module: ModuleOp,
    patterns: Iterable[Pattern],
    notes: Notes | None = None,
    *,
    retyping: bool = False,
    refuse: Refuse | None = None,
    ops: Iterable[Operation] | None = None,
) -> None:
    """Nested ops come before the ops that contain them, and pass attributes and locations on to their replacement.

    With ``retyping``, values of other types replace results wherever these are used; the caller changes the types of
    the uses, and verifies the module. ``refuse`` takes each op that an optional pattern could not replace.
    """
    driver = _Driver(provider, {each.op: each for each in patterns}, retyping, refuse)
    with module.context:
        # Innermost ops first, because nested ops are cloned and erased with the op that contains them.
        for op in provider.walk(module, innermost_first=True) if ops is None else ops:
            driver.visit(op)
        driver.finish(notes)


@dataclass(slots=True)
class _Replaced:
    op: Operation | None  # as long as it exists
    name: str
    location: SourceLocation | None  # in the user's source
    parent: Any
    made: list[Any]  # ops that were built for it
    without: Sequence[str]  # names of the attributes that are lost
    cloned: bool = False  # the ops in ``made`` were erased with ``parent``, which was replaced by a copy
    has_results: bool = True
    has_body: bool = False  # regions with ops, which stand in the place of the op if nothing was built for it


class _Driver:
    def __init__(
        self, provider: Provider, patterns: Mapping[str, Pattern], retyping: bool, refuse: Refuse | None
    ) -> None:
        self._provider = provider
        self._patterns = patterns
        self._retyping = retyping
        self._refuse = refuse
        self._converted: dict[Any, Any] = {}
        self._replaced: list[_Replaced] = []

    def visit(self, op: Operation) -> None:
        pattern = self._patterns.get(name_of(op))
        if pattern is None:
            return
        rewriter = Rewriter(self._provider, op, self._converted)
        try:
            values = pattern.build(rewriter)
            if values is None:
                return
            for made in () if self._retyping else rewriter.made:
                self._provider.verify(made)
        except (MatchFailure, MLIRFailure) as failure:
            if pattern.required:
                if isinstance(failure, MatchFailure):
                    raise UnmatchedOpError(op, str(failure)) from failure
                raise
            # StableHLO may not support the op on this element type. Nothing uses what was built.
            _erase_unused(rewriter.made, keep_effects=False)
            if self._refuse is not None:
                invalid = "" if isinstance(failure, MatchFailure) else "what would replace it is not valid: "
                self._refuse(op, f"{invalid}{failure}")
            return
        self._replace(op, rewriter, values)

    def _replace(self, op: Operation, rewriter: Rewriter, values: Sequence[Any]) -> None:
        without = [*rewriter.without, *_propagate_discardable_attributes(rewriter, values)]
        without += [name for name in _left_out(rewriter) if name not in without]
        location, parent = source_of(op.location), op.operation.parent
        replaced = _Replaced(
            op,
            name_of(op),
            location,
            parent,
            rewriter.made,
            without,
            has_results=bool(len(op.results)),
            has_body=any(len(region.blocks) for region in op.regions),
        )
        self._replaced.append(replaced)
        self._converted.update(rewriter.later)
        is_gone = True
        for result, value in zip(op.results, values, strict=True):
            if self._retyping or result.type == value.type:
                result.replace_all_uses_with(value)
            else:
                self._converted[result] = value
                is_gone = False
        if is_gone:
            self._forget(op)
            op.operation.erase()
            replaced.op = None

    def _forget(self, op: Operation) -> None:
        """Ops that were built within an op to be erased are the last ones that were built before it."""
        for each in reversed(self._replaced[:-1] if len(op.regions) else ()):
            if not _is_within(each.parent, op):
                break
            # The parent, which is erased, may be the op of a parent itself.
            each.op, each.made, each.cloned, each.parent = None, [], True, op.operation.parent

    def finish(self, notes: Notes | None) -> None:
        gone = []
        for each in reversed(self._replaced):
            op = each.op
            if op is not None:
                for result in op.results:
                    if (value := self._converted.get(result)) is not None:
                        _pass_on(result, value)
                if any(_is_used(result) for result in op.results):
                    continue
                op.operation.erase()
            gone.append(each)
        kept = _erase_unused([made for each in self._replaced for made in each.made])
        if notes is None:
            return
        for each in reversed(gone):
            # What is removed with its attributes is not said to be without them.
            message = f"{each.name} {_became(each, kept)}{lost(each.without) if each.has_results or each.made else ''}"
            notes.add_at(each.name, each.location, message)


def lost(names: Sequence[str]) -> str:
    """The end of a note."""
    return f", without its {', '.join(names)}" if names else ""


def discardable(op: Operation) -> dict[str, Any]:
    """Attributes of other dialects or tools, such as ``mhlo.sharding``, but for those of stand-ins."""
    held = named_attributes(op.attributes)
    return {name: attribute for name, attribute in held if "." in name and not name.startswith(STAND_IN)}


def _propagate_discardable_attributes(rewriter: Rewriter, values: Sequence[Any]) -> list[str]:
    """Returns the names that are lost: no op replaces it, or one with other results or an attribute of that name."""
    held = discardable(rewriter.op)
    nameless = [name for name in names_without_class(rewriter.op.attributes) if "." in name]
    # They cannot be moved; copies have them.
    lost = [name for name in nameless if not any(name in op.attributes for op in rewriter.made)]
    if not held:
        return lost
    # An op without results is replaced by the last one that was built.
    heir: Any = values[-1].owner if values else next(reversed(rewriter.made), None)
    if heir not in rewriter.made or len(heir.results) != len(values):
        return [*(name for name, attribute in held.items() if not _has(rewriter.made, name, attribute)), *lost]
    taken = lost
    for name, attribute in held.items():
        if name in heir.attributes and heir.attributes[name] != attribute:
            # An op from a region of the replaced one has an attribute of its own.
            taken.append(name)
        else:
            heir.attributes[name] = attribute
    return taken


def _left_out(rewriter: Rewriter) -> list[str]:
    """Attributes that a single op of the same name, which replaces the op, does not have."""
    made = [each for each in rewriter.made if str(each.name) == str(rewriter.op.name)]
    if len(made) != 1 or len(rewriter.made) != 1:
        return []
    return [name for name, _ in named_attributes(rewriter.op.attributes) if name not in made[0].attributes]


def _has(ops: Sequence[Any], name: str, attribute: Any) -> bool:
    return any(name in op.attributes and op.attributes[name] == attribute for op in ops)


def _became(replaced: _Replaced, kept: set[int]) -> str:
    """Ops of CHLO are described as StableHLO, because CHLO is legalized afterwards."""
    if not replaced.has_results and not replaced.made:
        return "was removed"
    if replaced.cloned:
        return "was rewritten to StableHLO"
    if not replaced.made:
        return "was inlined" if replaced.has_body else "was replaced by its operand"
    made = [str(op.name) for op in replaced.made if id(op) in kept]
    names = dict.fromkeys(made)
    if not names:
        return "was removed, because its results are not used"
    if list(names) == [replaced.name]:
        return "was rewritten" if len(made) == 1 else f"was rewritten to {len(made)} {replaced.name}"
    return f"was rewritten to {'StableHLO' if any(name.startswith('chlo.') for name in names) else ', '.join(names)}"


def _is_within(op: Any, outer: Operation) -> bool:
    while op is not None and op != outer:
        op = op.parent
    return op is not None


def _pass_on(result: Any, value: Any) -> None:
    """Replaces only uses that accept both types."""
    for use in list(result.uses):
        if str(use.owner.name) in _TAKE_SIZES:
            use.owner.operation.operands[use.operand_number] = value


def _is_used(value: Any) -> bool:
    return next(iter(value.uses), None) is not None


def _may_have_effects(op: Any) -> bool:
    """Whether an op, or one in its regions, may do more than compute its results."""
    nested = (each for region in op.regions for block in region.blocks for each in block.operations)
    return str(op.name) in _EFFECTS or any(_may_have_effects(each.operation) for each in nested)


def _erase_unused(ops: list[Any], *, keep_effects: bool = True) -> set[int]:
    """Returns the identities of the ops that remain."""
    kept = set()
    for op in reversed(ops):
        if any(_is_used(result) for result in op.results) or (keep_effects and _may_have_effects(op)):
            kept.add(id(op))
        else:
            op.operation.erase()
    return kept
