"""Instrumentation of probed values of a program; it survives all rewriting.

An instrumentation is a custom call with the value as its operand. When an op is rewritten before it runs, the operand
becomes the value that replaces its result.
"""

from __future__ import annotations

from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider
from vhlo_tools.execution.op_traits import CONTROL_FLOW
from vhlo_tools.execution.probes.probes import ARGUMENT, Probe, ProbeSite

_TARGET: Final = "vhlo_tools.probe"

#: Ops in whose regions values are instrumented. The regions of other ops are computed element by element, and not
#: stepped through.
_ENTERED: Final = CONTROL_FLOW | {"func.func"}


def is_instrumentation(op: Operation) -> bool:
    return str(op.name) == "stablehlo.custom_call" and op.attributes["call_target_name"].value == _TARGET


def site_of(op: Operation) -> int:
    return int(op.attributes["backend_config"].value)


def instrument(provider: Provider, module: ModuleOp, probe: Probe) -> list[ProbeSite]:
    """Instruments in place; the sites are indexed by the numbers in the instrumentation."""
    instrumenting = _Instrumenting(provider, probe)
    with module.context:
        for op in module.operation.regions[0].blocks[0].operations:
            if str(op.operation.name) == "func.func":
                name = str(op.operation.attributes["sym_name"].value)
                instrumenting.enter(op.operation, f"@{name}", name)
    return instrumenting.sites


class _Instrumenting:
    def __init__(self, provider: Provider, probe: Probe) -> None:
        self.sites: list[ProbeSite] = []
        self._ir = provider.ir
        self._probe = probe
        # The producers of values, for the operands of sites.
        self._origins: dict[Any, tuple[str, int]] = {}

    def enter(self, op: Operation, path: str, function: str) -> None:
        for number, region in enumerate(op.regions):
            within = path if str(op.name) == "func.func" else f"{path}/{number}"
            for block in region:
                for index, argument in enumerate(block.arguments):
                    self._origins[argument] = within, index
                # Listed before anything is inserted, because instrumentation is not part of the program.
                ops = [each.operation for each in block.operations]
                if self._probe.arguments and self._probe.wants(ARGUMENT, "", function):
                    for index, argument in enumerate(block.arguments):
                        site = ProbeSite(ARGUMENT, index, _printed(op.location), within, function)
                        self._instrument(argument, site, self._ir.InsertionPoint(ops[0]), op.location)
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
                self._instrument(result, site, after, op.location)
        if name in _ENTERED:
            self.enter(op, path, function)

    def _instrument(self, value: Any, site: ProbeSite, place: Any, location: Any) -> None:
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
    text = str(location)
    text = text[len("loc(") : -1] if text.startswith("loc(") else text
    return "" if text == "unknown" else text


def _has_numbers(type_: Any) -> bool:
    """Types that a custom call takes as operands, and numpy represents."""
    text = str(type_)
    return text.startswith("tensor<") and "index" not in text and "*" not in text
