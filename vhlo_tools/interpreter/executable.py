"""A program that is ready to run, and what a run gives."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from vhlo_tools.aliasing import Shape, ShapeIndex, Signature, Tuple, compiled_aliases, format_index, leaves, subshape
from vhlo_tools.errors import InvalidInputError
from vhlo_tools.interpreter.buffers import Buffer
from vhlo_tools.interpreter.donation import Aliased, Input, plan_donation
from vhlo_tools.interpreter.engines import ENGINES
from vhlo_tools.interpreter.entry import main_of, valid_module
from vhlo_tools.interpreter.flattening import flatten_main
from vhlo_tools.interpreter.handlers import Handler
from vhlo_tools.interpreter.nesting import leaf_values, nested_values
from vhlo_tools.interpreter.probing import Probe
from vhlo_tools.interpreter.protocols import EngineName
from vhlo_tools.interpreter.report import DonationWarning, OutputReport, Placement, RunReport, UnusableDonation
from vhlo_tools.interpreter.values import ArgumentType, ValueType, as_array, as_arrays, fitting, parse_value_type
from vhlo_tools.program import Program, read_module_aliases

__all__ = ["Donate", "Executable", "Execution"]

#: Which inputs are given away: the numbers of parameters, or of one that is a tuple its number and where in it.
Donate = Iterable[int | tuple[int, ShapeIndex]]


@dataclass(frozen=True, slots=True)
class Execution:
    """What a run gave.

    Attributes:
        buffers: The results, one for each, of a tuple a tuple: inputs of a next run, which may be given away to it.
        report: What was done with the memory of the inputs.
    """

    buffers: tuple[Any, ...]
    report: RunReport

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The results as arrays, which show the memory of :attr:`buffers`.

        Raises:
            BufferDeletedError: If one was given away since.
        """
        return _mapped(np.asarray, self.buffers)


class Executable:
    """A program, loaded for an engine: ``main`` may be run as often as one likes.

    Args:
        program: The program.
        engine: What it runs on.
        why: Why on that one, for reports.
        handlers: What computes its custom calls, by their targets.

    Attributes:
        name: What the program is called in messages.
        engine: What it runs on.
        declared: What the program says of its aliases and donors.
        flat: The program, whose ``main`` takes and gives no tuples.
        aliases: Its aliases, as it is compiled: donors have become aliases, if an output fits them.

    Raises:
        AliasError: If it has aliases or donors that XLA refuses.
        InvalidProgramError: If it is not valid, or has no ``main``.
        EngineError: If it takes or gives what has no form in numpy.
        MalformedArtifactError: If it is a damaged artifact.
    """

    def __init__(
        self, program: Program, engine: EngineName, why: str, handlers: Mapping[str, Handler] | None = None
    ) -> None:
        self.name, self.engine = program.name, engine
        self._why = why
        provider = program.provider
        module = valid_module(program)
        self.declared = read_module_aliases(module.operation)
        config = self.declared.config()
        self._config = config
        self.aliases = compiled_aliases(config)
        self._outputs = [index for index, _ in leaves(config.signature.result)]
        flatten_main(provider, module, main_of(module, program.name), config)
        #: Its module, of arrays and tokens; nobody changes it.
        self.module = module
        kind = main_of(module, program.name).attributes["function_type"].value
        self._types = [parse_value_type(str(each)) for each in kind.inputs]
        for each in kind.results:
            parse_value_type(str(each))
        # Neither aliases nor tokens, tuples or dynamic dimensions: nothing need be done around a run.
        static = [each for each in self._types if isinstance(each, ArgumentType) and each.is_static]
        self._exact = [(each.static_shape, each.dtype) for each in static]
        self._is_plain = (
            not self.aliases
            and len(static) == len(self._types)
            and not any(isinstance(each, Tuple) for each in (*self.signature.parameters, *self._results))
        )
        self.flat = replace(program, load=lambda: provider.clone(module))
        self._engine = ENGINES[engine](self.flat, dict(handlers or {}))

    @property
    def signature(self) -> Signature:
        """The shapes of its parameters and its result."""
        return self._config.signature

    @property
    def _results(self) -> tuple[Shape, ...]:
        """The shapes of the results of ``main``."""
        result = self.signature.result
        # A function has one result for each element of XLA's tuple, unless its only result is a tuple.
        one = not isinstance(result, Tuple) or self.signature.results == 1
        return (result,) if one else cast(Tuple, result).elements

    @property
    def static_shapes(self) -> list[tuple[int, ...]] | None:
        """The shapes of the arrays that it takes; ``None`` if these depend on the inputs."""
        tensors = [each for each in self._types if isinstance(each, ArgumentType)]
        return [each.static_shape for each in tensors] if all(each.is_static for each in tensors) else None

    def prepare(self) -> None:
        """Do now what the first run would have to wait for, if it does not depend on inputs.

        Raises:
            EngineError: If the engine cannot run the program.
        """
        if (shapes := self.static_shapes) is not None:
            self._engine.prepare(shapes)

    def run(
        self, inputs: Sequence[Any], *, donate: Donate = (), timeout: float | None = None, probe: Probe | None = None
    ) -> tuple[Any, ...]:
        """Evaluate ``main``.

        Args:
            inputs: As for :meth:`execute`.
            donate: As for :meth:`execute`.
            timeout: As for :meth:`execute`.
            probe: As for :meth:`execute`.

        Returns:
            The results as arrays, of a tuple a tuple of arrays. Those of the engine ``xla`` are read-only.

        Raises:
            VhloToolsError: As :meth:`execute` does.
        """
        if self._is_plain and probe is None and not donate and self._are_exact(inputs):
            return tuple(self._engine.call(inputs, timeout))
        results, _ = self._run(inputs, donate, timeout, probe)
        return _mapped(Buffer.read, self.nested(results))

    def execute(
        self, inputs: Sequence[Any], *, donate: Donate = (), timeout: float | None = None, probe: Probe | None = None
    ) -> Execution:
        """Evaluate ``main``, and keep its results where they are.

        Args:
            inputs: For each argument an array, a :class:`Buffer` or Python numbers; for a tuple a sequence of these.
            donate: The inputs whose memory may be taken, beside buffers that say so themselves. An array that is no
                buffer must be writable and contiguous and own its memory, or it is copied.
            timeout: How many seconds the engine ``reference`` may take, by default ten minutes; nothing ends ``xla``.
            probe: What keeps intermediate values, on the engine ``reference``.

        Raises:
            InvalidInputError: If the inputs do not fit.
            BufferDeletedError: If a buffer was given away before.
            AliasError: If an input that must be aliased is not given away.
            EngineError: If the engine cannot run the program, or fails.
            EngineCrashError: If the program ends the process that the interpreter runs in.
            EngineTimeoutError: If it takes longer than it may.
        """
        results, report = self._run(inputs, donate, timeout, probe)
        return Execution(self.nested(results), report())

    def _are_exact(self, inputs: Sequence[Any]) -> bool:
        """Tell whether the inputs are arrays that the engine can take as they are."""
        if len(inputs) != len(self._exact):
            return False
        # A loop, for a generator would take a tenth of the time of a small run.
        for value, (shape, dtype) in zip(inputs, self._exact, strict=True):
            if type(value) is not np.ndarray or value.shape != shape or value.dtype != dtype:
                return False
            if not value.flags.c_contiguous:
                return False
        return True

    def _run(
        self, inputs: Sequence[Any], donate: Donate, timeout: float | None, probe: Probe | None
    ) -> tuple[list[Buffer | None], Callable[[], RunReport]]:
        """Return the results of a run, and what makes its report."""
        taken = self._taken(inputs, self._donated(donate))
        plan = plan_donation(taken, self.aliases, self._outputs)
        aliased = {each.input for each in plan}
        unused = [each for number, each in enumerate(taken) if each.donated and each.buffer and number not in aliased]
        unusable = _unusable(unused)
        # Before anything happens, for a warning may be made an error.
        for said in unusable:
            warnings.warn(f"{self.name}: {said}", DonationWarning, stacklevel=_level_of_caller())
        results, done = self._engine.execute([each.buffer for each in taken], plan, timeout, probe)
        for each in unused:
            cast(Buffer, each.buffer).delete()
        return results, lambda: RunReport(self.engine, self._why, self._outputs_of(results, taken, done), unusable)

    def converted(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return inputs as arrays of the types that the program takes, for tuples tuples of these.

        Args:
            inputs: As for :meth:`execute`.

        Raises:
            InvalidInputError: If they do not fit.
            BufferDeletedError: If a buffer was given away before.
        """
        return nested_values(iter(self.leaves_of(inputs)), self.signature.parameters)

    def leaves_of(self, inputs: Sequence[Any]) -> list[Any]:
        """Return what inputs are made of: an array for each argument of :attr:`flat`, ``None`` for a token.

        Args:
            inputs: As for :meth:`execute`.

        Raises:
            InvalidInputError: If they do not fit.
            BufferDeletedError: If a buffer was given away before.
        """
        return [each.buffer and each.buffer.read() for each in self._taken(inputs, set())]

    def nested(self, leaves: Iterable[Any]) -> tuple[Any, ...]:
        """Return the results of ``main``, of which ``leaves`` are those of :attr:`flat`."""
        return nested_values(iter(leaves), self._results)

    def _donated(self, donate: Donate) -> set[tuple[int, ShapeIndex]]:
        """Return the leaves that ``donate`` names."""
        parameters = self._config.signature.parameters
        donated = set()
        for each in donate:
            number, at = (each, ()) if isinstance(each, int) else (each[0], tuple(each[1]))
            shape = subshape(parameters[number], at) if 0 <= number < len(parameters) else None
            if shape is None:
                place = f" at {format_index(at)}" if at else ""
                raise InvalidInputError(
                    f"there is no parameter {number}{place} to donate: {self.name} takes {len(parameters)}"
                )
            donated |= {(number, (*at, *index)) for index, _ in leaves(shape)}
        return donated

    def _taken(self, inputs: Sequence[Any], donated: set[tuple[int, ShapeIndex]]) -> list[Input]:
        """Return the leaves of the inputs, as the program takes them."""
        parameters = self._config.signature.parameters
        if len(inputs) != len(parameters):
            raise InvalidInputError(f"{self.name} takes {len(parameters)} inputs, but {len(inputs)} were given")
        taken = []
        types = iter(self._types)
        for number, (value, shape) in enumerate(zip(inputs, parameters, strict=True)):
            for index, leaf in leaf_values(value, shape, f"input {number}"):
                which = f"input {number} at {format_index(index)}" if index else f"input {number}"
                taken.append(_input(number, index, leaf, (number, index) in donated, next(types), which))
        return taken

    def _outputs_of(
        self, results: Sequence[Buffer | None], taken: Sequence[Input], done: Sequence[Aliased]
    ) -> tuple[OutputReport, ...]:
        aliased = {each.output: each for each in done}
        reports = []
        for number, (index, buffer) in enumerate(zip(self._outputs, results, strict=True)):
            if buffer is None:
                continue  # a token
            if (each := aliased.get(number)) is None:
                reports.append(OutputReport(index, "new", buffer.nbytes))
                continue
            held = taken[each.input]
            placement: Placement = "in-place" if each.reason is None else "copied"
            place = held.parameter_number, held.parameter_index
            reports.append(OutputReport(index, placement, buffer.nbytes, *place, each.reason))
        return tuple(reports)


def _input(number: int, index: ShapeIndex, value: Any, donated: bool, kind: ValueType, which: str) -> Input:
    """Return a leaf of the inputs, of which nothing is kept but its memory."""
    if not isinstance(kind, ArgumentType):
        as_arrays(value, kind, which)
        return Input(number, index, None)
    if isinstance(value, Buffer):
        fitting(value, kind, which)
        return Input(number, index, value, donated or value.donate, _unfit(value))
    array = as_array(value, kind, which)
    buffer = Buffer(array)
    if not donated:
        return Input(number, index, buffer)
    if isinstance(value, np.ndarray) and array is not value:
        return Input(number, index, buffer, donated, "it is not what the program takes, and was converted")
    del value, array
    return Input(number, index, buffer, donated, _unfit(buffer))


def _unfit(buffer: Buffer) -> str | None:
    """Return why the memory of a buffer cannot be written over."""
    memory = buffer.memory
    if memory is None:
        return None
    flags = memory.flags
    if not flags.writeable:
        return "it is read-only"
    if not flags.owndata:
        return "it is a view, and its memory belongs to another array"
    return None if flags.c_contiguous else "it is not contiguous"


def _level_of_caller() -> int:
    """Return how many functions of the toolkit are running above the one that asks, which is the first."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("vhlo_tools."):
        level, frame = level + 1, frame.f_back
    return level


def _unusable(unused: Sequence[Input]) -> tuple[UnusableDonation, ...]:
    return tuple(
        UnusableDonation(each.parameter_number, each.parameter_index, each.buffer.nbytes)
        for each in unused
        if each.buffer
    )


def _mapped(function: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        _mapped(function, each) if isinstance(each, tuple) else None if each is None else function(each)
        for each in values
    )
