"""The attributes of a program that VHLO must represent generically, because no VHLO op defines them.

They are the discardable attributes of ops, functions, arguments and results, and the contents of dictionaries such as
``backend_config``. Attributes of a module are written unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from vhlo_tools.bindings import MLIRFailure, ModuleOp, Operation, Provider, class_of, named_attributes
from vhlo_tools.convert.passes import to_vhlo
from vhlo_tools.program import PORTABLE, Program, is_inherent

_TYPED: Final = frozenset({"BoolAttr", "DenseFPElementsAttr", "DenseIntElementsAttr", "FloatAttr", "IntegerAttr"})


class Held(NamedTuple):
    op: Operation
    holder: str  # owner within the op, such as "argument 0 of @main"
    word: str  # "argument", "function", "op" or "result"
    path: str  # of the owner in differences between artifacts, such as "@main argument 0"
    name: str
    attribute: Any


def held_attributes(program: Program, module: ModuleOp) -> Iterator[Held]:
    """The caller must keep ``module``, a copy of ``program``, alive in the meantime.

    Constants in resources are included, although they are inherent attributes: they have no form in VHLO either.
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


class AttributeProbe:
    """Tries which attributes the installed library can represent in VHLO."""

    def __init__(self, provider: Provider, *, allow_other_dialects: bool) -> None:
        self._provider = provider
        self._pipeline = to_vhlo(allow_other_dialects=allow_other_dialects)
        self._known: dict[object, bool] = {}

    def refuses(self, attribute: Any) -> bool:
        kind = class_of(attribute)
        # For numbers and strings only the type matters; this limits the number of trials.
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
