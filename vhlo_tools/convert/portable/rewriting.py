"""Ops of other dialects replaced by StableHLO's, by a table of rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider, source_of
from vhlo_tools.convert.portable.notes import Notes
from vhlo_tools.convert.portable.site import Site, Unfit

__all__ = ["Rule", "rewrite_ops"]

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
    replaced: list[tuple[Operation, str]] = []
    made: list[Any] = []
    with module.context:
        for op in provider.walk(module):
            rule = rules.get(str(op.name))
            if rule is None:
                continue
            site = Site(provider, op, carried)
            try:
                values = rule(site)
            except Unfit:
                _erase_unused(site.made)
                continue
            carried.update(zip(op.results, values, strict=True))
            replaced.append((op, _words(site)))
            made += site.made
        gone = []
        for op, words in reversed(replaced):
            for result in op.results:
                _pass_on(result, carried[result])
            if not any(_is_used(result) for result in op.results):
                gone.append((str(op.name), source_of(op.location), f"{op.name} became {words}"))
                op.operation.erase()
        _erase_unused(made)
    for name, location, message in reversed(gone):
        notes.add_at(name, location, message)


def _words(site: Site) -> str:
    """Return what an op became, in words."""
    names = list(dict.fromkeys(str(op.name) for op in site.made))
    return ", ".join(names) if names else "the value that it was given"


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


def _erase_unused(ops: list[Any]) -> None:
    """Erase those of ``ops``, which do nothing but compute, whose results are not used."""
    for op in reversed(ops):
        if not any(_is_used(result) for result in op.results):
            op.operation.erase()
