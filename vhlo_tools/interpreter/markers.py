"""Marks in a program of the values that are probed, which go with them through every rewriting.

A mark is a custom call that takes the value. What an op becomes before it can be run is no matter: the mark then takes
what stands for its result.
"""

from __future__ import annotations

from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider
from vhlo_tools.interpreter.probing import ARGUMENT, Probe, ProbeSite

__all__ = ["is_marker", "mark", "site_of"]

_TARGET: Final = "vhlo_tools.probe"

#: Ops in whose regions values are marked. Bodies of others are computed element by element, and not walked.
_ENTERED: Final = frozenset({"func.func", "stablehlo.case", "stablehlo.if", "stablehlo.while"})


def is_marker(op: Operation) -> bool:
    """Tell whether an op is a mark."""
    return str(op.name) == "stablehlo.custom_call" and op.attributes["call_target_name"].value == _TARGET


def site_of(marker: Operation) -> int:
    """Return the number of the site that a mark stands for."""
    return int(marker.attributes["backend_config"].value)


def mark(provider: Provider, module: ModuleOp, probe: Probe) -> list[ProbeSite]:
    """Mark the values that a probe wants, in place.

    Args:
        provider: The bindings.
        module: The program.
        probe: What it wants.

    Returns:
        The sites, by the numbers that the marks have.
    """
    marking = _Marking(provider, probe)
    with module.context:
        for op in module.operation.regions[0].blocks[0].operations:
            if str(op.operation.name) == "func.func":
                name = str(op.operation.attributes["sym_name"].value)
                marking.enter(op.operation, f"@{name}", name)
    return marking.sites


class _Marking:
    def __init__(self, provider: Provider, probe: Probe) -> None:
        self.sites: list[ProbeSite] = []
        self._ir = provider.ir
        self._probe = probe
        # Where values come from, for what takes them.
        self._origins: dict[Any, tuple[str, int]] = {}

    def enter(self, op: Operation, path: str, function: str) -> None:
        """Mark what is in the regions of an op."""
        for number, region in enumerate(op.regions):
            within = path if str(op.name) == "func.func" else f"{path}/{number}"
            for block in region:
                for index, argument in enumerate(block.arguments):
                    self._origins[argument] = within, index
                # As it stands before anything is marked: marks are no ops of the program.
                ops = [each.operation for each in block.operations]
                if self._probe.arguments and self._probe.wants(ARGUMENT, "", function):
                    for index, argument in enumerate(block.arguments):
                        site = ProbeSite(ARGUMENT, index, _printed(op.location), within, function)
                        self._mark(argument, site, self._ir.InsertionPoint(ops[0]), op.location)
                for index, each in enumerate(ops[:-1]):
                    self._op(each, self._ir.InsertionPoint(ops[index + 1]), f"{within}/{index}:{each.name}", function)

    def _op(self, op: Operation, after: Any, path: str, function: str) -> None:
        name, location = str(op.name), _printed(op.location)
        for index, result in enumerate(op.results):
            self._origins[result] = path, index
        if self._probe.wants(name, location, function):
            operands = tuple(self._origins[value] for value in op.operands if value in self._origins)
            for index, result in enumerate(op.results):
                site = ProbeSite(name, index, location, path, function, operands)
                self._mark(result, site, after, op.location)
        if name in _ENTERED:
            self.enter(op, path, function)

    def _mark(self, value: Any, site: ProbeSite, place: Any, location: Any) -> None:
        """Mark a value, if it has a form in numpy."""
        if not _has_numbers(value.type):
            return
        string = self._ir.StringAttr.get
        attributes = {
            "call_target_name": string(_TARGET),
            "backend_config": string(str(len(self.sites))),
            "has_side_effect": self._ir.BoolAttr.get(True),
        }
        self._ir.Operation.create(
            "stablehlo.custom_call", operands=[value], attributes=attributes, loc=location, ip=place
        )
        self.sites.append(site)


def _printed(location: Any) -> str:
    """Return a location as MLIR prints it, within ``loc()``."""
    text = str(location)
    text = text[len("loc(") : -1] if text.startswith("loc(") else text
    return "" if text == "unknown" else text


def _has_numbers(kind: Any) -> bool:
    """Tell whether values of a type can be handed to a custom call, and have a form in numpy."""
    text = str(kind)
    return text.startswith("tensor<") and "index" not in text and "*" not in text
