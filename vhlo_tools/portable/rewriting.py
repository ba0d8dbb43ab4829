"""Ops of other dialects replaced by StableHLO's, by a table of rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from vhlo_tools.bindings import MLIRFailure, ModuleOp, Operation, Provider, named_attributes, source_of
from vhlo_tools.portable.notes import Notes
from vhlo_tools.portable.site import Site, Unfit

__all__ = ["Rule", "discardable", "lost", "rewrite_ops"]

#: Builds what stands for the results of the op of a site, in order; raises :class:`Unfit` if it cannot.
Rule = Callable[[Site], Sequence[Any]]

# What takes sizes of dimensions, as indices or as integers.
_TAKE_SIZES: Final = frozenset(
    f"stablehlo.{name}"
    for name in (
        "dynamic_broadcast_in_dim",
        "dynamic_conv",
        "dynamic_gather",
        "dynamic_iota",
        "dynamic_pad",
        "dynamic_reshape",
        "real_dynamic_slice",
    )
)


def rewrite_ops(provider: Provider, module: ModuleOp, rules: Mapping[str, Rule], notes: Notes) -> None:
    """Replace the ops of ``module`` that ``rules`` are for, in place. Those that cannot be replaced stay.

    Args:
        provider: The bindings.
        module: The module.
        rules: For the names of ops, how they are replaced.
        notes: Told of every op that was replaced.
    """
    carried: dict[Any, Any] = {}
    replaced: list[tuple[Site, Sequence[str]]] = []
    with module.context:
        for op in provider.walk(module):
            rule = rules.get(str(op.name))
            if rule is None:
                continue
            site = Site(provider, op, carried)
            try:
                values = rule(site)
                for made in site.made:
                    provider.verify(made)
            except (Unfit, MLIRFailure):
                # StableHLO may not have such an op on elements of such a type.
                _erase_unused(site.made)
                continue
            carried.update(zip(op.results, values, strict=True))
            replaced.append((site, _hand_over(site, values)))
        gone = []
        for site, without in reversed(replaced):
            op = site.op
            for result in op.results:
                _pass_on(result, carried[result])
            if not any(_is_used(result) for result in op.results):
                gone.append((str(op.name), source_of(op.location), site, lost(without)))
                op.operation.erase()
        kept = _erase_unused([each for site, _ in replaced for each in site.made])
    for name, location, site, end in reversed(gone):
        if not site.made:
            became = "became the value that it was given"
        elif words := _words([each for each in site.made if id(each) in kept]):
            became = f"became {words}"
        else:
            became = "is gone, for nothing that is left needs it"
        notes.add_at(name, location, f"{name} {became}{end}")


def lost(names: Sequence[str]) -> str:
    """Return the end of a note, that attributes called ``names`` are gone."""
    return f", without its {', '.join(names)}" if names else ""


def discardable(op: Operation) -> dict[str, Any]:
    """Return the attributes of an op that mean something to others than its dialect, such as ``mhlo.sharding``."""
    return {name: attribute for name, attribute in named_attributes(op.attributes) if "." in name}


def _hand_over(site: Site, values: Sequence[Any]) -> list[str]:
    """Give the attributes that anybody may put on an op to the one that stands for it.

    Returns:
        The names of those that are lost: there is no such op, or it has other results too.
    """
    held = discardable(site.op)
    if not held:
        return []
    heir: Any = values[-1].owner if values else None
    if heir not in site.made or len(heir.results) != len(values):
        return list(held)
    for name, attribute in held.items():
        heir.attributes[name] = attribute
    return []


def _words(ops: Sequence[Any]) -> str:
    """Return what an op became, in words; CHLO is legalized afterwards."""
    names = dict.fromkeys(str(op.name) for op in ops)
    return "plain StableHLO" if any(name.startswith("chlo.") for name in names) else ", ".join(names)


def _pass_on(result: Any, value: Any) -> None:
    """Let ``value`` be used in the place of ``result``, wherever its type allows."""
    if value.type == result.type:
        result.replace_all_uses_with(value)
        return
    for use in list(result.uses):
        if str(use.owner.name) in _TAKE_SIZES:
            use.owner.operation.operands[use.operand_number] = value


def _is_used(value: Any) -> bool:
    return next(iter(value.uses), None) is not None


def _erase_unused(ops: list[Any]) -> set[int]:
    """Erase those of ``ops``, which do nothing but compute, whose results are not used.

    Returns:
        The identities of those that are left.
    """
    kept = set()
    for op in reversed(ops):
        if any(_is_used(result) for result in op.results):
            kept.add(id(op))
        else:
            op.operation.erase()
    return kept
