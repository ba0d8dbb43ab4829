"""Default choice of the engine: the interpreter for small programs that it supports, XLA for all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vhlo_tools.bindings import MLIRFailure, Module
from vhlo_tools.conversion import make_plain
from vhlo_tools.errors import EngineError, EngineTimeoutError
from vhlo_tools.execution.executable import Executable
from vhlo_tools.execution.handlers import Handler
from vhlo_tools.execution.isolated import bytecode_of, call_isolated, module_here
from vhlo_tools.execution.lowering.lowering import fit, lower
from vhlo_tools.execution.lowering.shapes import CALLS_OF_SHAPES, target_of
from vhlo_tools.execution.reference.known_calls import known_handler
from vhlo_tools.execution.reference.preparation import check_runnable, estimated_steps
from vhlo_tools.execution.stepping.local_steps import has_host_ops
from vhlo_tools.execution.values import main_of, signature_of, valid_module
from vhlo_tools.program import Program, explain_failure

#: The operations on elements per second of the interpreter, as measured on matrix products, and the limit of the time
#: that it may need.
_STEPS_A_SECOND: Final = 4_000_000
_SECONDS: Final = 0.05

_REFUSAL: Final = "vhlo_tools.execution.engine_selection:refusal_here"


def choose_executable(
    program: Program,
    handlers: Mapping[str, Handler] | None = None,
    *,
    in_process: bool = False,
    timeout: float | None = None,
) -> Executable:
    """``timeout`` limits the preparation, and is the default of runs. With ``in_process``, XLA can crash this one."""
    module = valid_module(program)
    main_of(module, program.name)
    seconds = estimated_steps(module) / _STEPS_A_SECOND
    # In this order, because the message about the second engine contains the reason against the first.
    is_large = seconds > _SECONDS
    reason = f"the interpreter would take about {seconds:.2g} s" if is_large else _refusal(program, module, handlers)
    if reason is None:
        reason = f"it is small: the interpreter takes about {seconds:.2g} s"
        return Executable(program, "reference", reason, handlers, timeout=timeout)
    executable = Executable(program, "xla", reason, handlers, in_process=in_process, timeout=timeout)
    try:
        executable.prepare()
    except EngineTimeoutError:
        raise
    except EngineError as failure:
        refusal = _refusal(program, module, handlers) if is_large else reason
        if refusal is not None:
            raise EngineError(f"no engine can run {program.name}: {refusal}; {failure}") from failure
        return Executable(program, "reference", f"XLA cannot run it: {failure}", handlers, timeout=timeout)
    return executable


def _refusal(program: Program, module: Module, handlers: Mapping[str, Handler] | None) -> str | None:
    """The reason as far as it is known without inputs."""
    provider, name = program.provider, program.name
    if has_host_ops(provider, module):
        targets = dict.fromkeys(filter(None, map(target_of, provider.walk(module))))
        known = CALLS_OF_SHAPES.union(handlers or {})
        unhandled = ", ".join(each for each in targets if each not in known and known_handler(each) is None)
        return f"no handler for custom calls of {unhandled} on the interpreter" if unhandled else None
    try:
        refusal: str | None = call_isolated(
            _REFUSAL, name, memoryview(bytecode_of(provider, module)), provider.prefix, name
        )
    except EngineError as error:
        return str(error)
    return refusal


def refusal_here(bytecode: memoryview, provider: str, name: str) -> str | None:
    """Called in a child process, because rewriting may crash."""
    bindings, module = module_here(bytecode, provider, name)
    arguments, results = signature_of(main_of(module, name))
    try:
        plain = bindings.as_module(make_plain(bindings, module, name))
        if "?" in bindings.text(plain, largest_constant=0):
            return None
        fit(bindings, plain, arguments, results, [], name)
        lower(bindings, plain, name)
        check_runnable(bindings, plain, name)
    except EngineError as error:
        return str(error)
    except MLIRFailure as failure:
        return explain_failure(name, bindings, failure)
    return None
