"""Executables: programs that are ready to run, and the results of a run."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from vhlo_tools.aliasing import (
    Alias,
    Declared,
    Shape,
    ShapeIndex,
    Signature,
    Tuple,
    compiled_aliases,
    format_index,
    leaves,
    subshape,
)
from vhlo_tools.errors import InvalidInputError
from vhlo_tools.execution.donation import (
    Aliased,
    Buffer,
    DonationWarning,
    Input,
    OutputReport,
    Placement,
    RunReport,
    UnusableDonation,
    plan_donation,
)
from vhlo_tools.execution.engines import engine_for
from vhlo_tools.execution.handlers import Handler
from vhlo_tools.execution.known_faults import KnownFault, faults_in
from vhlo_tools.execution.lowering.indexing import PARTIAL_WINDOWS, has_partial_windows
from vhlo_tools.execution.probes import Probe
from vhlo_tools.execution.protocols import EngineName
from vhlo_tools.execution.values import (
    ArgumentType,
    ValueType,
    as_array,
    as_arrays,
    fitting,
    flatten_main,
    leaf_values,
    main_of,
    nested_values,
    signature_of,
    valid_module,
)
from vhlo_tools.execution.violations import refuse_silent_violations
from vhlo_tools.program import Program, read_module_aliases
from vhlo_tools.records import dataclass

#: The donated inputs: numbers of parameters, or pairs of the number of a tuple parameter and an index in it.
Donate = Iterable[int | tuple[int, ShapeIndex]]


@dataclass(frozen=True, slots=True)
class Execution:
    """The results of a run.

    Attributes:
        buffers: The results, a tuple for a result that is a tuple; they can be inputs of a next run and donated to it.
        report: The report of what was done with the memory of the inputs.
    """

    buffers: tuple[Any, ...]
    report: RunReport

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The results as arrays that share the memory of :attr:`buffers`.

        Raises:
            BufferDeletedError: If a buffer was donated since the run.
        """
        return _mapped(np.asarray, self.buffers)


class Executable:
    """A program, loaded for an engine; ``main`` can be run any number of times.

    Args:
        program: The program.
        engine: The engine that runs the program.
        why: The reason for the choice of that engine, for reports.
        handlers: The handlers of custom calls, by target.
        in_process: Whether XLA runs in this process, which it can crash; the interpreter never does.
        timeout: The limit in seconds of the preparation, and of runs without one of their own.

    Attributes:
        name: The name of the program in messages.
        engine: The engine that runs the program.
        declared: The aliases and donors that the program declares.
        flat: The program with a ``main`` whose arguments and results are not tuples.
        aliases: The aliases of the compiled program: donors have become aliases where an output matches them.

    Raises:
        AliasError: If the program has aliases or donors that XLA refuses.
        InvalidProgramError: If the program is not valid, or has no ``main``.
        EngineError: If an argument or result has a type that numpy cannot represent.
        MalformedArtifactError: If the program is a damaged artifact.
    """

    def __init__(
        self,
        program: Program,
        engine: EngineName,
        why: str,
        handlers: Mapping[str, Handler] | None = None,
        *,
        in_process: bool = False,
        timeout: float | None = None,
    ) -> None:
        self._timeout = timeout
        self.name: str = program.name
        self.engine: EngineName = engine
        self._why = why
        provider = program.provider
        module = valid_module(program)
        refuse_silent_violations(provider, module, program.name)
        self.declared: Declared = read_module_aliases(module.operation)
        config = self.declared.config()
        self._config = config
        self.aliases: tuple[Alias, ...] = compiled_aliases(config)
        self._outputs = [index for index, _ in leaves(config.signature.result)]
        flatten_main(provider, module, main_of(module, program.name), config)
        #: The module of the program, with arrays and tokens only; it is not modified afterwards.
        self.module = module
        self._types, _ = signature_of(main_of(module, program.name))
        # Without aliases, tokens, tuples and dynamic dimensions a run needs no conversions.
        static = [each for each in self._types if isinstance(each, ArgumentType) and each.is_static]
        self._exact = [(each.static_shape, each.dtype) for each in static]
        self._is_plain = (
            not self.aliases
            and len(static) == len(self._types)
            and not any(isinstance(each, Tuple) for each in (*self.signature.parameters, *self._results))
        )
        self.flat: Program = replace(program, load=lambda: provider.clone(module))
        self._engine = engine_for(self.flat, module, engine, dict(handlers or {}), in_process)

    @property
    def signature(self) -> Signature:
        """The shapes of the parameters and the result."""
        return self._config.signature

    @property
    def _results(self) -> tuple[Shape, ...]:
        result = self.signature.result
        # A function has one result for each element of XLA's tuple, unless its only result is a tuple.
        one = not isinstance(result, Tuple) or self.signature.results == 1
        return (result,) if one else cast(Tuple, result).elements

    @property
    def static_shapes(self) -> list[tuple[int, ...]] | None:
        """The shapes of the array arguments; ``None`` if these depend on the inputs."""
        tensors = [each for each in self._types if isinstance(each, ArgumentType)]
        return [each.static_shape for each in tensors] if all(each.is_static for each in tensors) else None

    def prepare(self) -> None:
        """Prepare the first run (such as compilation), if its preparation does not depend on inputs.

        Raises:
            EngineError: If the engine cannot run the program.
        """
        if (shapes := self.static_shapes) is not None:
            self._engine.prepare(shapes, self._timeout)

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
            The results as arrays; a tuple of arrays for a tuple result. Arrays of the engine ``xla`` are read-only.

        Raises:
            VhloToolsError: As :meth:`execute` does.
        """
        if self._is_plain and probe is None and not donate and self._are_exact(inputs):
            return tuple(self._engine.call(inputs, self._timeout if timeout is None else timeout))
        results, _ = self._run(inputs, donate, timeout, probe)
        return _mapped(Buffer.read, self.nested(results))

    def execute(
        self, inputs: Sequence[Any], *, donate: Donate = (), timeout: float | None = None, probe: Probe | None = None
    ) -> Execution:
        """Evaluate ``main``, and leave its results in the memory of the engine.

        Args:
            inputs: For each argument an array, a :class:`Buffer` or Python numbers; for a tuple a sequence of these.
            donate: The inputs whose memory may be reused, in addition to buffers with ``donate`` set. An array that is
                not a buffer must be writable and contiguous and own its memory; otherwise it is copied.
            timeout: The limit in seconds, by default that of the executable, or ten minutes; ``math.inf`` for none.
                XLA in this process has none.
            probe: The probe that records intermediate values, on the engine ``reference``.

        Raises:
            InvalidInputError: If the inputs do not match the parameters.
            BufferDeletedError: If a buffer was donated before.
            AliasError: If an input that must be aliased is not donated.
            EngineError: If the engine cannot run the program, or fails.
            EngineCrashError: If the program crashes the child process that runs it.
            EngineTimeoutError: If the run exceeds the time limit.
        """
        results, report = self._run(inputs, donate, timeout, probe)
        return Execution(self.nested(results), report())

    def _are_exact(self, inputs: Sequence[Any]) -> bool:
        """The condition of the fast path: no input needs conversion."""
        if len(inputs) != len(self._exact):
            return False
        # A loop, because a generator would need a tenth of the time of a small run.
        for value, (shape, dtype) in zip(inputs, self._exact, strict=True):
            if type(value) is not np.ndarray or value.shape != shape or value.dtype != dtype:
                return False
            if not value.flags.c_contiguous:
                return False
        return True

    def _run(
        self, inputs: Sequence[Any], donate: Donate, timeout: float | None, probe: Probe | None
    ) -> tuple[list[Buffer | None], Callable[[], RunReport]]:
        taken = self._taken(inputs, self._donated(donate))
        plan = plan_donation(taken, self.aliases, self._outputs)
        aliased = {each.input for each in plan}
        unused = [each for number, each in enumerate(taken) if each.donated and each.buffer and number not in aliased]
        unusable = tuple(
            UnusableDonation(each.parameter_number, each.parameter_index, each.given.nbytes) for each in unused
        )
        # Before the run, because a warning may be turned into an error.
        for said in unusable:
            warnings.warn(f"{self.name}: {said}", DonationWarning, stacklevel=_level_of_caller())
        limit = self._timeout if timeout is None else timeout
        results, done = self._engine.execute([each.buffer for each in taken], plan, limit, probe)
        for each in unused:
            each.given.delete()

        def report() -> RunReport:
            return RunReport(self.engine, self._why, self._outputs_of(results, taken, done), unusable, self._notes)

        return results, report

    @cached_property
    def _notes(self) -> tuple[str, ...]:
        names = ("mhlo.scatter", "stablehlo.scatter")
        scatters = (op for op in self.flat.provider.walk(self.module) if str(op.name) in names)
        windows = (PARTIAL_WINDOWS,) if any(map(has_partial_windows, scatters)) else ()
        return (*windows, *map(str, self.known_faults))

    @cached_property
    def known_faults(self) -> tuple[KnownFault, ...]:
        """The faults of the engine that this program would show, were they not avoided."""
        return faults_in(self.flat.provider, self.module, self.engine)

    def converted(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return inputs as arrays of the types of the parameters; for a tuple, a tuple of arrays.

        Args:
            inputs: As for :meth:`execute`.

        Raises:
            InvalidInputError: If the inputs do not match the parameters.
            BufferDeletedError: If a buffer was donated before.
        """
        return nested_values(iter(self.leaves_of(inputs)), self.signature.parameters)

    def leaves_of(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the leaves of inputs: an array for each argument of :attr:`flat`, ``None`` for a token.

        Args:
            inputs: As for :meth:`execute`.

        Raises:
            InvalidInputError: If the inputs do not match the parameters.
            BufferDeletedError: If a buffer was donated before.
        """
        return [each.buffer and each.buffer.read() for each in self._taken(inputs, set())]

    def nested(self, leaves: Iterable[Any]) -> tuple[Any, ...]:
        """Return the results of ``main``, composed of ``leaves``, the results of :attr:`flat`."""
        return nested_values(iter(leaves), self._results)

    def _donated(self, donate: Donate) -> set[tuple[int, ShapeIndex]]:
        parameters = self._config.signature.parameters
        donated = set()
        for each in donate:
            number, at = (each, ()) if isinstance(each, int) else (each[0], tuple(each[1]))
            shape = subshape(parameters[number], at) if 0 <= number < len(parameters) else None
            if shape is None:
                place = f" at {format_index(at)}" if at else ""
                raise InvalidInputError(
                    f"there is no parameter {number}{place} to donate: {self.name} has {len(parameters)}"
                )
            donated |= {(number, (*at, *index)) for index, _ in leaves(shape)}
        return donated

    def _taken(self, inputs: Sequence[Any], donated: set[tuple[int, ShapeIndex]]) -> list[Input]:
        parameters = self._config.signature.parameters
        if len(inputs) != len(parameters):
            raise InvalidInputError(
                f"{self.name} requires {len(parameters)} inputs, got {len(inputs)}{self._advice(len(inputs))}"
            )
        taken = []
        types = iter(self._types)
        for number, (value, shape) in enumerate(zip(inputs, parameters, strict=True)):
            for index, leaf in leaf_values(value, shape, f"input {number}"):
                which = f"input {number} at {format_index(index)}" if index else f"input {number}"
                taken.append(_input(number, index, leaf, (number, index) in donated, next(types), which))
        return taken

    def _advice(self, given: int) -> str:
        """JAX marks the number of the platform in programs for several of them (``jax/_src/export/_export.py``)."""
        attributes = main_of(self.module, self.name).attributes
        told = (str(attributes[name]) for name in ("arg_attrs",) if name in attributes)
        if given != len(self._types) - 1 or not any('"_platform_index"' in each for each in told):
            return ""
        return (
            ": the first is the number of the platform, as the program was exported for several; give it, or run the "
            "export itself, which knows their names (platform=, --platform)"
        )

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
            reports.append(OutputReport(index, placement, buffer.nbytes, *place, each.reason, each.moved))
        return tuple(reports)


def _input(number: int, index: ShapeIndex, value: Any, donated: bool, type_: ValueType, which: str) -> Input:
    """The buffer has no other reference to its memory."""
    if not isinstance(type_, ArgumentType):
        as_arrays(value, type_, which)
        return Input(number, index, None)
    if isinstance(value, Buffer):
        fitting(value, type_, which)
        return Input(number, index, value, donated or value.donate, _unfit(value))
    array = as_array(value, type_, which)
    buffer = Buffer(array)
    if not donated:
        return Input(number, index, buffer)
    if isinstance(value, np.ndarray) and array is not value:
        return Input(number, index, buffer, donated, "it does not have the type of the parameter, and was converted")
    del value, array
    return Input(number, index, buffer, donated, _unfit(buffer))


def _unfit(buffer: Buffer) -> str | None:
    memory = buffer.memory
    if memory is None:
        return None
    flags = memory.flags
    if not flags.writeable:
        return "it is read-only"
    if not flags.owndata:
        return "it is a view of the memory of another array"
    return None if flags.c_contiguous else "it is not contiguous"


def _level_of_caller() -> int:
    """Stack level of the first function outside of the toolkit, counted from the calling function."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("vhlo_tools."):
        level, frame = level + 1, frame.f_back
    return level


def _mapped(function: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        _mapped(function, each) if isinstance(each, tuple) else None if each is None else function(each)
        for each in values
    )
