"""MLIR functions for reimplementations of upstream's programs: parse files, run passes and print modules.

Unlike :class:`Provider`, which raises errors of the toolkit, these functions pass on MLIR's diagnostics as they are
emitted, because the programs print them, or compare them with the expectations of a test.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, Final, TypeVar

from vhlo_tools.bindings.attributes import LocationKind, location_kind
from vhlo_tools.bindings.mlir import Context, Module
from vhlo_tools.bindings.provider import Provider
from vhlo_tools.records import dataclass

_T = TypeVar("_T")

#: Passes that load dialects which programs cannot register by themselves; they run on an empty module.
_BRINGING_DIALECTS: Final = (
    "stablehlo-legalize-to-linalg",
    "func.func(chlo-legalize-to-stablehlo)",
    "func.func(shape-legalize-to-stablehlo)",
)


#: Dialects known to upstream's programs; providers differ in which of them they have.
# fmt: off
_DIALECTS: Final = (
    "acc", "affine", "amdgpu", "amx", "arith", "arm_neon", "arm_sme", "arm_sve", "async", "bufferization", "builtin",
    "cf", "check", "chlo", "complex", "dlti", "emitc", "func", "gpu", "index", "interpreter", "irdl", "linalg", "llvm",
    "math", "memref", "mesh", "mhlo", "ml_program", "mpi", "nvgpu", "nvvm", "omp", "pdl", "pdl_interp", "ptr", "quant",
    "rocdl", "scf", "sdy", "shape", "shard", "smt", "sparse_tensor", "spirv", "stablehlo", "tensor", "tosa",
    "transform", "ub", "vector", "vhlo", "wasmssa", "x86vector", "xegpu",
)
# fmt: on


@dataclass(frozen=True, slots=True)
class FilePosition:
    file: str  # as recorded by MLIR
    line: int  # from 1; 0 if unknown
    column: int  # from 1; 0 if unknown


@dataclass(frozen=True, slots=True)
class Remark:
    severity: str  # ``error``, ``warning``, ``remark`` or ``note``
    message: str
    location: str  # as MLIR prints it
    place: FilePosition | None  # the first file position within the location
    callers: tuple[tuple[str, FilePosition | None], ...] = ()  # outwards, each location with its file position
    notes: tuple[Remark, ...] = ()


def _text(of: Any, name: str | None = None) -> str:
    """Return what MLIR says; nothing where it is no UTF-8, which nanobind refuses, and no handler may raise."""
    try:
        return str(of if name is None else getattr(of, name))
    except (RuntimeError, UnicodeDecodeError):
        return ""


class MlirSession:
    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    @cached_property
    def _error(self) -> tuple[type[Exception], ...]:
        return self.provider.ir.MLIRError, ValueError

    @cached_property
    def _manager(self) -> Any:
        # Registering dialects also registers the passes of MLIR and Shardy.
        self._bare_context()
        self.provider.stablehlo.register_stablehlo_passes()
        _ = self.provider.has_mhlo_passes
        return self.provider.module("passmanager").PassManager

    @cached_property
    def _scratch(self) -> Context:
        return self.provider.ir.Context()  # type: ignore[no-any-return]

    def _bare_context(self) -> Context:
        context: Any = self.provider.new_context()
        # Otherwise passes emit diagnostics, and so call Python, from threads of their own.
        context.enable_multithreading(False)
        with suppress(AttributeError):
            self.provider.stablehlo.register_interpreter_dialect(context)
        return context  # type: ignore[no-any-return]

    def new_context(self, *, allow_unregistered: bool) -> Context:
        """Return a context with all dialects of the provider, including those that only passes load."""
        context: Any = self._bare_context()
        empty = self.provider.ir.Module.parse("module {}", context)
        with suppress(*self._error):
            self._manager.parse(f"builtin.module({','.join(_BRINGING_DIALECTS)})", context).run(empty.operation)
        context.allow_unregistered_dialects = allow_unregistered
        # Otherwise diagnostics would go into exceptions, and not to the diagnostic handlers.
        context.emit_error_diagnostics = True
        return context  # type: ignore[no-any-return]

    @contextmanager
    def listening(self, context: Context, listener: Callable[[Remark], None]) -> Iterator[None]:
        def hear(said: Any) -> bool:
            listener(self._remark(said))
            return True

        handler = context.attach_diagnostic_handler(hear)
        try:
            yield
        finally:
            handler.detach()

    def _tried(self, call: Callable[[], _T]) -> _T | None:
        """Return ``None``, with diagnostics emitted, on failure."""
        try:
            return call()
        except self._error:
            return None

    def parse_file(self, context: Context, path: str) -> Module | None:
        return self._tried(lambda: self.provider.ir.Module.parseFile(path, context))

    def parse_op(self, context: Context, text: str, name: str) -> Any | None:
        return self._tried(lambda: self.provider.ir.Operation.parse(text, source_name=name, context=context))

    def parse_attribute(self, context: Context, text: str) -> Any | None:
        return self._tried(lambda: self.provider.ir.Attribute.parse(text, context))

    def serialize(self, module: Module, target: str, allow_other_dialects: bool) -> bytes | None:
        """Convert a module to VHLO and serialize it; ``None``, with diagnostics emitted, on failure."""
        serialize = self.provider.stablehlo.serialize_portable_artifact
        return self._tried(lambda: serialize(module, target, allow_other_dialects))

    def deserialize(self, context: Context, artifact: bytes) -> Module | None:
        return self._tried(lambda: self.provider.stablehlo.deserialize_portable_artifact(context, artifact))

    def pipeline_problem(self, pipeline: str) -> str | None:
        """Return the error in a pipeline, such as ``builtin.module(inline)``; ``None`` if it is valid."""
        try:
            self._manager.parse(pipeline, self._scratch)
        except self._error as error:
            return str(error)
        return None

    def described(self, pipeline: str) -> str | None:
        """Return a pipeline with all options, as MLIR prints it; ``None`` if it is invalid."""
        return self._tried(lambda: str(self._manager.parse(pipeline, self._scratch)))

    def run(
        self,
        operation: Any,
        pipeline: str,
        *,
        verify: bool,
        watch: Mapping[str, Any] | None = None,
        timing: bool = False,
        statistics: bool = False,
    ) -> bool:
        """Run passes in place, and return whether all succeeded; after a failure the op must not be used.

        ``watch`` holds arguments of ``enable_ir_printing``, to print the op between passes.
        """
        manager = self._manager.parse(pipeline, operation.context)
        manager.enable_verifier(verify)
        if watch is not None:
            manager.enable_ir_printing(**watch)
        if statistics:
            manager.enable_statistics()
        if timing:
            manager.enable_timing()
        try:
            manager.run(operation.operation)
        except self._error:
            return False
        return True

    def emit_error(self, context: Context, message: str, place: FilePosition | None = None) -> None:
        location = self.provider.ir.Location
        if place is None:
            location.unknown(context).emit_error(message)
        else:
            location.file(place.file, place.line, place.column, context).emit_error(message)

    def dialects(self) -> list[str]:
        context = self.new_context(allow_unregistered=False)
        known = []
        for name in _DIALECTS:
            said: list[Remark] = []
            with self.listening(context, said.append):
                self.parse_attribute(context, f"#{name}.there_is_no_such_attribute")
            if not any("unregistered dialect" in each.message for each in said):
                known.append(name)
        return known

    def bytecode(self, operation: Any, version: int | None = None) -> bytes | None:
        """Return bytecode, by default of the newest version; ``None``, with diagnostics emitted, if unsupported."""
        buffer = io.BytesIO()

        def write() -> bytes:
            operation.operation.write_bytecode(buffer, desired_version=version)
            return buffer.getvalue()

        return self._tried(write)

    # Diagnostics

    def _remark(self, said: Any) -> Remark:
        location = said.location
        return Remark(
            severity=str(said.severity).rpartition(".")[2].lower(),
            message=_text(said, "message") or "MLIR says why in bytes that are no UTF-8",
            location=_text(location) or "loc(unknown)",
            place=self._place(location),
            callers=tuple((_text(each), self._place(each)) for each in self._callers(location)),
            notes=tuple(map(self._remark, said.notes)),
        )

    def _place(self, location: Any) -> FilePosition | None:
        found = self._first_of(location, "file")
        if found is None or not (name := _text(found, "filename")):
            return None
        return FilePosition(name, int(found.start_line), int(found.start_col))

    def _callers(self, location: Any) -> Iterator[Any]:
        call = self._first_of(location, "call-site")
        while call is not None:
            yield call.caller
            call = self._first_of(call.caller, "call-site")

    def _first_of(self, location: Any, wanted: LocationKind) -> Any | None:
        """Return the first location of a kind within a location, itself included."""
        pending = [location]
        while pending:
            each = pending.pop()
            kind = location_kind(each)
            if kind == wanted:
                return each
            if kind == "call-site":
                pending += [each.caller, each.callee]
            elif kind == "name":
                pending.append(each.child_loc)
            elif kind == "fused":
                pending += reversed(list(each.locations))
        return None
