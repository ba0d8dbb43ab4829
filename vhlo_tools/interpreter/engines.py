"""The engines: what runs a program of arrays, and in whose memory its results are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, Protocol

import numpy as np

from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.bindings.xla_client import DeviceArray, XlaProgram, compile_for_cpu, put_on_device, release_host_arrays
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.buffers import Buffer
from vhlo_tools.interpreter.donation import Aliased
from vhlo_tools.interpreter.driver import Driver, needs_driver
from vhlo_tools.interpreter.entry import main_of
from vhlo_tools.interpreter.handlers import Handler
from vhlo_tools.interpreter.probing import Probe
from vhlo_tools.interpreter.reference import evaluate
from vhlo_tools.interpreter.refining import refine_shapes
from vhlo_tools.interpreter.values import ArgumentType, parse_tensor_type
from vhlo_tools.program import Program

__all__ = ["ENGINES", "Engine", "EngineName"]

EngineName = Literal["reference", "xla"]
Values = Sequence[Buffer | None]
Ran = tuple[list[Buffer | None], Sequence[Aliased]]


class Engine(Protocol):
    """A program, ready to be run by an engine."""

    def execute(self, arguments: Values, aliased: Sequence[Aliased], probe: Probe | None = None) -> Ran:
        """Run it.

        Args:
            arguments: The inputs, ``None`` for a token. Those that are to be written over lose their memory to a
                result, and are deleted.
            aliased: Which results are written over which inputs, or over copies of them.
            probe: What keeps intermediate values.

        Returns:
            The results, in buffers of their own, and ``aliased`` as it came to pass.

        Raises:
            EngineError: If the engine cannot run it, or fails.
        """


class ReferenceEngine:
    """StableHLO's reference interpreter. Results that are written over inputs are put into their memory.

    Args:
        program: The program, whose ``main`` takes and gives arrays.
        handlers: What computes custom calls, by their targets.
    """

    def __init__(self, program: Program, handlers: Mapping[str, Handler] | None = None) -> None:
        self._program = program
        self._driver = Driver(program, handlers)
        self._is_walked = needs_driver(program)

    def execute_parallel(
        self, inputs: Sequence[Sequence[np.ndarray[Any, Any] | None]], replicas: int, partitions: int
    ) -> list[list[np.ndarray[Any, Any] | None]]:
        """Run it on several devices (see :meth:`Driver.run_parallel`)."""
        return self._driver.run_parallel(inputs, replicas, partitions)

    def execute(self, arguments: Values, aliased: Sequence[Aliased], probe: Probe | None = None) -> Ran:
        """Run it (see :meth:`Engine.execute`)."""
        arrays: list[Any] = [None if each is None else each.read() for each in arguments]
        memory = {}
        for each in aliased:
            if each.reason is not None or _given(arguments, each).device is not None:
                # What is on a device comes to the host by this, and may be written over there.
                arrays[each.input] = arrays[each.input].copy()
            memory[each.output] = arrays[each.input]
        walked = self._is_walked or probe is not None
        results = self._driver.run(arrays, probe) if walked else list(evaluate(self._program, arrays))
        done = []
        for each in aliased:
            result, taken = results[each.output], memory[each.output]
            if taken.nbytes == result.nbytes:
                results[each.output] = _written(result, taken)
            elif each.reason is None:
                # In numpy every element takes a byte at least, where on devices some are packed.
                each = replace(each, reason=f"it takes {taken.nbytes} bytes in numpy, and the output {result.nbytes}")
            if each.reason is None:
                _given(arguments, each).delete()
            done.append(each)
        return [None if each is None else Buffer(each) for each in results], done


def _given(arguments: Values, aliased: Aliased) -> Buffer:
    """Return an input that an output is aliased with, which no token is."""
    buffer = arguments[aliased.input]
    assert buffer is not None
    return buffer


def _written(result: np.ndarray[Any, Any], memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return ``result`` in the memory of an array that takes as many bytes."""
    if (memory.dtype, memory.shape) != (result.dtype, result.shape):
        memory = memory.reshape(-1).view(np.uint8).view(result.dtype).reshape(result.shape)
    np.copyto(memory, result)
    return memory


class XlaEngine:
    """XLA's compiler for the CPU. Results that are written over inputs are in the memory of these on its device.

    Args:
        program: The program, whose ``main`` takes and gives arrays.
        handlers: What computes custom calls, by their targets.
    """

    def __init__(self, program: Program, handlers: Mapping[str, Handler] | None = None) -> None:
        if handlers:
            raise EngineError(f"{program.name}: handlers of custom calls are for the engine reference")
        self._program = program
        self._compiled: dict[tuple[tuple[int, ...], ...], XlaProgram] = {}

    def execute(self, arguments: Values, aliased: Sequence[Aliased], probe: Probe | None = None) -> Ran:
        """Run it (see :meth:`Engine.execute`)."""
        if probe is not None:
            raise EngineError(f"{self._program.name}: XLA shows no intermediate values: probe on the engine reference")
        buffers = [each for each in arguments if each is not None]
        if len(buffers) != len(arguments):
            raise EngineError(f"{self._program.name} takes tokens, which XLA for the CPU does not")
        compiled = self._compile(tuple(each.shape for each in buffers))
        reasons = {each.input: each.reason for each in aliased}
        try:
            placed = [
                self._place(each, own=number in reasons, given=number in reasons and reasons[number] is None)
                for number, each in enumerate(buffers)
            ]
            before = {each.input: placed[each.input].address for each in aliased}
            results = compiled.execute(placed)
        except XlaFailure as failure:
            raise EngineError(f"{self._program.name} failed in XLA: {failure}") from failure
        finally:
            # What was given away is gone, however it ended.
            for argument in buffers:
                if argument.device is not None and argument.device.is_deleted:
                    argument.delete()
        del placed
        release_host_arrays()
        done = []
        for each in aliased:
            if each.reason is None:
                buffers[each.input].delete()
                if results[each.output].address != before[each.input]:
                    each = replace(each, reason="XLA wrote it elsewhere")
            done.append(each)
        return [Buffer.of_device(each) for each in results], done

    @staticmethod
    def _place(buffer: Buffer, *, own: bool, given: bool) -> DeviceArray:
        """Return an input on the device: as it is there if it may be used up or is only read, or else a copy."""
        if buffer.device is not None and (given or not own):
            return buffer.device
        return put_on_device(buffer.read(), own=own)

    def _compile(self, shapes: tuple[tuple[int, ...], ...]) -> XlaProgram:
        if (known := self._compiled.get(shapes)) is not None:
            return known
        program = self._program
        module = program.provider.as_module(program.load())
        arguments, _ = _signature(main_of(module, program.name))
        refine_shapes(program, module, [each.with_shape(shape) for each, shape in zip(arguments, shapes, strict=True)])
        _, results = _signature(main_of(module, program.name))
        try:
            compiled = compile_for_cpu(module, [(_static(each), each.dtype) for each in results])
        except XlaFailure as failure:
            raise EngineError(f"{program.name} is not compiled by XLA: {failure}") from failure
        self._compiled[shapes] = compiled
        return compiled


def _static(kind: ArgumentType) -> tuple[int, ...]:
    sizes = tuple(size for size in kind.shape if size is not None)
    if len(sizes) != len(kind.shape):
        raise EngineError(f"the inputs do not resolve the shape of a result, {kind.text}")
    return sizes


def _signature(main: Any) -> tuple[list[ArgumentType], list[ArgumentType]]:
    kind = main.attributes["function_type"].value
    return [parse_tensor_type(str(each)) for each in kind.inputs], [
        parse_tensor_type(str(each)) for each in kind.results
    ]


#: What makes an engine of a program.
ENGINES: Final[dict[EngineName, Callable[[Program, Mapping[str, Handler] | None], Engine]]] = {
    "reference": ReferenceEngine,
    "xla": XlaEngine,
}
