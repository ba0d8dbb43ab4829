"""Which engine runs a program, where nobody says it: the interpreter what is small and it has, XLA the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vhlo_tools.bindings import MLIRFailure, Module, Operation
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.driver import has_special
from vhlo_tools.interpreter.entry import main_of, valid_module
from vhlo_tools.interpreter.executable import Executable
from vhlo_tools.interpreter.handlers import Handler
from vhlo_tools.interpreter.isolated import bytecode_of, call_isolated
from vhlo_tools.interpreter.known_calls import known_handler
from vhlo_tools.interpreter.lowering import fit, lower
from vhlo_tools.interpreter.preflight import check_runnable
from vhlo_tools.interpreter.values import parse_value_type
from vhlo_tools.interpreter.work import estimated_steps
from vhlo_tools.portable import make_plain
from vhlo_tools.program import Program, explain_failure, load_program

__all__ = ["choose_executable"]

#: How many operations on elements the interpreter does in a second, as measured on matrix products, and how long it may
#: take.
_STEPS_A_SECOND: Final = 4_000_000
_SECONDS: Final = 0.05

_REFUSAL: Final = "vhlo_tools.interpreter.choosing:refusal_here"


def choose_executable(program: Program, handlers: Mapping[str, Handler] | None = None) -> Executable:
    """Load a program for the engine that suits it.

    Args:
        program: The program.
        handlers: What computes its custom calls, by their targets.

    Raises:
        EngineError: If no engine can run it, with the reasons of both.
        VhloToolsError: As :class:`Executable` does.
    """
    module = valid_module(program)
    main_of(module, program.name)
    seconds = estimated_steps(module) / _STEPS_A_SECOND
    # One after the other, for what a message says of the first is the reason for the second.
    is_large = seconds > _SECONDS
    reason = f"the interpreter would take about {seconds:.2g} s" if is_large else _refusal(program, module, handlers)
    if reason is None:
        return Executable(program, "reference", f"it is small: the interpreter takes about {seconds:.2g} s", handlers)
    executable = Executable(program, "xla", reason, handlers)
    try:
        executable.prepare()
    except EngineError as failure:
        refusal = _refusal(program, module, handlers) if is_large else reason
        if refusal is not None:
            raise EngineError(f"no engine can run {program.name}: {refusal}; {failure}") from failure
        return Executable(program, "reference", f"XLA cannot run it: {failure}", handlers)
    return executable


def _refusal(program: Program, module: Module, handlers: Mapping[str, Handler] | None) -> str | None:
    """Return why the reference interpreter cannot run a program, as far as that is known without its inputs.

    Args:
        program: The program.
        module: It.
        handlers: What computes its custom calls.
    """
    provider, name = program.provider, program.name
    if has_special(provider, module):
        targets = (each.attributes["call_target_name"].value for each in provider.walk(module) if _is_call(each))
        lacking = [each for each in targets if each not in (handlers or {}) and known_handler(each) is None]
        return f"nothing computes {', '.join(dict.fromkeys(lacking))} for the interpreter" if lacking else None
    try:
        refusal: str | None = call_isolated(
            _REFUSAL, name, memoryview(bytecode_of(provider, module)), provider.prefix, name
        )
    except EngineError as error:
        return str(error)
    return refusal


def refusal_here(bytecode: memoryview, provider: str, name: str) -> str | None:
    """Return why the reference interpreter cannot run a program, after rewriting it in this process.

    Args:
        bytecode: The program.
        provider: The import prefix of the bindings.
        name: What to call it in messages.
    """
    program = load_program(bytes(bytecode), name=name, provider=provider, trusted=True)
    bindings = program.provider
    module = bindings.as_module(program.load())
    kind = main_of(module, name).attributes["function_type"].value
    arguments, results = ([parse_value_type(str(each)) for each in types] for types in (kind.inputs, kind.results))
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


def _is_call(op: Operation) -> bool:
    return str(op.name) == "stablehlo.custom_call"
