"""One provider of the bindings: a thin, typed face of what differs between providers and of what fails badly."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.bindings.diagnostics import captured, to_diagnostic
from vhlo_tools.bindings.ir import Attribute, Context, Module, ModuleOp, Operation
from vhlo_tools.errors import ProviderError
from vhlo_tools.findings import Diagnostic
from vhlo_tools.version import Version

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.compat import Library

__all__ = ["DIALECTS", "MLIRFailure", "Provider", "Registrar"]

#: The dialects that occur in StableHLO programs of real producers.
DIALECTS: Final = ("func", "stablehlo", "chlo", "vhlo", "quant", "sdy", "mhlo")


class MLIRFailure(Exception):  # noqa: N818 - it never leaves the toolkit: each caller turns it into its own error
    """A call into MLIR failed; what it said is in ``diagnostics``."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("; ".join(str(diagnostic) for diagnostic in diagnostics) or "MLIR gave no reason")
        self.diagnostics = tuple(diagnostics)

    def __reduce__(self) -> tuple[type[MLIRFailure], tuple[tuple[Diagnostic, ...]]]:
        return type(self), (self.diagnostics,)


@dataclass(frozen=True, slots=True)
class Registrar:
    """How a dialect gets into a context.

    Attributes:
        module: The module that holds the function, below the provider's prefix.
        function: Its name.
        of_registry: Whether it fills a registry, and not a context.
    """

    module: str
    function: str = "register_dialect"
    of_registry: bool = False


@dataclass(frozen=True)
class Provider:
    """The MLIR and StableHLO bindings under one import prefix.

    Attributes:
        prefix: The import prefix, by which it is chosen.
        distribution: The distribution that installs it.
        registrars: What puts the dialects into a context; one that the provider lacks is passed over.
    """

    prefix: str
    distribution: str
    registrars: tuple[Registrar, ...]

    def module(self, name: str) -> Any:
        """Return the module ``name`` below the prefix.

        Raises:
            ProviderError: If the provider is not installed or lacks it.
        """
        # XLA, which is in the same library as jaxlib's MLIR, tells of itself and of each failure on stderr, with a page
        # of its own stack, unless it was told not to when it was loaded.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        try:
            with _uninterrupted():
                return import_module(f"{self.prefix}.{name}")
        except ImportError as error:
            raise ProviderError(
                f"the MLIR bindings {self.prefix!r} (distribution {self.distribution}) lack {name}: {error}"
            ) from error

    @cached_property
    def ir(self) -> Any:
        """MLIR's ``ir`` module."""
        return self.module("ir")

    @cached_property
    def stablehlo(self) -> Any:
        """The StableHLO extension, without the op classes, which are slow to import."""
        return self.module("_mlir_libs._stablehlo")

    @cached_property
    def library(self) -> Library:
        """The StableHLO library within."""
        # Not at the top: child processes that only parse should not wait for it.
        from importlib.metadata import PackageNotFoundError, version

        from vhlo_tools.compat import Library

        names = self.stablehlo.StablehloCompatibilityRequirement
        answer = self.stablehlo.get_version_from_compatibility_requirement
        try:
            distribution = f"{self.distribution} {version(self.distribution)}"
        except PackageNotFoundError:
            distribution = self.prefix
        return Library(
            name=distribution,
            current=Version(self.stablehlo.get_current_version()),
            minimum=Version(self.stablehlo.get_minimum_version()),
            requirements={name: Version(answer(getattr(names, name))) for name in ("NONE", "WEEK_4", "WEEK_12", "MAX")},
        )

    @cached_property
    def has_mhlo_passes(self) -> bool:
        """Whether there are passes over MHLO, which are registered now."""
        try:
            self.module("_mlir_libs._mlirHlo").register_mhlo_passes()
        except (ProviderError, AttributeError):
            return False
        return True

    # Contexts

    def new_context(self) -> Context:
        """Return a context with every dialect of StableHLO programs that this provider has."""
        context: Context = self.ir.Context()
        self.register_dialects(context)
        return context

    def register_dialects(self, context: Context) -> None:
        """Register and load :data:`DIALECTS` in ``context``, as far as this provider has them."""
        for registrar in self.registrars:
            try:
                register = getattr(self.module(registrar.module), registrar.function)
            except (ProviderError, AttributeError):
                continue
            if registrar.of_registry:
                registry = self.ir.DialectRegistry()
                register(registry)
                context.append_dialect_registry(registry)
            else:
                register(context)
        context.load_all_available_dialects()
        # Types of `quant` and `vhlo` parse only after a deserialization has loaded these dialects.
        self.stablehlo.deserialize_portable_artifact(context, self._empty_artifact)

    @cached_property
    def _empty_artifact(self) -> bytes:
        artifact: bytes = self.stablehlo.serialize_portable_artifact_str(
            b"module {}", self.stablehlo.get_minimum_version()
        )
        return artifact

    @cached_property
    def lacking(self) -> tuple[str, ...]:
        """The dialects of StableHLO programs that this provider does not have."""
        context = self.new_context()
        return tuple(name for name in DIALECTS if not _has_dialect(self.ir, context, name))

    # Modules

    def is_module(self, value: object) -> bool:
        """Tell whether ``value`` is a module of this provider, as such or as a view of the op."""
        if not isinstance(value, self.ir.Module | self.ir.OpView | self.ir.Operation):
            return False
        operation: Any = value
        return bool(operation.operation.name == "builtin.module")

    def parse(self, context: Context, source: str | bytes) -> Module:
        """Parse MLIR text or bytecode, verifying it.

        Raises:
            MLIRFailure: If it does not parse.
        """
        module: Module = self._checked(context, lambda: self.ir.Module.parse(source, context))
        return module

    def deserialize(self, context: Context, artifact: bytes) -> Module:
        """Turn a portable artifact into a StableHLO module.

        Raises:
            MLIRFailure: If the library refuses it.
        """
        module: Module = self._checked(context, lambda: self.stablehlo.deserialize_portable_artifact(context, artifact))
        return module

    def serialize(self, module: Module, target: Version, *, allow_other_dialects: bool) -> bytes:
        """Serialize with the library's own function, which rewrites ``module`` to VHLO.

        Raises:
            MLIRFailure: If the library refuses.
        """
        artifact: bytes = self._checked(
            module.context,
            lambda: self.stablehlo.serialize_portable_artifact(module, str(target), allow_other_dialects),
        )
        return artifact

    def clone(self, module: ModuleOp) -> ModuleOp:
        """Return a copy of ``module``, detached even where the caller has an insertion point."""
        copy: ModuleOp = module.operation.clone(ip=False)
        return copy

    def run_passes(self, operation: ModuleOp, pipeline: str, *, verify: bool) -> None:
        """Run the passes ``pipeline`` on the module ``operation``, in place.

        Args:
            operation: A module; after a failure it must not be used any more.
            pipeline: The passes, as in ``builtin.module(...)``.
            verify: Whether to verify it after each pass.

        Raises:
            MLIRFailure: If a pass fails.
        """
        # Cheap after the first time, and passes of other providers are registered elsewhere.
        self.stablehlo.register_stablehlo_passes()
        manager = self.module("passmanager").PassManager.parse(f"builtin.module({pipeline})", operation.context)
        manager.enable_verifier(verify)
        self._checked(operation.context, lambda: manager.run(operation.operation))

    def as_module(self, operation: ModuleOp) -> Module:
        """Return ``operation`` as a module such as the parser gives; an op that is none is emptied into a new one."""
        if isinstance(operation, self.ir.Module):
            module: Module = operation
            return module
        op = operation.operation
        module = self.ir.Module.create(op.location)
        for attribute in op.attributes:
            name = attribute if isinstance(attribute, str) else attribute.name
            module.operation.attributes[name] = op.attributes[name]
        for inner in list(op.regions[0].blocks[0].operations):
            module.body.append(inner)
        return module

    def verify(self, operation: ModuleOp) -> None:
        """Verify ``operation`` and all within.

        Raises:
            MLIRFailure: If it is not valid.
        """
        self._checked(operation.context, operation.operation.verify)

    def bytecode(self, operation: ModuleOp, target: Version) -> list[bytes]:
        """Return ``operation`` as MLIR bytecode of the version that belongs to ``target``, in pieces."""
        # Not at the top, as above.
        from vhlo_tools.dialect import bytecode_version_of

        pieces = _Pieces()
        operation.operation.write_bytecode(pieces, desired_version=bytecode_version_of(target))
        return pieces

    def text(
        self,
        operation: ModuleOp,
        *,
        debug_info: bool = False,
        generic: bool = False,
        largest_constant: int | None = None,
    ) -> str:
        """Return ``operation`` as MLIR text.

        Args:
            operation: The module.
            debug_info: Whether to print locations.
            generic: Whether to print every op in the generic form.
            largest_constant: The number of elements above which a constant is left out, which makes the text a summary.
        """
        text: str = operation.operation.get_asm(
            enable_debug_info=debug_info, print_generic_op_form=generic, large_elements_limit=largest_constant
        )
        return text

    def walk(self, operation: ModuleOp | Operation) -> list[Operation]:
        """Return ``operation`` and every op nested in it, outermost first.

        The ops do not keep the module alive: whoever uses them must hold on to it.
        """
        ops: list[Operation] = []
        advance = self.ir.WalkResult.ADVANCE

        def visit(op: Operation) -> Any:
            ops.append(op)
            return advance

        operation.operation.walk(visit, self.ir.WalkOrder.PRE_ORDER)
        return ops

    def rename_function(self, module: Module, old: str, new: str) -> None:
        """Rename the function ``old`` of ``module``, and every call of it."""
        with module.context:
            for op in self.walk(module):
                name = str(op.name)
                if name == "func.func" and op.attributes["sym_name"].value == old:
                    op.attributes["sym_name"] = self.ir.StringAttr.get(new)
                elif name == "func.call" and op.attributes["callee"].value == old:
                    op.attributes["callee"] = self.ir.FlatSymbolRefAttr.get(new)

    def dense_elements(self, context: Context, array: np.ndarray[Any, Any]) -> Attribute:
        """Return ``array``, of booleans, integers of 8 to 64 bits or IEEE floats, as an attribute."""
        element = {"b": "i1", "i": "i{}", "u": "ui{}", "f": "f{}"}[array.dtype.kind].format(array.dtype.itemsize * 8)
        attribute: Attribute = self.ir.DenseElementsAttr.get(
            array, type=self.ir.Type.parse(element, context), shape=list(array.shape), context=context
        )
        return attribute

    def is_in_resource(self, constant: Operation) -> bool:
        """Tell whether the elements of a constant stand in a resource of the module, and not in its attribute."""
        try:
            value = constant.attributes["value"]
        except TypeError:
            return False  # complex elements, for which the bindings have no class
        try:
            self.ir.DenseElementsAttr(value)
        except ValueError:
            return True
        return False

    def evaluate(self, module: Module, arguments: Sequence[Attribute]) -> list[Attribute]:
        """Evaluate ``main`` of ``module`` with the reference interpreter, in this process.

        Raises:
            MLIRFailure: If the interpreter refuses, and does not end the process.
        """
        results: list[Attribute] = self._checked(
            module.context, lambda: self.stablehlo.eval_module(module, list(arguments))
        )
        return results

    def _checked(self, context: Context, call: Callable[[], Any]) -> Any:
        """Call into MLIR; what it says comes with the failure and never reaches stderr."""
        with captured(context) as diagnostics:
            try:
                return call()
            except self.ir.MLIRError as error:
                raise MLIRFailure([*diagnostics, *map(to_diagnostic, error.error_diagnostics)]) from error
            except (ValueError, SystemError) as error:
                raise MLIRFailure(diagnostics) from error


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back while an extension is loaded: interrupted there, it ends the process or stays half loaded."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Pieces(list[bytes]):
    """A file that keeps what is written to it, in pieces."""

    def write(self, data: bytes) -> int:
        self.append(bytes(data))
        return len(data)


def _has_dialect(ir: Any, context: Context, name: str) -> bool:
    # `Context.dialects` finds only dialects with Python classes, so ask the parser: of an attribute that no dialect
    # has, it says either that the dialect does not know it, or that nobody knows the dialect.
    try:
        ir.Attribute.parse(f"#{name}.there_is_no_such_attribute", context)
    except ir.MLIRError as error:
        said = " ".join(str(diagnostic.message) for diagnostic in error.error_diagnostics)
        return "unregistered dialect" not in said
    return True
