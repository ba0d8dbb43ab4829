"""The engine ``reference``: StableHLO's interpreter, in this process or in an isolated one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Module, isolation
from vhlo_tools.conversion import make_plain
from vhlo_tools.errors import InvalidInputError, InvalidProgramError
from vhlo_tools.execution.isolated import limits_of, naming
from vhlo_tools.execution.lowering.lowering import UNWRITABLE, fit, lower
from vhlo_tools.execution.lowering.shapes import is_dynamic
from vhlo_tools.execution.reference.calling_convention import convert_inputs, convert_results
from vhlo_tools.execution.reference.preparation import check_runnable, fix_sizes, has_data_sizes
from vhlo_tools.execution.values import ValueType, explained, main_of, signature_of
from vhlo_tools.program import Program, load_program

# The reference interpreter, ``eval_module`` of the bindings, in the calling process
#
# Source of its semantics: the StableHLO specification, and ``stablehlo/reference`` in openxla/stablehlo.


def evaluate(program: Program, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Endless recursion crashes the process: it depends on values, and cannot be detected before."""
    return prepare(program, inputs).run(inputs)


class LoweredProgram:
    """``reusable`` if it accepts any inputs, not only those that it was prepared for."""

    def __init__(
        self,
        program: Program,
        module: Module,
        arguments: Sequence[ValueType],
        results: Sequence[ValueType],
        *,
        reusable: bool,
    ) -> None:
        self.program: Program = program
        self._module = module
        self._arguments, self._results = arguments, results
        self.reusable = reusable
        #: The bytes of values in its context, which releases no value that it ever contained.
        self.held: int = 0

    def run(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        provider, context = self.program.provider, self._module.context
        converted = _converted(self.program, inputs, self._arguments)
        with explained(provider, self.program.name, "failed in the reference interpreter"):
            attributes = [provider.dense_elements(context, array) for array in converted]
            values = [provider.array_of(value) for value in provider.evaluate(self._module, attributes)]
        self.held += sum(each.nbytes for each in (*converted, *values))
        return tuple(convert_results(values, self._results))


def prepare(program: Program, inputs: Sequence[Any]) -> LoweredProgram:
    """The inputs determine sizes that the program leaves open."""
    provider, name = program.provider, program.name
    module = program.load()
    with explained(provider, name, "is not valid", InvalidProgramError):
        provider.verify(module)  # a module from the caller may be unverified
    with explained(provider, name, "cannot be rewritten to StableHLO"):
        module = provider.as_module(make_plain(provider, module, name))
    arguments, results = signature_of(main_of(module, name))
    converted = _converted(program, inputs, arguments)
    text = provider.text(module, largest_constant=0)
    with explained(provider, name, "does not match these inputs"):
        if has_data_sizes(text):
            fix_sizes(provider, module, arguments, converted, name)
        fit(provider, module, arguments, results, converted, name)
    with explained(provider, name, UNWRITABLE):
        lower(provider, module, name)
    check_runnable(provider, module, name)
    return LoweredProgram(program, module, arguments, results, reusable=not is_dynamic(text))


def _converted(program: Program, inputs: Sequence[Any], arguments: Sequence[ValueType]) -> list[np.ndarray[Any, Any]]:
    if len(inputs) != len(arguments):
        raise InvalidInputError(f"{program.name} requires {len(arguments)} inputs, got {len(inputs)}")
    return convert_inputs(inputs, arguments, "input")


# Evaluation in a child process: programs are prepared there once, and run any number of times

_RUN: Final = "vhlo_tools.execution.reference.engine:run_here"

#: The activity that a child reports after a program is rewritten: the ``op`` of the error if the child then crashes.
EVALUATION: Final = "its evaluation"

# The number of programs that a child keeps, and the bytes of values in a program's context before it is rebuilt.
_KEPT: Final = 16
_HELD: Final = 64 << 20

_prepared: OrderedDict[bytes, LoweredProgram] = OrderedDict()


class IsolatedProgram:
    """This process has parsed every part of the bytecode."""

    def __init__(self, bytecode: bytes, provider: str, name: str) -> None:
        self._bytecode = isolation.KeptData(bytecode, name)
        self._provider, self._name = provider, name
        # Start the child now, so that it is ready when the inputs are.
        isolation.warm()

    def run(self, inputs: Sequence[Any], timeout: float | None = None) -> tuple[Any, ...]:
        arguments = self._provider, self._name, list(inputs)
        with naming(self._name):
            return tuple(self._bytecode.call(_RUN, *arguments, limits=limits_of(timeout)))


def run_here(
    key: bytes, bytecode: memoryview | None, provider: str, name: str, inputs: list[Any]
) -> tuple[Any, ...] | str:
    """Returns ``isolation.MISSING`` if ``bytecode`` is ``None`` and the program is not cached."""
    prepared = _prepared.get(key)
    if prepared is not None:
        program = prepared.program
    elif bytecode is None:
        return isolation.MISSING
    else:
        program = load_program(bytes(bytecode), name=name, provider=provider, trusted=True)
    if prepared is None or not prepared.reusable or prepared.held > _HELD:
        prepared = _prepared[key] = prepare(program, inputs)
    _prepared.move_to_end(key)
    if len(_prepared) > _KEPT:
        _prepared.popitem(last=False)
    isolation.note(EVALUATION)
    return prepared.run(inputs)
