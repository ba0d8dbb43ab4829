"""Preparation of programs for IREE: plain StableHLO, whose ``main`` exchanges numbers that numpy and IREE both have.

Only constructs without a counterpart in IREE are rewritten: other dialects, bounds, quantized tensors, placements, and
values of types that its runtime does not exchange. Nothing that IREE refuses or gets wrong is mended, so that a
comparison finds it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, Final

from vhlo_tools.bindings import MLIRFailure, Module, Operation, Provider
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.op_traits import ops_where
from vhlo_tools.execution.reference.lowering.annotations import annotated, declared, placed_unless
from vhlo_tools.execution.reference.lowering.bounds import has_bounds, release_bounds
from vhlo_tools.execution.reference.lowering.dynamic_shapes import refine
from vhlo_tools.execution.reference.lowering.lowering_patterns import apply_required
from vhlo_tools.execution.reference.lowering.quantization import is_quantized, store_quantized
from vhlo_tools.execution.reference.lowering.wrap_main import wrap_main
from vhlo_tools.execution.refusals import refusal
from vhlo_tools.execution.values.arrays import ArgumentType, ValueType, parse_value_type
from vhlo_tools.execution.values.main_function import main_of
from vhlo_tools.execution.xla.crash_limits import CallGraph
from vhlo_tools.legalize import make_plain
from vhlo_tools.program import explain_failure, load_program
from vhlo_tools.rewriting import patterns_of
from vhlo_tools.version import Version

#: Ops that name devices, or exchange values between them: IREE runs one device, and refuses these only while it runs.
_OF_DEVICES: Final = ops_where(lambda traits: traits.reference == "devices") | {"sdy.manual_computation"}

_PLACEMENTS: Final = patterns_of(
    {
        "sdy.propagation_barrier": annotated,
        "sdy.reshard": annotated,
        "sdy.sharding_constraint": annotated,
        "sdy.sharding_group": declared,
        "stablehlo.custom_call": placed_unless(frozenset()),
    },
    required=True,
)


def signature(main: Operation) -> tuple[list[ValueType], list[ValueType]]:
    function_type = main.attributes["function_type"].value
    inputs, results = function_type.inputs, function_type.results
    return [parse_value_type(str(each)) for each in inputs], [parse_value_type(str(each)) for each in results]


def artifact_here(
    bytecode: memoryview, provider: str, name: str, version: str, shapes: Sequence[tuple[int, ...]] | None
) -> bytes:
    """Called in a child process; ``shapes`` of the array arguments resolve dynamic shapes, ``None`` keeps these."""
    program = load_program(bytes(bytecode), name=name, provider=provider, trusted=True)
    bindings = program.provider
    module = bindings.as_module(program.load())
    arguments, results = signature(main_of(module, name))
    try:
        module = bindings.as_module(make_plain(bindings, module, name))
        apply_required(bindings, module, _PLACEMENTS, name)
        _check_ops(bindings, module, name)
        text = bindings.text(module, largest_constant=0)
        if has_bounds(text):
            release_bounds(bindings, module, name)
        if is_quantized(text):
            store_quantized(bindings, module, name)
        wrap_main(bindings, module, arguments, results)
        if shapes is not None:
            tensors = [each for each in arguments if isinstance(each, ArgumentType)]
            refine(bindings, module, _converted_types(tensors, shapes))
        _drop_attributes(module)
        bindings.verify(module)
    except MLIRFailure as failure:
        said = explain_failure(name, bindings, failure)
        raise EngineError(f"{name} cannot be rewritten for IREE: {said}", failure.diagnostics) from failure
    target = min(Version(version), bindings.library.current)
    try:
        return bindings.serialize(module, target, allow_other_dialects=True)
    except MLIRFailure as failure:
        said = explain_failure(name, bindings, failure)
        raise EngineError(
            f"{name} has no form in StableHLO {target}, the newest that the installed IREE reads: {said}",
            failure.diagnostics,
        ) from failure


def _check_ops(provider: Provider, module: Module, name: str) -> None:
    ops = provider.walk(module)
    recursive = CallGraph(ops).recursive
    for op in ops:
        if reason := _reason(op, recursive):
            raise refusal(op, name, reason, "the engine iree")


def _reason(op: Operation, recursive: Container[str]) -> str | None:
    name = str(op.name)
    if name == "func.call" and str(op.attributes["callee"].value) in recursive:
        return "it calls a recursive function, and IREE inlines calls without end"
    if name == "stablehlo.custom_call":
        target = str(op.attributes["call_target_name"].value)
        return f"it has no custom calls, here of {target}: use the engine reference or xla"
    return "it runs programs on one device: use the engine reference or xla" if name in _OF_DEVICES else None


def _converted_types(tensors: Sequence[ArgumentType], shapes: Sequence[tuple[int, ...]]) -> list[str]:
    types = []
    for tensor, shape in zip(tensors, shapes, strict=True):
        sizes = "".join(f"{size}x" for size in shape)
        types += [f"tensor<{sizes}{tensor.converted}>"] * (2 if tensor.conversion == "parts" else 1)
    return types


def _drop_attributes(module: Module) -> None:
    """A run on one device depends on no discardable attribute of a function, and IREE reads some."""
    for op in module.body.operations:
        inner: Any = op.operation
        for name in ("arg_attrs", "res_attrs"):
            if name in inner.attributes:
                del inner.attributes[name]
