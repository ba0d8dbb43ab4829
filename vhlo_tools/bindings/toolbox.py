"""What upstream's programs do with MLIR: parse files, run passes and print modules, and hand on all that is said.

Unlike :class:`Provider`, which raises an error of ours, this hands over what MLIR says as it is said, because these
programs print it, or hold it against what a test expects.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from vhlo_tools.bindings.ir import Context, Module
from vhlo_tools.bindings.provider import Provider

__all__ = ["Place", "Remark", "Toolbox"]

#: Passes that bring dialects along which programs cannot register by themselves, run on nothing.
_BRINGING_DIALECTS: Final = (
    "stablehlo-legalize-to-linalg",
    "func.func(chlo-legalize-to-stablehlo)",
    "func.func(shape-legalize-to-stablehlo)",
)


#: Dialects that programs of upstream know; which of them there are differs between providers.
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
class Place:
    """A place in a file.

    Attributes:
        file: Its name, as MLIR has it.
        line: The line, from one; zero if it is not known.
        column: The column, from one; zero if it is not known.
    """

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that MLIR said.

    Attributes:
        severity: ``error``, ``warning``, ``remark`` or ``note``.
        message: What it said.
        location: Where, as MLIR prints it.
        place: The first place in a file within that location, if there is one.
        callers: The locations that it was called from, each with its place.
        notes: What it said beside.
    """

    severity: str
    message: str
    location: str
    place: Place | None
    callers: tuple[tuple[str, Place | None], ...] = ()
    notes: tuple[Remark, ...] = ()


class Toolbox:
    """Contexts, passes and printing for command-line programs.

    Args:
        provider: The bindings.
    """

    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    @cached_property
    def _error(self) -> tuple[type[Exception], ...]:
        return self.provider.ir.MLIRError, ValueError

    @cached_property
    def _manager(self) -> Any:
        """The class of pass managers, with all passes registered that the provider has."""
        # A registry of dialects registers the passes of MLIR and Shardy.
        self._bare_context()
        self.provider.stablehlo.register_stablehlo_passes()
        _ = self.provider.has_mhlo_passes
        return self.provider.module("passmanager").PassManager

    @cached_property
    def _scratch(self) -> Context:
        """A context in which nothing is made."""
        return self.provider.ir.Context()  # type: ignore[no-any-return]

    def _bare_context(self) -> Context:
        context: Any = self.provider.new_context()
        # Passes report from threads of their own otherwise, into Python.
        context.enable_multithreading(False)
        with suppress(AttributeError):
            self.provider.stablehlo.register_interpreter_dialect(context)
        return context  # type: ignore[no-any-return]

    def new_context(self, *, allow_unregistered: bool) -> Context:
        """Return a context with all dialects that the provider has, those too that only passes bring.

        Args:
            allow_unregistered: Whether ops of other dialects may be parsed.
        """
        context: Any = self._bare_context()
        empty = self.provider.ir.Module.parse("module {}", context)
        with suppress(*self._error):
            self._manager.parse(f"builtin.module({','.join(_BRINGING_DIALECTS)})", context).run(empty.operation)
        context.allow_unregistered_dialects = allow_unregistered
        # Or exceptions would keep what is said from those who listen.
        context.emit_error_diagnostics = True
        return context  # type: ignore[no-any-return]

    @contextmanager
    def listening(self, context: Context, listener: Callable[[Remark], None]) -> Iterator[None]:
        """Hand what ``context`` says meanwhile to ``listener``."""

        def hear(said: Any) -> bool:
            listener(self._remark(said))
            return True

        handler = context.attach_diagnostic_handler(hear)
        try:
            yield
        finally:
            handler.detach()

    def parse_file(self, context: Context, path: str) -> Module | None:
        """Return the module in a file of text or bytecode; ``None`` if it is none, of which all was said."""
        try:
            module: Module = self.provider.ir.Module.parseFile(path, context)
        except self._error:
            return None
        return module

    def parse_op(self, context: Context, text: str, name: str) -> Any | None:
        """Return the only op in a text; ``None`` if it is none, of which all was said."""
        try:
            return self.provider.ir.Operation.parse(text, source_name=name, context=context)
        except self._error:
            return None

    def parse_attribute(self, context: Context, text: str) -> Any | None:
        """Return the attribute in a text; ``None`` if it is none, which was said."""
        try:
            return self.provider.ir.Attribute.parse(text, context)
        except self._error:
            return None

    def serialize(self, module: Module, target: str, allow_other_dialects: bool) -> bytes | None:
        """Return a module, which becomes VHLO, as a portable artifact; ``None`` if it cannot be one, which was said."""
        try:
            artifact: bytes = self.provider.stablehlo.serialize_portable_artifact(module, target, allow_other_dialects)
        except self._error:
            return None
        return artifact

    def deserialize(self, context: Context, artifact: bytes) -> Module | None:
        """Return the module in a portable artifact; ``None`` if there is none, which was said."""
        try:
            module: Module = self.provider.stablehlo.deserialize_portable_artifact(context, artifact)
        except self._error:
            return None
        return module

    def pipeline_problem(self, pipeline: str) -> str | None:
        """Return what is wrong with passes, such as ``builtin.module(inline)``; ``None`` if nothing is."""
        try:
            self._manager.parse(pipeline, self._scratch)
        except self._error as error:
            return str(error)
        return None

    def described(self, pipeline: str) -> str | None:
        """Return passes with all of their options, as MLIR prints them; ``None`` if there are none such."""
        try:
            return str(self._manager.parse(pipeline, self._scratch))
        except self._error:
            return None

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
        """Run passes on an op, in place.

        Args:
            operation: The op; after a failure it must not be used any more.
            pipeline: The passes.
            verify: Whether to verify it after each of them.
            watch: When to print it on the way, arguments of ``enable_ir_printing``.
            timing: Whether to print how long each took.
            statistics: Whether to print what each counted.

        Returns:
            Whether all succeeded.
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

    def emit_error(self, context: Context, message: str, place: Place | None = None) -> None:
        """Say that something is wrong, at a place or at none in particular."""
        location = self.provider.ir.Location
        if place is None:
            location.unknown(context).emit_error(message)
        else:
            location.file(place.file, place.line, place.column, context).emit_error(message)

    def dialects(self) -> list[str]:
        """Return the dialects that contexts have, of those that there are."""
        context = self.new_context(allow_unregistered=False)
        return [name for name in _DIALECTS if self._knows(context, name)]

    def _knows(self, context: Context, dialect: str) -> bool:
        said: list[str] = []
        with self.listening(context, lambda remark: said.append(remark.message)), suppress(*self._error):
            self.provider.ir.Attribute.parse(f"#{dialect}.there_is_no_such_attribute", context)
        return not any("unregistered dialect" in each for each in said)

    def bytecode(self, operation: Any, version: int | None = None) -> bytes | None:
        """Return an op as MLIR bytecode; ``None`` if that has no such version, which was said.

        Args:
            operation: The op.
            version: The version of the bytecode, by default the newest.
        """
        buffer = io.BytesIO()
        try:
            operation.operation.write_bytecode(buffer, desired_version=version)
        except self._error:
            return None
        return buffer.getvalue()

    # What is said

    def _remark(self, said: Any) -> Remark:
        location = said.location
        return Remark(
            severity=str(said.severity).rpartition(".")[2].lower(),
            message=str(said.message),
            location=str(location),
            place=self._place(location),
            callers=tuple((str(each), self._place(each)) for each in self._callers(location)),
            notes=tuple(map(self._remark, said.notes)),
        )

    def _place(self, location: Any) -> Place | None:
        found = self._first_of(location, self.provider.ir.FileLineColLoc)
        return None if found is None else Place(str(found.filename), int(found.start_line), int(found.start_col))

    def _callers(self, location: Any) -> Iterator[Any]:
        call = self._first_of(location, self.provider.ir.CallSiteLoc)
        while call is not None:
            yield call.caller
            call = self._first_of(call.caller, self.provider.ir.CallSiteLoc)

    def _first_of(self, location: Any, kind: Any) -> Any | None:
        """Return the first location of a kind, of those that a location is made of."""
        ir = self.provider.ir
        pending = [location]
        while pending:
            each = pending.pop()
            if isinstance(each, kind):
                return each
            if isinstance(each, ir.CallSiteLoc):
                pending += [each.caller, each.callee]
            elif isinstance(each, ir.NameLoc):
                pending.append(each.child_loc)
            elif isinstance(each, ir.FusedLoc):
                pending += reversed(list(each.locations))
        return None
