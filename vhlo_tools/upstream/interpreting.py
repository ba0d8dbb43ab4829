"""Evaluation of programs, with the ops of ``check`` and ``interpreter`` as custom calls with handlers.

Source: ``stablehlo/tools/StablehloTranslateMain.cpp`` and ``stablehlo/reference/Api.cpp`` in openxla/stablehlo.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import FilePosition, MlirSession, Operation, elements_of, functions_of
from vhlo_tools.errors import VhloToolsError
from vhlo_tools.execution import (
    ArgumentType,
    CustomCall,
    Handler,
    Stepper,
    parse_tensor_type,
    parse_value_type,
    run_programs,
)
from vhlo_tools.program import Program
from vhlo_tools.records import dataclass
from vhlo_tools.upstream import tensor_text
from vhlo_tools.upstream.check_dialect import (
    CheckFailedError,
    ProbeFolder,
    constant_of,
    expect_almost_eq,
    expect_close,
    expect_eq,
)
from vhlo_tools.upstream.guard import note

_TOKEN: Final = "!stablehlo.token"
_TARGET: Final = "vhlo_tools.op."
#: The default tolerance of checks.
_TOLERANCE: Final = 1e-4
#: The default limit of checks in units in the last place.
_ULPS: Final = 1


class _ToldError(VhloToolsError):
    """An error that was already emitted at its location."""


@dataclass(frozen=True, slots=True)
class TypedArray:
    type_: str  # as MLIR prints it
    array: np.ndarray[Any, Any] | None  # None for a token, and for a value that numpy cannot represent


class Interpretation:
    """The evaluation of a module, which is rewritten; ``write`` receives the text that the program prints."""

    def __init__(
        self, toolbox: MlirSession, module: Any, name: str, probes: ProbeFolder, write: Callable[[str], None]
    ) -> None:
        self._toolbox = toolbox
        self._module = module
        self._name = name
        self._probes = probes
        self._write = write
        self._handlers: dict[str, Handler] = {}

    def run(self, inputs: Sequence[TypedArray]) -> list[TypedArray] | None:
        """Return the results of ``main``; ``None`` after an error, which was emitted."""
        functions = functions_of(self._module)
        if not functions:
            # Of VHLO there may be some.
            if not any(str(op.operation.name) == "vhlo.func_v1" for op in self._module.body.operations):
                return []
            self._module.operation.location.emit_error(
                "this is VHLO, and StableHLO is evaluated: give --deserialize before --interpret for portable artifacts"
            )
            return None
        main = functions.get("main")
        if main is None and len(functions) == 1:
            ((name, main),) = functions.items()
            self._toolbox.provider.rename_function(self._module, name, "main")
        if main is None:
            self._module.operation.location.emit_error("module must have entry func with name main")
            return None
        function = main.attributes["function_type"].value
        if fault := _misfit(inputs, [str(each) for each in function.inputs]):
            main.location.emit_error(fault)
            return None
        types = [_stored(str(each)) for each in function.results]
        for op in self._toolbox.provider.walk(self._module):
            if rewrite := _REWRITES.get(str(op.name)):
                rewrite(self, op)
        try:
            self._probes.clear()
        except OSError as error:
            self._tell(f"Failed to remove existing instrumentation metadata file: {error}")
            return None
        note(f"{self._name}: its evaluation")
        try:
            results = Stepper(self._program(), self._handlers, as_specified=True).run([each.array for each in inputs])
        except _ToldError:
            return None
        except VhloToolsError as error:
            self._tell(str(error))
            return None
        return [TypedArray(type_, array) for type_, array in zip(types, results, strict=True)]

    def _tell(self, message: str) -> None:
        """Emit an error, at the source position with which the message begins, if there is one."""
        context = self._module.context
        if match := re.fullmatch(rf"{re.escape(self._name)}:(\d+):(\d+): (.*)", message, re.DOTALL):
            place = FilePosition(self._name, int(match[1]), int(match[2]))
            self._toolbox.emit_error(context, match[3], place)
        else:
            self._toolbox.emit_error(context, message)

    def _program(self) -> Program:
        provider = self._toolbox.provider
        return Program(self._name, provider, lambda: provider.clone(self._module))

    # Ops as custom calls

    def replace(self, op: Operation, operands: Sequence[Any], handler: Handler) -> None:
        ir = self._toolbox.provider.ir
        target = f"{_TARGET}{len(self._handlers)}.{op.name}"
        location = op.location
        what = str(op.name)

        def telling(call: CustomCall, *arrays: Any) -> Any:
            try:
                return handler(call, *arrays)
            except (CheckFailedError, OSError) as error:
                location.emit_error(f"{what} failed: {error}")
                raise _ToldError(str(error)) from error

        with op.context:
            taken = [self._recast(op, each, _stored(str(each.type))) for each in operands]
            call = ir.Operation.create(
                "stablehlo.custom_call",
                results=[ir.Type.parse(_stored(str(each.type))) for each in op.results],
                operands=taken,
                attributes={"call_target_name": ir.StringAttr.get(target), "has_side_effect": ir.BoolAttr.get(True)},
                loc=location,
                ip=ir.InsertionPoint(op),
            )
            for result, replacement in zip(op.results, call.results, strict=True):
                result.replace_all_uses_with(self._recast(op, replacement, str(result.type)))
        op.operation.erase()
        self._handlers[target] = telling

    def _recast(self, op: Operation, value: Any, type_: str) -> Any:
        """Return a value bitcast to a type, before ``op``; the value itself if it has the type."""
        if str(value.type) == type_:
            return value
        ir = self._toolbox.provider.ir
        cast = ir.Operation.create(
            "stablehlo.bitcast_convert",
            results=[ir.Type.parse(type_)],
            operands=[value],
            loc=op.location,
            ip=ir.InsertionPoint(op),
        )
        return cast.results[0]

    def constant(self, op: Operation) -> Any:
        ir = self._toolbox.provider.ir
        value, type_ = constant_of(op)
        text = f'"stablehlo.constant"() {{value = {value}}} : () -> {type_}'
        constant = ir.Operation.parse(text, context=op.context)
        ir.InsertionPoint(op).insert(constant)
        return constant.results[0]

    def texts(self, op: Operation) -> Callable[[Any], list[str]]:
        type_, context = _type_text(op), op.context
        return lambda array: tensor_text.elements_of(self._toolbox, context, array, type_, "[{}, {}]")

    def compared(self, op: Operation, check: Callable[..., None], *limits: Any) -> None:
        """Rewrite a check of two values, or of a value and an attribute."""
        operands = list(op.operands)
        texts = self.texts(op)
        if len(operands) == 1:
            operands.append(self.constant(op))
        self.replace(op, operands, lambda _, actual, expected: check(actual, expected, texts, *limits))

    def probe(self, op: Operation) -> None:
        """Rewrite a probe, whose result is its operand."""
        identifier, type_ = str(op.attributes["probe_id"].value), _type_text(op)

        def keep(_: CustomCall, array: Any) -> Any:
            self._probes.write(identifier, type_, array)
            return array

        self.replace(op, op.operands, keep)

    def probed(self, op: Operation) -> None:
        """Rewrite a check of a value that a probe wrote."""
        identifier, type_ = str(op.attributes["probe_id"].value), _type_text(op)
        iteration, texts = int(_number(op, "iteration", 0)), self.texts(op)
        self.replace(op, op.operands, lambda _, array: self._probes.expect(identifier, iteration, type_, array, texts))

    def print(self, op: Operation) -> None:
        (operand,) = op.operands
        name, type_, context = operand.get_name(), _type_text(op), op.context

        def write(_: CustomCall, array: Any) -> None:
            self._write(f"{name} = {tensor_text.tensor_text(self._toolbox, context, array, type_)}\n")

        self.replace(op, op.operands, write)

    def run_parallel(self, op: Operation) -> None:
        rows = [[str(each.value) for each in elements_of(row)] for row in elements_of(op.attributes["programs"])]
        feed = [str(each.value) for each in elements_of(op.attributes["infeed"])] if "infeed" in op.attributes else []
        functions = functions_of(self._module)
        counts = [len(functions[name].attributes["function_type"].value.inputs) for row in rows for name in row]
        is_token = [str(each.type) == _TOKEN for each in op.operands]

        def run(_: CustomCall, *arrays: Any) -> list[Any]:
            given = iter(arrays)
            values = iter([None if token else next(given) for token in is_token])
            inputs = [[next(values) for _ in range(count)] for count in counts]
            results = run_programs(self._program(), rows, inputs, self._handlers, feed)
            return [each for device in results for each in device if each is not None]

        self.replace(op, op.operands, run)


def _misfit(inputs: Sequence[TypedArray], types: Sequence[str]) -> str | None:
    if len(inputs) != len(types):
        return (
            f"incorrect number of arguments specified, provided {len(inputs)} inputs but function expected {len(types)}"
        )
    for index, (value, type_) in enumerate(zip(inputs, types, strict=True)):
        wanted = parse_value_type(type_)
        array = value.array
        fits = isinstance(wanted, ArgumentType) and array is not None and wanted.takes(array.shape)
        # The type of the argument, with the shape of the input.
        shaped = parse_tensor_type(type_).with_shape(parse_tensor_type(value.type_).static_shape).text if fits else ""
        if not fits or parse_value_type(value.type_) != parse_value_type(shaped):
            return (
                f"invalid input argument type at index {index}, "
                f"input type was {value.type_} but entry function expected {type_}"
            )
    return None


def _stored(type_: str) -> str:
    """Quantized tensors have the type of their storage, as in upstream's program."""
    return parse_tensor_type(type_).text if "!quant." in type_ else type_


def _type_text(op: Operation) -> str:
    return _stored(str(op.operands[0].type))


def _number(op: Operation, name: str, default: float) -> Any:
    return op.attributes[name].value if name in op.attributes else default


def _almost_eq(interpretation: Interpretation, op: Operation) -> None:
    interpretation.compared(op, expect_almost_eq, float(_number(op, "tolerance", _TOLERANCE)))


def _close(interpretation: Interpretation, op: Operation) -> None:
    least = int(_number(op, "min_ulp_difference", 0))
    interpretation.compared(op, expect_close, least, int(_number(op, "max_ulp_difference", _ULPS)))


_REWRITES: Final[Mapping[str, Callable[[Interpretation, Operation], None]]] = {
    **dict.fromkeys(("check.expect_almost_eq", "check.expect_almost_eq_const"), _almost_eq),
    "check.expect_close": _close,
    **dict.fromkeys(
        ("check.expect_eq", "check.expect_eq_const"), lambda interpretation, op: interpretation.compared(op, expect_eq)
    ),
    "check.expect_serialized_eq": Interpretation.probed,
    "interpreter.print": Interpretation.print,
    "interpreter.probe": Interpretation.probe,
    "interpreter.run_parallel": Interpretation.run_parallel,
}
