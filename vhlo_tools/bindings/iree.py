"""IREE in processes of its own: its compiler, and programs that it runs."""

from __future__ import annotations

import ctypes
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from vhlo_tools.bindings import isolation
from vhlo_tools.bindings.foreign import ArrayType, ForeignProgram
from vhlo_tools.bindings.isolation.limits import note
from vhlo_tools.bindings.isolation.messages import anonymous_file
from vhlo_tools.errors import EngineCrashError, EngineError, MissingExtraError, installing
from vhlo_tools.findings import Diagnostic
from vhlo_tools.spec import known_releases
from vhlo_tools.version import Version

# IREE in a child process, the server of :mod:`vhlo_tools.bindings.iree`
#
# The compiler and the runtime of IREE share no code with XLA, and only the reader of artifacts with the interpreter.
# Both run in children: the compiler in one that may start its linker, and the compiled program in one that may do
# nothing but compute. Values are booleans, integers and IEEE floats of whole bytes, of which both sides have the same
# bits.

#: The modules of the two packages.
COMPILER: Final = "iree.compiler.api"
RUNTIME: Final = "iree.runtime"

#: What keeps the types of a program as they are, where IREE makes ``f64`` to ``f32`` by default. The machine that
#: compiles is the one that runs.
_FLAGS: Final = (
    "--iree-input-type=stablehlo",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-demote-f64-to-f32=false",
    "--iree-input-demote-i64-to-i32=false",
    "--iree-vm-target-extension-f64=true",
    # Otherwise the compiler runs parts of the program, and crashes on some, in a child that may do more than compute.
    "--iree-opt-const-eval=false",
)

# `iree_compiler_diagnostic_severity_t` of iree/compiler/embedding_api.h.
_SEVERITIES: Final = ("note", "warning", "error", "remark")
_CALLBACK: Final = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)

# What a diagnostic repeats of the program: the op of interest, which the start of the message names.
_REPEATED: Final = "see current operation: "
_ILLEGAL: Final = re.compile(r"failed to legalize operation '([\w.]+)'.*", re.DOTALL)
_PLACE: Final = re.compile(r"^(?:loc\(|-:|[^\s:]+:)\d+:\d+\)?: ")

# The characters of a message that are kept.
_MOST_SAID: Final = 400

# The linker failed, and said why on stderr.
_UNLINKED: Final = "failed to link executable"
_UNDEFINED: Final = re.compile(r"undefined symbol: (\S+)")

# The element types of IREE's runtime, by the name of the numpy dtype; integers of programs have no sign there.
_ELEMENTS: Final = {
    "bool": "BOOL_8",
    **{f"{sign}int{bits}": f"INT_{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"FLOAT_{bits}" for bits in (16, 32, 64)},
}

#: The number of programs that a child keeps.
_LOADED: Final = 16

_loaded: OrderedDict[bytes, tuple[Any, Any]] = OrderedDict()
_device: Any = None


def compile_here(name: str, artifact: memoryview) -> bytes:
    note(f"compilation of {name}")
    compiled, said = _compiled(bytes(artifact))
    if compiled is not None:
        return compiled
    linker = ""
    if any(_UNLINKED in each.message for each in said):
        # What the linker writes would be the last words of a crash, so it is kept only if it is asked for again.
        with _kept_output() as read:
            _compiled(bytes(artifact))
            linker = read()
    raise _refusal(name, said, linker)


def _compiled(artifact: bytes) -> tuple[bytes | None, list[Diagnostic]]:
    api = import_module(COMPILER)
    session = api.Session()
    session.set_flags(*_FLAGS)
    invocation = session.invocation()
    said: list[Diagnostic] = []

    def take(severity: int, text: int, size: int, _: int) -> None:
        found = ctypes.string_at(text, size).decode(errors="replace")
        said.append(Diagnostic(_SEVERITIES[severity] if severity < len(_SEVERITIES) else "error", found, ""))

    # The session calls it for as long as it lives, so that this function must not return before the session is closed.
    callback = _CALLBACK(take)
    _diagnose(invocation, callback)
    try:
        source = api.Source.wrap_buffer(session, artifact, buffer_name="program")
        if not invocation.parse_source(source) or not invocation.execute():
            return None, said
        output = api.Output.open_membuffer()
        invocation.output_vm_bytecode(output)
        return bytes(output.map_memory()), said
    finally:
        session.close()


@contextmanager
def _kept_output() -> Iterator[Callable[[], str]]:
    """Keep what this process and its children write on stderr; yields a function that returns it."""
    kept, before = anonymous_file(shared=False), os.dup(2)
    os.dup2(kept, 2)
    try:
        yield lambda: os.pread(kept, 1 << 16, 0).decode(errors="replace")
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(kept)


def run_here(
    key: bytes, compiled: memoryview | None, name: str, inputs: list[Any], results: Sequence[ArrayType]
) -> list[Any] | str:
    """Run a program of the cache, or ``compiled``; ``isolation.MISSING`` if neither is there."""
    global _device
    runtime = import_module(RUNTIME)
    if key not in _loaded:
        if compiled is None:
            return isolation.MISSING
        note(f"loading of {name}")
        if _device is None:
            # One thread, so that a run ends with its call, and sums are added in one order.
            _device = runtime.get_device("local-sync")
        instance = runtime.VmInstance()
        module = runtime.VmModule.copy_buffer(instance, bytes(compiled))
        context = runtime.VmContext(instance, [runtime.create_hal_module(instance, _device), module])
        _loaded[key] = context, module.lookup_function("main")
    _loaded.move_to_end(key)
    if len(_loaded) > _LOADED:
        _loaded.popitem(last=False)
    context, function = _loaded[key]
    note(f"execution of {name}")
    arguments, returned = runtime.VmVariantList(len(inputs)), runtime.VmVariantList(len(results))
    for array in inputs:
        arguments.push_ref(_view_of(runtime, array))
    try:
        context.invoke(function, arguments, returned)
    except (RuntimeError, ValueError, MemoryError, NotImplementedError) as error:
        # Without the stack of the virtual machine.
        said = str(error).split("; while invoking")[0].splitlines() or ["it gave no reason"]
        raise EngineError(f"{name} failed in IREE: {_shortened(said[0])}") from error
    views = [returned.get_as_object(number, runtime.HalBufferView) for number in range(len(results))]
    return [_array_of(view, *type_) for view, type_ in zip(views, results, strict=True)]


def _diagnose(invocation: Any, callback: Any) -> None:
    """Through the C library, because the Python package has no call for it."""
    library = import_module(f"{COMPILER}.ctypes_dl")._dylib
    enable = library.ireeCompilerInvocationEnableCallbackDiagnostics
    enable.restype, enable.argtypes = None, [ctypes.c_void_p, ctypes.c_int, _CALLBACK, ctypes.c_void_p]
    enable(invocation._inv_p, 0, callback, None)


def _refusal(name: str, said: Sequence[Diagnostic], linker: str) -> EngineError:
    """Make the error from the first diagnostic, from which the others follow."""
    errors = [each for each in said if each.severity == "error"]
    reason = _in_words(errors[0].message) if errors else "it gave no reason"
    if functions := dict.fromkeys(_UNDEFINED.findall(linker)):
        reason = f"it calls {' and '.join(functions)} of the C library, which its programs cannot have"
    return EngineError(f"IREE cannot compile {name}: {reason}", said)


def _in_words(message: str) -> str:
    """Remove the op that a diagnostic repeats, and places that are not the user's."""
    first, _, rest = message.partition("\n")
    text = (first if _REPEATED in rest else message).strip()
    place = _PLACE.match(text)
    said = text[place.end() :] if place else text
    if illegal := _ILLEGAL.fullmatch(said):
        said = f"it has no lowering of {illegal[1]} as it is used here"
    at = place[0].removesuffix(": ") if place and not place[0].startswith(("program:", "loc(", "-:")) else ""
    return _shortened(f"{at}: {said}" if at else said)


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_SAID else text[:_MOST_SAID] + "..."


def _view_of(runtime: Any, array: Any) -> Any:
    import numpy as np

    element = getattr(runtime.HalElementType, _ELEMENTS[array.dtype.name])
    usage = runtime.BufferUsage.DEFAULT | runtime.BufferUsage.MAPPING
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    buffer = _device.allocator.allocate_buffer_copy(
        memory_type=runtime.MemoryType.DEVICE_LOCAL, allowed_usage=usage, device=_device, buffer=data
    )
    return runtime.HalBufferView(buffer=buffer, shape=array.shape, element_type=element).ref


def _array_of(view: Any, dtype: str, shape: Sequence[int | None]) -> Any:
    """The array has memory of its own."""
    import numpy as np

    sizes = tuple(view.shape)
    fits = len(sizes) == len(shape) and all(wanted in (None, size) for size, wanted in zip(sizes, shape, strict=True))
    if not fits:
        raise EngineError(f"IREE returned an array of the shape {list(sizes)} in place of {list(shape)}")
    if 0 in sizes:
        return np.empty(sizes, dtype)
    return view.map().asarray(sizes, np.dtype(dtype)).copy()


# IREE in child processes: a crash, a hang or memory exhaustion there does not affect the caller
#
# Compilers are kept warm, and may start IREE's linker, which is a program of its own; compiled programs run in the
# children of :mod:`vhlo_tools.bindings.isolation`, which may do nothing but compute.

#: The distribution of the compiler.
IREE_PACKAGE: Final = "iree-base-compiler"

_SERVER: Final = "vhlo_tools.bindings.iree"

#: The modules that a compiling child needs, imported once by the process that forks children.
_MODULES: Final = (COMPILER, _SERVER)

#: The idle compilers that are kept.
_IDLE: Final = 2


def require_iree() -> None:
    """Raise ``MissingExtraError`` unless IREE is installed; nothing is imported."""
    missing = []
    for each in (COMPILER.rpartition(".")[0], RUNTIME):
        try:
            found = find_spec(each)
        except ModuleNotFoundError:  # of the package that contains it
            found = None
        missing += [each] if found is None else []
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise MissingExtraError(
            f"the engine iree needs {' and '.join(missing)}, which {are} not installed: {installing('iree')}"
        )


def iree_version() -> Version:
    """Return the newest StableHLO version that the installed compiler reads, as far as releases are known.

    A release that is newer than all known ones reads at least what the newest known one does.
    """
    known = [each for each in known_releases() if each.package == IREE_PACKAGE]
    try:
        installed = version(IREE_PACKAGE)
    except PackageNotFoundError:  # built from source
        return known[-1].stablehlo
    # Imported here because child processes do not need it.
    from packaging.version import parse

    read = (each.stablehlo for each in reversed(known) if parse(each.release).release <= parse(installed).release)
    return next(read, known[0].stablehlo)


def compile_with_iree(name: str, artifact: bytes, limits: isolation.Limits) -> bytes:
    """``artifact`` is a portable artifact of :func:`iree_version` or older; ``name`` is for messages."""
    compiled = _compilers.call(f"{_SERVER}:compile_here", (name, memoryview(artifact)), limits)
    if not isinstance(compiled, bytes):
        raise EngineCrashError("the child process of IREE's compiler returned something else than a program")
    return compiled


def load_with_iree(name: str, compiled: bytes, results: Sequence[ArrayType]) -> ForeignProgram:
    """``compiled`` is what :func:`compile_with_iree` made."""
    return ForeignProgram(f"{_SERVER}:run_here", name, compiled, results)


@cache
def _tools() -> tuple[str, ...]:
    """Return the programs that the compiler starts: its linker, by the shell, and the loader of both."""
    spec = find_spec("iree.compiler._mlir_libs")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    loaders = [each for each in ("/lib64/ld-linux-x86-64.so.2", "/bin/sh") if Path(each).exists()]
    return (*folders, *(os.path.realpath(each) for each in loaders))


_compilers: Final = isolation.Pool(_MODULES, _tools, most=_IDLE)
