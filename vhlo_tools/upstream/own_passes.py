"""Passes of upstream's program that no provider registers, or none in working order, reimplemented here.

Sources: ``stablehlo/reference/InterpreterInstrumentWithProbe.cpp`` in openxla/stablehlo;
``mlir/lib/Conversion/ReconcileUnrealizedCasts`` and ``mlir/lib/Transforms/InlinerPass.cpp`` in llvm/llvm-project.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from vhlo_tools.bindings import MlirSession, inline_calls, location_kind
from vhlo_tools.records import dataclass
from vhlo_tools.upstream.arguments import UsageError, truth_of

_CHLO: Final = "chlo-legalize-to-stablehlo"
_CAST: Final = "builtin.unrealized_conversion_cast"


@dataclass(frozen=True, slots=True)
class ReimplementedPass:
    """A pass over modules, which it changes in place."""

    name: str
    description: str
    #: With their defaults; None if the library has a pass of the same name, which accepts the options and is run next.
    options: Mapping[str, str] | None
    run: Callable[[MlirSession, Any, Mapping[str, str]], None]

    def options_of(self, text: str) -> dict[str, str]:
        options = dict(self.options or {})
        for each in text.split():
            name, _, value = each.partition("=")
            if name not in options:
                takes = ", ".join(options) or "none"
                raise UsageError(f"<Pass-Options-Parser>: no such option {name}; {self.name} takes {takes}")
            truth = truth_of(value)
            if truth is None:
                raise UsageError(
                    f"for the --{name} option: '{value}' is invalid value for boolean argument! Try 0 or 1"
                )
            options[name] = str(truth).lower()
        return options


def _reconcile(toolbox: MlirSession, module: Any, _: Mapping[str, str]) -> None:
    casts = [op for op in toolbox.provider.walk(module) if str(op.name) == _CAST]
    for op in casts:
        origin: Any = op.operands[0].owner if len(op.operands) else None
        # Through any number of casts, back to values of the result types of this cast.
        while _is_cast(origin):
            before = list(origin.operands)
            if [each.type for each in before] == [each.type for each in op.results]:
                for result, value in zip(op.results, before, strict=True):
                    result.replace_all_uses_with(value)
                break
            origin = before[0].owner if before else None
    # In reverse, so that users are erased before the casts that they use.
    for op in reversed(casts):
        if not any(True for result in op.results for _ in result.uses):
            op.operation.erase()


def _is_cast(owner: Any) -> bool:
    return hasattr(owner, "operands") and str(owner.name) == _CAST


def _instrument(toolbox: MlirSession, module: Any, options: Mapping[str, str]) -> None:
    """Insert a probe after each op with static tensor results, except constants."""
    ir = toolbox.provider.ir
    by_name = options["useDebugInfo"] == "true"
    number = 0
    # In post-order, as MLIR walks.
    for op in toolbox.provider.walk(module, innermost_first=True):
        if str(op.name) == "stablehlo.constant":
            continue
        for result in op.results:
            if not _is_probed(ir, result.type):
                continue
            number += 1
            name = "probe"
            if by_name and location_kind(op.location) == "name":
                name = str(op.location.name_str).split("@")[0] + "."
            with op.context:
                probe = ir.Operation.create(
                    "interpreter.probe",
                    results=[result.type],
                    operands=[result],
                    attributes={"probe_id": ir.StringAttr.get(f"{name}{number}")},
                    loc=op.location,
                    ip=ir.InsertionPoint.after(op),
                )
            result.replace_all_uses_except(probe.results[0], probe)


def _inline(toolbox: MlirSession, module: Any, _: Mapping[str, str]) -> None:
    """Inline function calls.

    The provider's own pass simplifies functions and erases unused ones, but it inlines nothing: the interface for
    inlining functions of ``func`` is an extension that no provider registers.
    """
    inline_calls(toolbox.provider, module, lambda op: str(op.name) == "func.call" and "no_inline" not in op.attributes)


def _is_probed(ir: Any, type_: Any) -> bool:
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return False
    element = type_.element_type
    return isinstance(element, ir.IntegerType | ir.FloatType | ir.ComplexType)


def prepare(toolbox: MlirSession, operation: Any, pipeline: str) -> bool:
    """Rewrite, in place, ops that passes of the library handle incorrectly; return whether these passes can run."""
    if _CHLO not in pipeline:
        return True
    # Not imported at the top: the import is slow, and only programs with CHLO need it.
    from vhlo_tools.conversion import legalize_scans, legalizes_scans

    if legalizes_scans(toolbox.provider):
        return True
    left = legalize_scans(toolbox.provider, operation)
    for op in left:
        op.location.emit_error(f"failed to legalize operation '{op.name}' that was explicitly marked illegal")
    return not left


#: The passes, by name.
OWN_PASSES: Final[Mapping[str, ReimplementedPass]] = {
    each.name: each
    for each in (
        ReimplementedPass("inline", "Puts functions, of any size, in the place of their calls", None, _inline),
        ReimplementedPass(
            "interpreter-instrument-with-probe",
            "Inserts interpreter.probe ops in a StableHLO program.",
            {"useDebugInfo": "false"},
            _instrument,
        ),
        ReimplementedPass(
            "reconcile-unrealized-casts",
            "Simplifies and eliminates casts there and back that conversions left.",
            {},
            _reconcile,
        ),
    )
}
