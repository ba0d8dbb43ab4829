"""Custom calls of a program that XLA runs, computed by functions in Python.

XLA calls back what jaxlib calls a host callback, and believes whatever it returns: so that is checked first. Nothing
that a function raises may pass through XLA, which makes a page of text of it: it waits here until the run has ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final, NoReturn

import numpy as np

from vhlo_tools.bindings import Operation, Provider
from vhlo_tools.bindings.functions import CALLEES, function_of
from vhlo_tools.bindings.lapack import is_lapack, register_lapack
from vhlo_tools.bindings.xla_client import CALLBACK_TARGET
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.handlers import CustomCall, Handler, call_of, checked_results
from vhlo_tools.interpreter.known_calls import KNOWN_CALLS
from vhlo_tools.interpreter.lapack import lapack
from vhlo_tools.interpreter.refusals import refusal
from vhlo_tools.interpreter.values import ArgumentType, TokenType, TupleType, ValueType, parse_value_type
from vhlo_tools.interpreter.xla.hazards import hazard_of_call
from vhlo_tools.program import Program, place_of

__all__ = ["Callbacks", "take_calls"]

#: Ops whose regions XLA runs as they stand. Of any other region it makes code for many elements at once, and ends the
#: process over a custom call within.
_RUN_AS_THEY_STAND: Final = frozenset(
    {"builtin.module", "func.func", "stablehlo.case", "stablehlo.if", "stablehlo.while"}
)
#: What says how a custom call is called, and nothing of its meaning.
_CONVENTIONS: Final = ("called_computations", "mhlo.backend_config", "operand_layouts", "result_layouts")
_MARK: Final = re.compile(r"the handler failed \(failure (\d+)\)")


class Callbacks:
    """Functions that XLA calls for the custom calls of a program, and what they raised.

    Args:
        lenient: Whether to go on with zeros after a failure: where one of several devices ends, the others wait for it
            in their next collective, and XLA ends the process when they have waited for long.

    Attributes:
        functions: By their index.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.functions: list[Callable[..., tuple[Any, ...]]] = []
        self._lenient = lenient
        self._numbers = count()
        self._failures: dict[int, BaseException] = {}

    def add(self, call: CustomCall, handler: Handler, tokens: Sequence[bool]) -> int:
        """Add a custom call.

        Args:
            call: The call.
            handler: What computes it.
            tokens: For each result that XLA wants, whether it is a token.

        Returns:
            Its index.
        """

        def function(*operands: Any) -> tuple[Any, ...]:
            arrays = [_read_only(each) for each in operands if each is not None]
            try:
                results = iter(_computed(call, handler, arrays))
            except BaseException as error:
                number = next(self._numbers)
                self._failures[number] = error
                if not self._lenient:
                    raise RuntimeError(f"the handler failed (failure {number})") from None
                results = iter([np.zeros([size or 0 for size in each.shape], each.dtype) for each in call.results])
            return tuple(None if token else next(results) for token in tokens)

        self.functions.append(function)
        return len(self.functions) - 1

    def raise_failure(self, said: str | None = None) -> None:
        """Raise what a handler raised, if one did.

        Args:
            said: What XLA said of the run, which names the failure; by default any.
        """
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


def _read_only(operand: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an operand as nobody can change it."""
    operand.flags.writeable = False
    return operand


def take_calls(
    program: Program,
    module: Any,
    handlers: Mapping[str, Handler],
    callbacks: Callbacks,
    own: Collection[str] = (),
) -> dict[str, CustomCall]:
    """Have the custom calls of ``module`` that have a handler computed by it, in place.

    Args:
        program: The program that it is.
        module: The module, of static shapes.
        handlers: The handlers, by the targets of calls; they go before what XLA and the toolkit know.
        callbacks: Gets what computes them.
        own: Targets of calls that XLA takes out of the program before it makes code of it.

    Returns:
        For the target of each call that is left to XLA the first of its calls.

    Raises:
        EngineError: If a call stands where XLA cannot make it.
        MissingExtraError: If one needs scipy, and that is not installed.
    """
    left: dict[str, CustomCall] = {}
    provider = program.provider
    calls = [op for op in provider.walk(module) if str(op.name) == "stablehlo.custom_call"]
    within = _within_bodies(provider, module) if calls else {}
    with module.context:
        for op in calls:
            target = str(op.attributes["call_target_name"].value)
            handler = handlers.get(target) or KNOWN_CALLS.get(target)
            if handler is None and is_lapack(target) and _takes_nothing(op):
                handler = lapack
            call = call_of(op)
            call = replace(call, location=place_of(call.location, program.name))
            if target in own and target not in handlers:
                left.setdefault(target, call)
                continue
            if body := within.get(function_of(op)) or _body_around(op):
                _refuse(call, body)
            if handler is not None:
                kinds = [parse_value_type(str(each.type)) for each in op.results]
                _call_back(provider, op, callbacks.add(call, handler, tuple(_tokens(kinds))))
            elif hazard := hazard_of_call(op):
                raise refusal(op, program.name, hazard, "the engine xla")
            else:
                if is_lapack(target):
                    register_lapack()
                left.setdefault(target, call)
    return left


def _takes_nothing(op: Operation) -> bool:
    """Tell whether a call takes an array without elements."""
    kinds = [parse_value_type(str(each.type)) for each in op.operands]
    return any(isinstance(each, ArgumentType) and 0 in each.shape for each in kinds)


def _call_back(provider: Provider, op: Operation, index: int) -> None:
    ir = provider.ir
    for name in _CONVENTIONS:
        if name in op.attributes:
            del op.attributes[name]
    bits = ir.IntegerType.get_signless(32), ir.IntegerType.get_unsigned(64)
    op.attributes["api_version"] = ir.IntegerAttr.get(bits[0], 4)
    op.attributes["backend_config"] = ir.DictAttr.get({"index": ir.IntegerAttr.get(bits[1], index)})
    op.attributes["call_target_name"] = ir.StringAttr.get(CALLBACK_TARGET)


def _tokens(kinds: Iterable[ValueType]) -> Iterator[bool]:
    """Yield for each leaf of results whether it is a token: XLA asks for what is in tuples one by one."""
    for kind in kinds:
        if isinstance(kind, TupleType):
            yield from _tokens(kind.parts)
        else:
            yield isinstance(kind, TokenType)


def _body_around(op: Any) -> str | None:
    """Return the op in whose region ``op`` stands, if XLA does not run that as it stands."""
    parent = op.operation.parent
    while parent is not None:
        if parent.name not in _RUN_AS_THEY_STAND:
            return str(parent.name)
        parent = parent.parent
    return None


def _within_bodies(provider: Provider, module: Any) -> dict[str, str]:
    """Return the functions that are called from regions that XLA does not run as they stand, and from which."""
    calls = [op for op in provider.walk(module) if str(op.name) in CALLEES]
    within: dict[str, str] = {}
    before = -1
    while before != len(within):
        before = len(within)
        for op in calls:
            if body := _body_around(op) or within.get(function_of(op)):
                within.setdefault(str(op.attributes[CALLEES[str(op.name)]].value), body)
    return within


def _refuse(call: CustomCall, body: str) -> NoReturn:
    raise EngineError(
        f"{call}: XLA makes no custom calls in the body of {body}: let the handler compute what {body} does, or take "
        "the engine reference"
    )
