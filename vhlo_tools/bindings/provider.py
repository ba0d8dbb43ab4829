"""Provider of the bindings: a thin, typed interface that hides differences between providers and unsafe failures."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from importlib import import_module, reload
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.bindings.attributes import named_attributes
from vhlo_tools.bindings.diagnostics import captured, silenced, source_of, to_diagnostic
from vhlo_tools.bindings.isolation import AVAILABLE, Limits, call, in_child
from vhlo_tools.bindings.mlir import Attribute, Context, Module, ModuleOp, Operation
from vhlo_tools.errors import EngineError, ProviderError
from vhlo_tools.findings import Diagnostic
from vhlo_tools.records import dataclass
from vhlo_tools.system import interrupts_held
from vhlo_tools.version import Version

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.compat import Library

#: The dialects that occur in StableHLO programs of existing producers.
DIALECTS: Final = ("func", "stablehlo", "chlo", "vhlo", "quant", "sdy", "mhlo")

# What a child may take that says why MLIR refused something, and the function that it calls.
_SECONDS: Final = 10.0
_BYTES_PER_SECOND: Final = 1 << 20
_MEMORY: Final = 1 << 30
_COPIES: Final = 8
#: A byte of a name that MLIR prints by its number, or a backslash.
_ESCAPED: Final = re.compile(rb"\\(?:\\|([0-9A-Fa-f]{2}))")
_READ_AGAIN: Final = "vhlo_tools.bindings.parse_check:read_again"


class MLIRFailure(Exception):  # noqa: N818 - it never leaves the toolkit: each caller turns it into its own error
    """A call into MLIR failed.

    A function that returns the diagnostics is called when they are first asked for.
    """

    def __init__(self, found: Sequence[Diagnostic] | Callable[[], Sequence[Diagnostic]]) -> None:
        super().__init__("")  # what was said is in `diagnostics`
        if callable(found):
            self._find = found
        else:
            self.diagnostics = tuple(found)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """MLIR's diagnostics."""
        return tuple(self._find())

    def __str__(self) -> str:
        return "; ".join(map(str, self.diagnostics)) or "MLIR reported no reason"

    def __reduce__(self) -> tuple[type[MLIRFailure], tuple[tuple[Diagnostic, ...]]]:
        return type(self), (self.diagnostics,)


@dataclass(frozen=True, slots=True)
class Registrar:
    """A function that registers a dialect in a context."""

    module: str  # below the provider's prefix
    function: str = "register_dialect"
    of_registry: bool = False  # the argument is a registry, not a context
    op_classes: str | None = None  # the module of op classes, if the extension imports it while it is incomplete itself


@dataclass(frozen=True)
class Provider:
    """The MLIR and StableHLO bindings under one import prefix."""

    prefix: str  # identifies the provider
    distribution: str
    registrars: tuple[Registrar, ...]  # those that the provider lacks are skipped

    def module(self, name: str) -> Any:
        """Return the module ``name`` below the prefix; a missing one is a ``ProviderError``."""
        # XLA, which is in the same library as jaxlib's MLIR, writes log messages and a stack trace for each failure to
        # stderr, unless this is set when the library is loaded.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        try:
            # An interrupted load crashes the process or remains incomplete.
            with interrupts_held():
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
    def release(self) -> str | None:
        """The version of the distribution; ``None`` if it was not installed as one."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None

    @cached_property
    def build(self) -> tuple[tuple[str, int, int], ...]:
        """The name, size and time of each library file, which distinguish builds of equal versions."""
        extension = Path(self.stablehlo.__file__)
        depth = len(self.prefix.split(".")) + 1
        found = [
            (file.name, file.stat().st_size, file.stat().st_mtime_ns)
            for folder in extension.parents[:depth]
            for pattern in ("*.so*", "*.dylib", "*.pyd", "*.dll")
            for file in folder.glob(pattern)
        ]
        return tuple(sorted(found))

    @cached_property
    def library(self) -> Library:
        """The StableHLO library in the bindings."""
        # Imported here so that child processes that only parse do not import it.
        from vhlo_tools.compat import Library

        names = self.stablehlo.StablehloCompatibilityRequirement
        answer = self.stablehlo.get_version_from_compatibility_requirement
        return Library(
            name=self.prefix if self.release is None else f"{self.distribution} {self.release}",
            current=Version(self.stablehlo.get_current_version()),
            minimum=Version(self.stablehlo.get_minimum_version()),
            requirements={name: Version(answer(getattr(names, name))) for name in ("NONE", "WEEK_4", "WEEK_12", "MAX")},
        )

    @cached_property
    def has_mhlo_passes(self) -> bool:
        """Whether the provider has passes over MHLO; registers them."""
        try:
            self.module("_mlir_libs._mlirHlo").register_mhlo_passes()
        except (ProviderError, AttributeError):
            return False
        return True

    # Contexts

    def new_context(self) -> Context:
        """Return a context with every dialect of :data:`DIALECTS` that this provider has."""
        context: Context = self.ir.Context()
        self.register_dialects(context)
        return context

    def register_dialects(self, context: Context) -> None:
        """Register and load those of :data:`DIALECTS` in ``context`` that this provider has."""
        for registrar in self.registrars:
            try:
                register = getattr(self._extension(registrar), registrar.function)
            except (ProviderError, AttributeError):
                continue
            if registrar.of_registry:
                registry = self.ir.DialectRegistry()
                register(registry)
                context.append_dialect_registry(registry)
            else:
                register(context)
        context.load_all_available_dialects()
        # Types of `quant` and `vhlo` can be parsed only after a deserialization has loaded these dialects.
        self.stablehlo.deserialize_portable_artifact(context, self._empty_artifact)

    def _extension(self, registrar: Registrar) -> Any:
        # From jaxlib 0.12 on, the extension `_sdy` imports `dialects.sdy`, which copies the extension's names before
        # all of them exist. JAX, which takes them from there, would then fail with an AttributeError: copy them again.
        classes = f"{self.prefix}.{registrar.op_classes}"
        imported = classes in sys.modules
        extension = self.module(registrar.module)
        if not imported and classes in sys.modules:
            reload(sys.modules[classes])
        return extension

    @cached_property
    def _empty_artifact(self) -> bytes:
        artifact: bytes = self.stablehlo.serialize_portable_artifact_str(
            b"module {}", self.stablehlo.get_minimum_version()
        )
        return artifact

    @cached_property
    def lacking(self) -> tuple[str, ...]:
        """The dialects of :data:`DIALECTS` that this provider lacks."""
        context = self.new_context()
        return tuple(name for name in DIALECTS if not _has_dialect(self.ir, context, name))

    # Modules

    def is_module(self, value: object) -> bool:
        """Return whether ``value`` is a module of this provider, as a module or as an op."""
        if not isinstance(value, self.ir.Module | self.ir.OpView | self.ir.Operation):
            return False
        operation: Any = value
        return bool(operation.operation.name == "builtin.module")

    def parse(self, context: Context, source: str | bytes) -> Module:
        """Parse MLIR text or bytecode, and verify the module."""
        unregistered = context.allow_unregistered_dialects
        reason = partial(self._reason, unregistered, lambda: source if isinstance(source, bytes) else source.encode())
        module: Module = self._checked(context, lambda: self.ir.Module.parse(source, context), reason)
        self.check_returns(module)
        return module

    def deserialize(self, context: Context, artifact: bytes) -> Module:
        """Return the StableHLO module in a portable artifact."""
        reason = partial(self._reason, context.allow_unregistered_dialects, lambda: artifact, portable=True)
        read = self.stablehlo.deserialize_portable_artifact
        module: Module = self._checked(context, lambda: read(context, artifact), reason)
        return module

    def serialize(self, module: Module, target: Version, *, allow_other_dialects: bool) -> bytes:
        """Serialize with the library's own function, which converts ``module`` to VHLO."""
        write = self.stablehlo.serialize_portable_artifact
        artifact: bytes = self._checked(module.context, lambda: write(module, str(target), allow_other_dialects), tuple)
        return artifact

    def clone(self, module: ModuleOp) -> ModuleOp:
        """Return a copy of ``module`` that is not inserted at the caller's insertion point."""
        copy: ModuleOp = module.operation.clone(ip=False)
        return copy

    def run_passes(
        self,
        operation: ModuleOp,
        pipeline: str,
        *,
        verify: bool,
        before: tuple[Callable[[], ModuleOp], str] | None = None,
    ) -> None:
        """Run ``pipeline``, as in ``builtin.module(...)``, in place; after a failure the module must not be used.

        ``before`` loads the module once more as it was, which is valid if a failure's diagnostics are asked for, and
        names the passes up to these: outside of a child process, a failure has diagnostics only with it.
        """
        # Cheap when repeated; passes of other providers are in another registry.
        self.stablehlo.register_stablehlo_passes()
        # A failure holds no context, and so no module.
        context, unregistered = operation.context, operation.context.allow_unregistered_dialects
        manager = self.module("passmanager").PassManager.parse(f"builtin.module({pipeline})", context)
        manager.enable_verifier(verify)

        def reason() -> Sequence[Diagnostic]:
            if before is None:
                return ()
            load, passes = before
            return self._reason(unregistered, lambda: b"".join(self.bytecode(load(), self.library.current)), passes)

        self._checked(context, lambda: manager.run(operation.operation), reason)

    def as_module(self, operation: ModuleOp) -> Module:
        """Return ``operation`` as an ``ir.Module``, with the contents of an op moved into it where possible."""
        if isinstance(operation, self.ir.Module):
            module: Module = operation
            return module
        op = operation.operation
        attributes = dict(named_attributes(op.attributes))
        if len(attributes) != len(op.attributes):
            # A location, for example. The bindings cannot set it either.
            pieces = _Pieces()
            op.write_bytecode(pieces)
            return self.parse(op.context, b"".join(pieces))
        module = self.ir.Module.create(op.location)
        for name, attribute in attributes.items():
            module.operation.attributes[name] = attribute
        for inner in list(op.regions[0].blocks[0].operations):
            module.body.append(inner)
        return module

    def verify(self, operation: ModuleOp) -> None:
        """Verify ``operation`` and all ops in it."""
        op = operation.operation
        try:
            self._checked(op.context, op.verify, tuple)
        except MLIRFailure as failure:
            raise MLIRFailure(failure.diagnostics or self._why_invalid(op)) from failure
        self.check_returns(operation)

    def _why_invalid(self, op: Any) -> Sequence[Diagnostic]:
        """Read what MLIR says here, if every name is UTF-8: some invalid ops end a process that writes them."""
        shown = op.get_asm(binary=True, print_generic_op_form=True, large_elements_limit=16)
        try:
            _ESCAPED.sub(lambda match: bytes.fromhex((match[1] or b"5c").decode()), shown).decode()
        except UnicodeDecodeError:
            said = "it is not valid, and has a name that is not UTF-8, so that MLIR cannot say why"
            return [Diagnostic("error", said, "loc(unknown)")]
        try:
            self._heard(op.context, op.verify)
        except MLIRFailure as failure:
            return failure.diagnostics
        return ()

    def check_returns(self, operation: ModuleOp) -> None:
        """Check that functions return what they declare: MLIR's verifier compares only what ``func.return`` returns."""
        if str(operation.operation.name) != "builtin.module":
            return
        for function in operation.operation.regions[0].blocks[0].operations:
            if str(function.operation.name) != "func.func":
                continue
            declared = list(function.operation.attributes["function_type"].value.results)
            for block in function.operation.regions[0].blocks:
                if not len(block.operations):
                    continue  # not verified yet
                end = block.operations[len(block.operations) - 1].operation
                returned = [each.type for each in end.operands]
                if str(end.name).endswith(".return") and returned != declared:
                    name = str(function.operation.attributes["sym_name"].value)
                    said = (
                        f"{end.name} returns {_listed(returned)}, but @{name} is declared to return {_listed(declared)}"
                    )
                    raise MLIRFailure([Diagnostic("error", said, str(end.location), source_of(end.location))])

    def bytecode(self, operation: ModuleOp, target: Version) -> list[bytes]:
        """Return MLIR bytecode of the version that corresponds to ``target``, in chunks."""
        # Imported here for the same reason as in `library`.
        from vhlo_tools.spec import bytecode_version_of

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
        """Return MLIR text; constants of more than ``largest_constant`` elements are left out (a summary)."""
        text: str = operation.operation.get_asm(
            enable_debug_info=debug_info, print_generic_op_form=generic, large_elements_limit=largest_constant
        )
        return text

    def walk(self, operation: ModuleOp | Operation, *, innermost_first: bool = False) -> list[Operation]:
        """Return ``operation`` and all ops nested in it; they do not keep the module alive, so the caller must."""
        ops: list[Operation] = []
        advance = self.ir.WalkResult.ADVANCE

        def visit(op: Operation) -> Any:
            ops.append(op)
            return advance

        order = self.ir.WalkOrder
        operation.operation.walk(visit, order.POST_ORDER if innermost_first else order.PRE_ORDER)
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
        held = array
        if array.dtype.kind == "b" and self._packs_booleans:
            import numpy as np

            held = np.packbits(array, axis=None, bitorder="little")
        attribute: Attribute = self.ir.DenseElementsAttr.get(
            held, type=self.ir.Type.parse(element, context), shape=list(array.shape), context=context
        )
        return attribute

    def array_of(self, elements: Attribute) -> np.ndarray[Any, Any]:
        """Return dense elements as an array that shares no memory with them."""
        import numpy as np

        # Of booleans that are all equal, the bindings that pack them read beyond the one byte that there is.
        if self._packs_booleans and (held := self.ir.DenseElementsAttr(elements)).is_splat:
            type_ = self.ir.RankedTensorType(elements.type)
            if str(type_.element_type) == "i1":
                return np.full(type_.shape, bool(held.get_splat_value().value))
        return np.array(elements)

    @cached_property
    def _packs_booleans(self) -> bool:
        """Whether the bindings hold booleans eight to a byte, the first one in the lowest bit: up to jaxlib 0.9.0."""
        import numpy as np

        context = self.ir.Context()
        boolean = self.ir.Type.parse("i1", context)
        try:
            self.ir.DenseElementsAttr.get(np.array([True, False]), type=boolean, shape=[2], context=context)
        except ValueError:
            return True
        return False

    def is_in_resource(self, constant: Operation) -> bool:
        """Return whether the elements of a constant are in a resource of the module, and not in its attribute."""
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
        """Evaluate ``main`` with the reference interpreter, in this process; only some failures do not crash it."""
        evaluate = self.stablehlo.eval_module
        results: list[Attribute] = self._checked(module.context, lambda: evaluate(module, list(arguments)))
        return results

    def _checked(
        self, context: Context, asked: Callable[[], Any], reason: Callable[[], Sequence[Diagnostic]] | None = None
    ) -> Any:
        """Call into MLIR; diagnostics of a failure are in the exception, and never reach stderr.

        With ``reason``, which finds them, they are read here in child processes only.
        """
        if reason is not None and AVAILABLE and not in_child():
            with silenced(context):
                try:
                    return asked()
                except (self.ir.MLIRError, ValueError, SystemError) as error:
                    raise MLIRFailure(reason) from error
        return self._heard(context, asked)

    def _heard(self, context: Context, asked: Callable[[], Any]) -> Any:
        with captured(context) as diagnostics:
            try:
                return asked()
            except self.ir.MLIRError as error:
                raise MLIRFailure([*diagnostics, *map(to_diagnostic, error.error_diagnostics)]) from error
            except (ValueError, SystemError) as error:
                raise MLIRFailure(diagnostics) from error

    def _reason(
        self, unregistered: bool, load: Callable[[], bytes], passes: str | None = None, *, portable: bool = False
    ) -> tuple[Diagnostic, ...]:
        """Return what MLIR says in a child process that reads the same bytes and runs the same passes."""
        data = load()
        seconds, memory = _SECONDS + len(data) / _BYTES_PER_SECOND, _MEMORY + _COPIES * len(data)
        limits = Limits(seconds=seconds, memory=memory)
        form = portable, bool(unregistered)
        try:
            call(_READ_AGAIN, self.prefix, memoryview(data), *form, passes, limits=limits)
        except MLIRFailure as failure:
            return failure.diagnostics
        except EngineError as error:
            said = f"MLIR refuses it, and fails where it says why (tried in a child process): {error}"
            return (Diagnostic("error", said, "loc(unknown)"),)
        return ()


class _Pieces(list[bytes]):
    def write(self, data: bytes) -> int:
        self.append(bytes(data))
        return len(data)


def _listed(types: Sequence[Any]) -> str:
    return ", ".join(map(str, types)) or "nothing"


def _has_dialect(ir: Any, context: Context, name: str) -> bool:
    # `Context.dialects` lists only dialects with Python classes. Parsing an unknown attribute reports either that the
    # dialect lacks the attribute or that the dialect is not registered.
    try:
        ir.Attribute.parse(f"#{name}.there_is_no_such_attribute", context)
    except ir.MLIRError as error:
        said = " ".join(str(diagnostic.message) for diagnostic in error.error_diagnostics)
        return "unregistered dialect" not in said
    return True
