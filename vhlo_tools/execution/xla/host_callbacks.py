"""Custom calls of a program that runs on XLA, computed by Python functions.

XLA calls these as jaxlib's host callbacks, and does not check what they return, so the results are checked first. An
exception of a function must not pass through XLA, which would turn it into a page of text: it is kept until the run has
ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import (
    CALLBACK_TARGET,
    CALLEES,
    NARROW_ELEMENTS,
    Operation,
    Provider,
    function_of,
    is_lapack,
    missing_part,
    missing_routine,
    register_lapack,
)
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.call_rules import form_of_op
from vhlo_tools.execution.handlers import CustomCall, Handler, call_of, checked_results, handler_advice, refusal
from vhlo_tools.execution.known_targets import RULES, reason_against, reserved_reason
from vhlo_tools.execution.op_traits import CONTROL_FLOW
from vhlo_tools.execution.reference.known_calls import KNOWN_CALLS, expanded_by_xla, lapack
from vhlo_tools.execution.values import ArgumentType, LeafType, TokenType, leaf_types, parse_value_type
from vhlo_tools.program import Program, place_of

#: Ops whose regions XLA runs in sequence. For all other regions it generates code for many elements at once, and
#: crashes on custom calls in them.
_RUN_AS_THEY_STAND: Final = CONTROL_FLOW | {"builtin.module", "func.func", "sdy.manual_computation"}
#: Attributes that specify the calling convention of a custom call, and not its meaning.
_CONVENTIONS: Final = ("called_computations", "mhlo.backend_config", "operand_layouts", "result_layouts")
_ALIASES: Final = "output_operand_aliases"
#: Types of elements of which XLA holds several in a byte.
_NARROW: Final = re.compile(r"u?i[24]|f4E2M1FN")
_MARK: Final = re.compile(r"the handler failed \(failure (\d+)\)")


class Callbacks:
    """``lenient`` continues with zeros after a failure.

    If one of several devices stops, the others wait for it in their next collective until XLA crashes the process.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.functions: list[Callable[..., tuple[Any, ...]]] = []
        self._lenient = lenient
        self._numbers = count()
        self._failures: dict[int, BaseException] = {}

    def add(self, call: CustomCall, handler: Handler, operands: Sequence[LeafType], types: Sequence[LeafType]) -> int:
        """``operands`` and results are those that XLA passes and expects; returns the index of the function."""

        def function(*given: Any) -> tuple[Any, ...]:
            # They come from a child process, which may send anything.
            if len(given) != len(operands) or not all(map(_fits, given, operands)):
                raise EngineError(f"{call}: XLA passes operands of other types")
            arrays = [each for each in given if each is not None]
            for each in arrays:
                each.flags.writeable = False
            try:
                results = iter(_computed(call, handler, arrays))
            except BaseException as error:
                number = next(self._numbers)
                self._failures[number] = error
                if not self._lenient:
                    raise RuntimeError(f"the handler failed (failure {number})") from None
                results = iter([np.zeros([size or 0 for size in each.shape], each.dtype) for each in call.results])
            return tuple(None if isinstance(each, TokenType) else next(results) for each in types)

        self.functions.append(function)
        return len(self.functions) - 1

    def raise_failure(self, said: str | None = None) -> None:
        """``said``, the message of XLA, contains the number of the failure; by default any failure is raised."""
        numbers = list(self._failures) if said is None else [int(each) for each in _MARK.findall(said)]
        found = [error for number in numbers if (error := self._failures.pop(number, None)) is not None]
        if found:
            raise found[0]


def _computed(call: CustomCall, handler: Handler, arrays: list[np.ndarray[Any, Any]]) -> tuple[Any, ...]:
    try:
        returned = handler(call, *arrays)
    except EngineError:
        raise
    except Exception as error:
        raise EngineError(f"{call}: its handler raised {type(error).__name__}: {error}") from error
    return checked_results(call, returned)


def _fits(given: Any, type_: LeafType) -> bool:
    if isinstance(type_, TokenType):
        return given is None
    return isinstance(given, np.ndarray) and (given.dtype, given.shape) == (type_.dtype, type_.static_shape)


def take_calls(
    program: Program, module: Any, handlers: Mapping[str, Handler], callbacks: Callbacks, own: Collection[str] = ()
) -> bool:
    """In place; ``own`` targets are removed by XLA before code generation. Returns whether LAPACK is left to XLA."""
    provider = program.provider
    calls = [op for op in provider.walk(module) if str(op.name) == "stablehlo.custom_call"]
    within = _within_bodies(provider, module) if calls else {}
    configurations: dict[str, str] = {}
    has_lapack = False
    with module.context:
        for op in calls:
            call = call_of(op)
            call, target = replace(call, location=place_of(call.location, program.name)), call.target
            handler = handlers.get(target)
            if target in own and handler is None:
                # There are no rules for calls that only the partitioner knows.
                if target in RULES:
                    _check(op, call, program.name, handlers)
                continue
            if body := within.get(function_of(op)) or _body_around(op):
                raise EngineError(
                    f"{call}: XLA does not support custom calls in the body of {body}: compute all of {body} in the "
                    f"handler, or use the engine reference"
                )
            if handler is None:
                _check(op, call, program.name, handlers)
                handler = _own_handler(op, target, configurations)
                # XLA would remove a call of the toolkit, such as an assertion, as unused.
                if handler is not None and (not len(op.results) or target.startswith("check.")):
                    op.attributes["has_side_effect"] = provider.ir.BoolAttr.get(True)
            if handler is not None:
                operands, types = (
                    tuple(leaf_types(parse_value_type(str(each.type)) for each in side))
                    for side in (op.operands, op.results)
                )
                _check_elements(provider, op, program.name, (*operands, *types))
                _call_back(provider, op, callbacks.add(call, handler, operands, types))
            elif is_lapack(target):
                _prepare_lapack(provider, op, call)
                has_lapack = True
    return has_lapack


def _check(op: Operation, call: CustomCall, name: str, handlers: Mapping[str, Handler]) -> None:
    if call.target not in RULES:
        known = f"there are handlers for {', '.join(sorted(handlers))}" if handlers else "no handlers were given"
        reserved = reserved_reason(call.target)
        raise EngineError(
            f"{call}: {f'{reserved}: ' if reserved else ''}neither XLA nor vhlo_tools implements it, and {known}: give "
            f"{handler_advice(call.target)}"
        )
    if reason := reason_against(form_of_op(op)):
        raise refusal(op, name, reason, "the engine xla")


def _check_elements(provider: Provider, op: Operation, name: str, types: Iterable[LeafType]) -> None:
    """The installed XLA may pass narrow elements wrongly to a handler, and its results back."""
    narrow = [each.text for each in types if isinstance(each, ArgumentType) and _NARROW.fullmatch(each.storage)]
    if narrow and (missing := missing_part(provider, NARROW_ELEMENTS)) is not None:
        reason = f"its handler would get other values of {narrow[0]}; {missing}, or run it on the engine reference"
        raise refusal(op, name, reason, "the engine xla")


def _own_handler(op: Operation, target: str, configurations: dict[str, str]) -> Handler | None:
    """``None`` if XLA computes the call. XLA expands all calls of Eigh on one type like the first one."""
    if target == "Eigh":
        text = str(op.attributes["backend_config"])
        return None if configurations.setdefault(str(op.operands[0].type), text) == text else expanded_by_xla
    types = [parse_value_type(str(each.type)) for each in op.operands]
    takes_nothing = any(isinstance(each, ArgumentType) and 0 in each.shape for each in types)
    return lapack if is_lapack(target) and takes_nothing else KNOWN_CALLS.get(target)


def _prepare_lapack(provider: Provider, op: Operation, call: CustomCall) -> None:
    """Writes the attributes where XLA reads them."""
    if call.target not in register_lapack():
        raise EngineError(f"{call}: {missing_routine(call.target)}")
    ir = provider.ir
    if "mhlo.backend_config" in op.attributes:
        op.attributes["backend_config"] = op.attributes["mhlo.backend_config"]
        del op.attributes["mhlo.backend_config"]
    elif "backend_config" not in op.attributes:
        op.attributes["backend_config"] = ir.DictAttr.get({})
    op.attributes["api_version"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4)


def _call_back(provider: Provider, op: Operation, index: int) -> None:
    ir = provider.ir
    # XLA crashes on aliases of tokens, and of no results.
    types = [parse_value_type(str(each.type)) for each in (*op.operands, *op.results)]
    has_array_aliases = bool(len(op.results)) and all(isinstance(each, ArgumentType) for each in types)
    for name in _CONVENTIONS if has_array_aliases else (*_CONVENTIONS, _ALIASES):
        if name in op.attributes:
            del op.attributes[name]
    bits = ir.IntegerType.get_signless(32), ir.IntegerType.get_unsigned(64)
    op.attributes["api_version"] = ir.IntegerAttr.get(bits[0], 4)
    op.attributes["backend_config"] = ir.DictAttr.get({"index": ir.IntegerAttr.get(bits[1], index)})
    op.attributes["call_target_name"] = ir.StringAttr.get(CALLBACK_TARGET)


def _body_around(op: Any) -> str | None:
    """The op whose region contains ``op``, if XLA does not run that region in sequence."""
    parent = op.operation.parent
    while parent is not None:
        if parent.name not in _RUN_AS_THEY_STAND:
            return str(parent.name)
        parent = parent.parent
    return None


def _within_bodies(provider: Provider, module: Any) -> dict[str, str]:
    """Functions called from regions that XLA does not run in sequence, with the ops of these."""
    calls = [op for op in provider.walk(module) if str(op.name) in CALLEES]
    within: dict[str, str] = {}
    before = -1
    while before != len(within):
        before = len(within)
        for op in calls:
            if body := _body_around(op) or within.get(function_of(op)):
                within.setdefault(str(op.attributes[CALLEES[str(op.name)]].value), body)
    return within
