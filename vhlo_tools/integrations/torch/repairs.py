"""Fixes for output of torch-mlir 20261001 that consumers reject."""

from __future__ import annotations

from typing import Any

from vhlo_tools.bindings import Module, Provider


def mend(module: Module, provider: Provider) -> None:
    """Fix, in place, ops that XLA rejects and ops that prevent inference of shapes from the shapes of the inputs."""
    for op in provider.walk(module):
        match str(op.name):
            case "stablehlo.compare":
                _mend_comparison(op, provider.ir)
            case "arith.divui":
                _mend_division(op, provider.ir)
            case "stablehlo.convert":
                _mend_length(op)


def _mend_comparison(op: Any, ir: Any) -> None:
    """Compare booleans as unsigned, as StableHLO requires."""
    if str(op.operands[0].type.element_type) == "i1":
        op.attributes["compare_type"] = ir.Attribute.parse("#stablehlo<comparison_type UNSIGNED>", op.context)


def _mend_division(op: Any, ir: Any) -> None:
    """Divide sizes, which are not negative, as signed numbers, because shape inference lacks unsigned division."""
    if str(op.result.type) in ("index", "i64"):
        operands, place = list(op.operands), ir.InsertionPoint(op)
        signed = ir.Operation.create("arith.divsi", [op.result.type], operands, loc=op.location, ip=place)
        op.result.replace_all_uses_with(signed.result)


def _mend_length(op: Any) -> None:
    """Use the length of a range of step 1 directly, and not the ceiling of a quotient of floats."""
    ceiling = _made_by(op.operands[0], "stablehlo.ceil")
    quotient = _made_by(ceiling.operands[0], "stablehlo.divide") if ceiling else None
    if quotient is None:
        return
    length, step = (_made_by(each, "stablehlo.convert") for each in quotient.operands)
    if length is None or step is None or length.operands[0].type != op.result.type or not _is_one(step.operands[0]):
        return
    op.result.replace_all_uses_with(length.operands[0])


def _made_by(value: Any, name: str) -> Any:
    owner = value.owner
    return owner if getattr(owner, "name", None) == name else None


def _is_one(value: Any) -> bool:
    constant = _made_by(value, "stablehlo.constant") or _made_by(value, "arith.constant")
    return constant is not None and str(constant.attributes["value"]).startswith("dense<1> : tensor<")
