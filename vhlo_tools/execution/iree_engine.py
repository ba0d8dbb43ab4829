"""The engine ``iree``: programs compiled by IREE for the CPU, and their preparation."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np

from vhlo_tools.bindings import (
    IsolatedIreeProgram,
    MLIRFailure,
    Module,
    Operation,
    Provider,
    compile_with_iree,
    iree_version,
    require_iree,
)
from vhlo_tools.conversion import make_plain, patterns_of
from vhlo_tools.errors import EngineCrashError, EngineError, EngineTimeoutError
from vhlo_tools.execution.donation import Aliased, Buffer
from vhlo_tools.execution.handlers import Handler, refusal
from vhlo_tools.execution.isolated import bytecode_of, call_isolated, limits_of, named
from vhlo_tools.execution.lowering.patterns import annotated, apply_required, declared, placed_unless
from vhlo_tools.execution.lowering.shapes import has_bounds, is_dynamic, refine, release_bounds, wrap_main
from vhlo_tools.execution.lowering.types import is_quantized, store_quantized
from vhlo_tools.execution.op_traits import ops_where
from vhlo_tools.execution.probes import Probe
from vhlo_tools.execution.protocols import Ran, Values
from vhlo_tools.execution.reference.calling_convention import convert_input, convert_results
from vhlo_tools.execution.values import ArgumentType, ValueType, main_of, parse_value_type
from vhlo_tools.execution.xla.preparation import CallGraph
from vhlo_tools.program import Program, explain_failure, load_program
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

# Preparation of programs for IREE: plain StableHLO, whose ``main`` exchanges numbers that numpy and IREE both have
#
# Only constructs without a counterpart in IREE are rewritten: other dialects, bounds, quantized tensors, placements,
# and values of types that its runtime does not exchange. Nothing that IREE refuses or gets wrong is mended, so that a
# comparison finds it.

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


# Programs compiled by IREE for the CPU, and run on one device

_PREPARE: Final = "vhlo_tools.execution.iree_engine:artifact_here"

Shapes = tuple[tuple[int, ...], ...]


class IreeEngine:
    """IREE overwrites no inputs: results are always in memory of their own. It can call no handlers."""

    def __init__(self, program: Program, handlers: Mapping[str, Handler]) -> None:
        require_iree()
        if handlers:
            raise EngineError(
                f"{program.name}: IREE cannot call handlers, here of {', '.join(sorted(handlers))}: use the engine "
                f"reference or xla"
            )
        self._name, self._provider = program.name, program.provider
        module = program.provider.as_module(program.load())
        self._arguments, self._results = signature(main_of(module, program.name))
        self._is_dynamic = is_dynamic(program.provider.text(module, largest_constant=0))
        self._bytecode = bytecode_of(program.provider, module)
        #: The program compiled for inputs of any shapes, and for those that it could not be compiled for otherwise.
        self._any: _Compiled | None = None
        self._compiled: dict[Shapes, _Compiled] = {}

    def prepare(self, shapes: Sequence[tuple[int, ...]], timeout: float | None = None) -> None:
        self._compile(tuple(shapes), timeout)

    def call(self, arrays: Sequence[np.ndarray[Any, Any]], timeout: float | None) -> list[np.ndarray[Any, Any] | None]:
        return self._run(arrays, timeout)

    def execute(self, arguments: Values, aliased: Sequence[Aliased], timeout: float | None, probe: Probe | None) -> Ran:
        """Donated inputs are deleted, and no result is in their place."""
        if probe is not None:
            raise EngineError(
                f"{self._name}: IREE does not expose intermediate values: use the engine reference for probes"
            )
        results = self._run([None if each is None else each.read() for each in arguments], timeout)
        done = []
        for each in aliased:
            if each.reason is None:
                cast(Buffer, arguments[each.input]).delete()
                each = replace(each, reason="IREE writes results to memory of their own")
            done.append(each)
        return [None if each is None else Buffer(each) for each in results], done

    def _run(self, arrays: Sequence[Any], timeout: float | None) -> list[Any]:
        given = [each for each in arrays if each is not None]
        compiled = self._compile(tuple(each.shape for each in given), timeout)
        tensors = [each for each in self._arguments if isinstance(each, ArgumentType)]
        converted = [
            np.ascontiguousarray(one).reshape(one.shape)
            for array, tensor in zip(given, tensors, strict=True)
            for one in convert_input(array, tensor)
        ]
        with self._explained():
            found = compiled.program.call(converted, limits_of(timeout))
        return convert_results(found, compiled.results)

    def _compile(self, shapes: Shapes, timeout: float | None) -> _Compiled:
        if self._any is not None:
            return self._any
        if (known := self._compiled.get(shapes)) is not None:
            return known
        if not self._compiled:
            try:
                self._any = self._compiled_for(None, timeout)
                return self._any
            except (EngineCrashError, EngineTimeoutError):
                raise
            except EngineError:
                if not self._is_dynamic:
                    raise
        # IREE has fewer of the ops of dynamic shapes: those of static ones, which follow from the inputs, may do.
        self._compiled[shapes] = self._compiled_for(shapes, timeout)
        return self._compiled[shapes]

    def _compiled_for(self, shapes: Shapes | None, timeout: float | None) -> _Compiled:
        prefix, version = self._provider.prefix, str(iree_version())
        source = memoryview(self._bytecode)
        artifact = call_isolated(_PREPARE, self._name, source, prefix, self._name, version, shapes, timeout=timeout)
        with self._explained():
            binary = compile_with_iree(self._name, artifact, limits_of(timeout))
        return _Compiled(IsolatedIreeProgram(self._name, binary, _exchanged(self._results)), self._results)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (EngineCrashError, EngineTimeoutError) as error:
            raise named(error, self._name, "IREE") from error


@dataclass(frozen=True, slots=True)
class _Compiled:
    program: IsolatedIreeProgram
    results: Sequence[ValueType]  # of the program's own main


def _exchanged(results: Sequence[ValueType]) -> list[tuple[str, tuple[int | None, ...]]]:
    types: list[tuple[str, tuple[int | None, ...]]] = []
    for each in results:
        if isinstance(each, ArgumentType):
            types += [(each.converted_dtype().name, each.shape)] * (2 if each.conversion == "parts" else 1)
    return types
