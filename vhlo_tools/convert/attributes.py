"""The attributes of a program that VHLO has to find a form for, because no op of VHLO knows them by name.

They are the discardable ones of ops, functions, arguments and results, and whatever stands in a dictionary such as
``backend_config``. Those of a module stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from vhlo_tools.bindings import MLIRFailure, ModuleOp, Operation, Provider, class_of, named_attributes
from vhlo_tools.convert.passes import to_vhlo
from vhlo_tools.program import PORTABLE, Program, is_inherent

__all__ = ["Held", "Probe", "held_attributes"]

_TYPED: Final = frozenset({"BoolAttr", "DenseFPElementsAttr", "DenseIntElementsAttr", "FloatAttr", "IntegerAttr"})


class Held(NamedTuple):
    """An attribute, and what holds it.

    Attributes:
        op: The op.
        holder: What of the op holds it, in words: ``argument 0 of @main``.
        word: What that is: ``argument``, ``function``, ``op`` or ``result``.
        path: The same as differences between artifacts spell it: ``@main argument 0``.
        name: The name of the attribute.
        attribute: The attribute.
    """

    op: Operation
    holder: str
    word: str
    path: str
    name: str
    attribute: Any


def held_attributes(program: Program, module: ModuleOp) -> Iterator[Held]:
    """Yield the attributes of ``module``, a copy of ``program`` that the caller holds while it looks at them.

    Constants in resources are among them, although their ops know them: these have no form either.
    """
    for op in program.provider.walk(module):
        dialect, _, short = str(op.name).partition(".")
        if dialect not in PORTABLE:
            continue
        attributes = op.attributes
        is_function = op.name == "func.func"
        symbol = f"@{attributes['sym_name'].value}" if is_function else ""
        for name, attribute in named_attributes(attributes):
            if is_inherent(short, name, attribute):
                continue
            holder = symbol or str(op.name)
            yield Held(op, holder, "function" if is_function else "op", holder, name, attribute)
        for key, word in (("arg_attrs", "argument"), ("res_attrs", "result")) if is_function else ():
            for number, dictionary in enumerate(attributes[key]) if key in attributes else ():
                for name, attribute in named_attributes(dictionary):
                    path = f"{symbol} {word} {number}"
                    yield Held(op, f"{word} {number} of {symbol}", word, path, name, attribute)


class Probe:
    """Asks the installed library which attributes have a form in VHLO.

    Args:
        provider: The bindings.
        allow_other_dialects: Whether attributes of other dialects may stay.
    """

    def __init__(self, provider: Provider, *, allow_other_dialects: bool) -> None:
        self._provider = provider
        self._pipeline = to_vhlo(allow_other_dialects=allow_other_dialects)
        self._known: dict[object, bool] = {}

    def refuses(self, attribute: Any) -> bool:
        """Tell whether the library finds no form for ``attribute``."""
        kind = class_of(attribute)
        # Of numbers and strings only the type matters; there may be very many.
        key = (kind, str(attribute.type)) if kind in _TYPED or kind == "StringAttr" else attribute
        if key not in self._known:
            self._known[key] = self._tried(attribute)
        return self._known[key]

    def _tried(self, attribute: Any) -> bool:
        ir = self._provider.ir
        module = ir.Module.parse("func.func private @probe()", attribute.context)
        module.body.operations[0].attributes["probe.attribute"] = attribute
        try:
            self._provider.run_passes(module, self._pipeline, verify=False)
        except MLIRFailure:
            return True
        return False
