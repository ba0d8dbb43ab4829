"""Engines that take artifacts: ``iree``, which is IREE for the CPU, and ``pjrt:NAME``, a plugin with a device here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from vhlo_tools.bindings import (
    ForeignProgram,
    Module,
    Provider,
    compile_with_iree,
    functions_of,
    iree_version,
    load_with_iree,
    load_with_plugin,
    require_iree,
)
from vhlo_tools.compat import PLUGIN_ENGINE, plugin_library, plugin_version
from vhlo_tools.conversion import make_plain, patterns_of
from vhlo_tools.errors import EngineCrashError, EngineError, EngineTimeoutError, UnknownTargetError
from vhlo_tools.execution.donation import Aliased, Buffer
from vhlo_tools.execution.handlers import Handler, refusal
from vhlo_tools.execution.isolated import bytecode_of, call_isolated, limits_of, module_here, naming
from vhlo_tools.execution.lowering.patterns import PLACEMENTS, apply_required, placed_unless
from vhlo_tools.execution.lowering.shapes import has_bounds, is_dynamic, refine, release_bounds, wrap_main
from vhlo_tools.execution.lowering.types import is_quantized, store_quantized
from vhlo_tools.execution.op_traits import ops_where
from vhlo_tools.execution.probes import Probe, no_probes
from vhlo_tools.execution.protocols import Ran, Values
from vhlo_tools.execution.reference.calling_convention import convert_input, convert_results
from vhlo_tools.execution.values import ArgumentType, explained, main_of, signature_of
from vhlo_tools.execution.xla.preparation import CallGraph
from vhlo_tools.program import Program
from vhlo_tools.version import Version

# Preparation of programs: plain StableHLO, whose ``main`` exchanges numbers that numpy and every runtime have
#
# Only constructs without a counterpart are rewritten: other dialects, bounds, quantized tensors, placements, and values
# of types that runtimes do not exchange. Nothing that an engine refuses or gets wrong is mended, so that a comparison
# finds it.

#: Ops that name devices, or exchange values between them: these engines run one device, and IREE refuses the ops only
#: while it runs.
_OF_DEVICES: Final = ops_where(lambda traits: traits.reference == "devices") | {"sdy.manual_computation"}

_PLACEMENTS: Final = patterns_of({**PLACEMENTS, "stablehlo.custom_call": placed_unless(frozenset())}, required=True)


def artifact_here(
    bytecode: memoryview,
    provider: str,
    name: str,
    version: str,
    shapes: Sequence[tuple[int, ...]] | None,
    engine: str,
    label: str,
    calls: bool,
) -> bytes:
    """Called in a child process; ``shapes`` of the array arguments resolve dynamic shapes, ``None`` keeps these.

    ``label`` is what runs the program, in messages, and ``calls`` whether that has custom calls.
    """
    bindings, module = module_here(bytecode, provider, name)
    arguments, results = signature_of(main_of(module, name))
    with explained(bindings, name, f"cannot be rewritten for {label}"):
        module = bindings.as_module(make_plain(bindings, module, name))
        apply_required(bindings, module, _PLACEMENTS, name)
        _check_ops(bindings, module, name, (engine, label), calls=calls)
        text = bindings.text(module, largest_constant=0)
        if has_bounds(text):
            release_bounds(bindings, module, name)
        if is_quantized(text):
            store_quantized(bindings, module, name)
        wrap_main(bindings, module, arguments, results)
        if shapes is not None:
            tensors = [each for each in arguments if isinstance(each, ArgumentType)]
            types = []
            for tensor, shape in zip(tensors, shapes, strict=True):
                text = tensor.with_shape(shape).converted_text()
                types += [text] * (2 if tensor.conversion == "parts" else 1)
            refine(bindings, module, types)
        # A run on one device depends on no discardable attribute of a function, and compilers read some.
        for function in functions_of(module).values():
            for attribute in ("arg_attrs", "res_attrs"):
                if attribute in function.attributes:
                    del function.attributes[attribute]
        bindings.verify(module)
    target = min(Version(version), bindings.library.current)
    with explained(bindings, name, f"has no form in StableHLO {target}, the newest that {label} reads"):
        return bindings.serialize(module, target, allow_other_dialects=True)


def _check_ops(
    provider: Provider, module: Module, name_of_program: str, names: tuple[str, str], *, calls: bool
) -> None:
    engine, label = names
    ops = provider.walk(module)
    recursive = CallGraph(ops).recursive
    for op in ops:
        name, reason = str(op.name), None
        if name == "func.call" and str(op.attributes["callee"].value) in recursive:
            reason = f"it calls a recursive function, and {label} inlines calls without end"
        elif name == "stablehlo.custom_call" and not calls:
            target = str(op.attributes["call_target_name"].value)
            reason = f"it has no custom calls, here of {target}: use the engine reference or xla"
        elif name in _OF_DEVICES:
            reason = "it runs programs on one device: use the engine reference or xla"
        if reason is not None:
            raise refusal(op, name_of_program, reason, f"the engine {engine}")


# Programs compiled from artifacts, and run on one device

_PREPARE: Final = "vhlo_tools.execution.artifact_engines:artifact_here"

Shapes = tuple[tuple[int, ...], ...]


class _ArtifactEngine:
    """Overwrites no inputs: results are always in memory of their own. It can call no handlers."""

    #: What runs the program, in messages.
    label: str = "IREE"
    #: The name of the engine, and whether it has custom calls.
    engine: str = "iree"
    has_calls = False

    def __init__(self, program: Program, handlers: Mapping[str, Handler]) -> None:
        if handlers:
            raise EngineError(
                f"{program.name}: {self.label} cannot call handlers, here of {', '.join(sorted(handlers))}: use the "
                f"engine reference or xla"
            )
        self._name, self._provider = program.name, program.provider
        module = program.provider.as_module(program.load())
        self._arguments, self._results = signature_of(main_of(module, program.name))
        self._is_dynamic = is_dynamic(program.provider.text(module, largest_constant=0))
        self._bytecode = bytecode_of(program.provider, module)
        self._compiled: dict[Shapes, ForeignProgram] = {}

    def prepare(self, shapes: Sequence[tuple[int, ...]], timeout: float | None = None) -> None:
        self._compile(tuple(shapes), timeout)

    def call(self, arrays: Sequence[np.ndarray[Any, Any]], timeout: float | None) -> list[np.ndarray[Any, Any] | None]:
        return self._run(arrays, timeout)

    def execute(self, arguments: Values, aliased: Sequence[Aliased], timeout: float | None, probe: Probe | None) -> Ran:
        """Donated inputs are deleted, and no result is in their place."""
        if probe is not None:
            raise no_probes(self._name, self.label)
        results = self._run([None if each is None else each.read() for each in arguments], timeout)
        done = []
        for each in aliased:
            if each.reason is None:
                cast(Buffer, arguments[each.input]).delete()
                each = replace(each, reason=f"{self.label} writes results to memory of their own")
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
        with naming(self._name, self.label):
            found = compiled.call(converted, limits_of(timeout))
        return convert_results(found, self._results)

    def _compile(self, shapes: Shapes, timeout: float | None) -> ForeignProgram:
        if shapes not in self._compiled:
            self._compiled[shapes] = self._compiled_for(shapes, timeout)
        return self._compiled[shapes]

    def _compiled_for(self, shapes: Shapes | None, timeout: float | None) -> ForeignProgram:
        source = memoryview(self._bytecode)
        asked = self._provider.prefix, self._name, str(self._version(timeout)), shapes
        artifact = call_isolated(
            _PREPARE, self._name, source, *asked, self.engine, self.label, self.has_calls, timeout=timeout
        )
        types: list[tuple[str, tuple[int | None, ...]]] = []
        for each in self._results:
            if isinstance(each, ArgumentType):
                types += [(each.converted_dtype().name, each.shape)] * (2 if each.conversion == "parts" else 1)
        with naming(self._name, self.label):
            return self._loaded(artifact, types, timeout)

    def _version(self, timeout: float | None) -> Version:
        """The newest StableHLO that it reads."""
        raise NotImplementedError

    def _loaded(self, artifact: bytes, results: list[Any], timeout: float | None) -> ForeignProgram:
        raise NotImplementedError


class IreeEngine(_ArtifactEngine):
    def __init__(self, program: Program, handlers: Mapping[str, Handler]) -> None:
        require_iree()
        super().__init__(program, handlers)
        #: The program compiled for inputs of any shapes, and for those that it could not be compiled for otherwise.
        self._any: ForeignProgram | None = None

    def _compile(self, shapes: Shapes, timeout: float | None) -> ForeignProgram:
        if self._any is not None:
            return self._any
        if not self._compiled:
            try:
                self._any = self._compiled_for(None, timeout)
                return self._any
            except EngineError as error:
                if not self._is_dynamic or isinstance(error, EngineCrashError | EngineTimeoutError):
                    raise
        # IREE has fewer of the ops of dynamic shapes: those of static ones, which follow from the inputs, may do.
        return super()._compile(shapes, timeout)

    def _version(self, timeout: float | None) -> Version:
        return iree_version()

    def _loaded(self, artifact: bytes, results: list[Any], timeout: float | None) -> ForeignProgram:
        return load_with_iree(self._name, compile_with_iree(self._name, artifact, limits_of(timeout)), results)


class PluginEngine(_ArtifactEngine):
    """A plugin of PJRT, by its name or path, on its first device here."""

    has_calls = True

    def __init__(self, program: Program, handlers: Mapping[str, Handler], engine: str) -> None:
        self.engine: str = engine
        self.label: str = f"the plugin {Path(engine.removeprefix(PLUGIN_ENGINE)).stem}"
        try:
            self._library = plugin_library(engine.removeprefix(PLUGIN_ENGINE))
        except UnknownTargetError as error:
            raise EngineError(f"the engine {engine}: {error}") from error
        super().__init__(program, handlers)

    def _version(self, timeout: float | None) -> Version:
        try:
            return plugin_version(str(self._library), timeout)
        except UnknownTargetError as error:
            raise EngineError(f"the engine {self.engine}: {error}") from error

    def _loaded(self, artifact: bytes, results: list[Any], timeout: float | None) -> ForeignProgram:
        loaded = load_with_plugin(self._library, self._name, artifact, results)
        loaded.prepare(limits_of(timeout))
        return loaded
