"""Where an op comes from, when it does not say so itself.

Frameworks put library code into private functions, whose ops carry no place of the user's source; the calls of them do.
"""

from __future__ import annotations

from vhlo_tools.bindings import ModuleOp, Operation, Provider, source_of
from vhlo_tools.findings import SourceLocation

__all__ = ["calling_place"]


def calling_place(provider: Provider, module: ModuleOp, op: str, location: str) -> tuple[str, SourceLocation] | None:
    """Return the function that holds an op, and where that is called from the user's source.

    Args:
        provider: The bindings.
        module: The program.
        op: The name of the op.
        location: Its location as MLIR prints it.

    Returns:
        The name of the function and the place of the first call that has one, through other functions where need be;
        ``None`` if there is none.
    """
    functions = {
        str(function.attributes["sym_name"].value): provider.walk(function)
        for function in provider.walk(module)
        if function.name == "func.func"
    }
    holder = next(
        (
            name
            for name, ops in functions.items()
            if any(each.name == op and str(each.location) == location for each in ops)
        ),
        None,
    )
    place = _called_from(functions, holder, frozenset()) if holder else None
    return (holder, place) if holder and place else None


def _called_from(functions: dict[str, list[Operation]], name: str, seen: frozenset[str]) -> SourceLocation | None:
    calls = [
        (caller, op)
        for caller, ops in functions.items()
        if caller not in seen
        for op in ops
        if op.name == "func.call" and op.attributes["callee"].value == name
    ]
    places = (source_of(op.location) or _called_from(functions, caller, seen | {name}) for caller, op in calls)
    return next((place for place in places if place), None)
