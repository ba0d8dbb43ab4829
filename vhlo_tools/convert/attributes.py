"""The attributes of a program that VHLO has to find a form for, because no op of VHLO knows them by name.

They are the discardable ones of ops, functions, arguments and results, and whatever stands in a dictionary such as
``backend_config``. Those of a module stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from vhlo_tools.bindings import MLIRFailure, ModuleOp, Operation, Provider
from vhlo_tools.convert.passes import to_vhlo
from vhlo_tools.dialect import find_op
from vhlo_tools.program import Program

__all__ = ["Held", "Probe", "class_of", "held_attributes", "leaves"]

# Ops of other dialects keep their attributes as they are.
_PORTABLE: Final = ("func", "stablehlo")
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
        if dialect not in _PORTABLE:
            continue
        attributes = op.attributes
        is_function = op.name == "func.func"
        symbol = f"@{attributes['sym_name'].value}" if is_function else ""
        for name, attribute in _named(attributes):
            if _is_inherent(short, name, attribute):
                continue
            holder = symbol or str(op.name)
            yield Held(op, holder, "function" if is_function else "op", holder, name, attribute)
        for key, word in (("arg_attrs", "argument"), ("res_attrs", "result")) if is_function else ():
            for number, dictionary in enumerate(attributes[key]) if key in attributes else ():
                for name, attribute in _named(dictionary):
                    path = f"{symbol} {word} {number}"
                    yield Held(op, f"{word} {number} of {symbol}", word, path, name, attribute)


def leaves(attribute: Any) -> Iterator[Any]:
    """Yield what ``attribute`` is made of: what stands in lists and dictionaries, however deep, or itself."""
    pending = [attribute]
    while pending:
        each = pending.pop()
        kind = class_of(each)
        if kind == "ArrayAttr":
            pending += [one for index in reversed(range(len(each))) for one in _at(each, index)]
        elif kind == "DictAttr":
            pending += reversed([value for _, value in _named(each)])
        else:
            yield each


def class_of(attribute: Any) -> str:
    """Return the class that the bindings have for an attribute."""
    return type(attribute).__name__


def _is_inherent(short: str, name: str, attribute: Any) -> bool:
    """Tell whether an op knows an attribute, so that it has a form whatever it holds."""
    kind = class_of(attribute)
    if name in _names_of(short):
        # The bindings have no class for resources; what has one may be a large constant, and is not printed.
        return kind != "DictAttr" and not (kind == "Attribute" and str(attribute).startswith("dense_resource<"))
    # What is one attribute in StableHLO, such as the dimension numbers of a dot, may be several in VHLO.
    return "." not in name and str(attribute).startswith("#stablehlo")


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


@cache
def _names_of(short: str) -> frozenset[str]:
    """Return the names of the attributes that an op of VHLO has by its definition in any version."""
    op = find_op(short)
    return frozenset(name for version in op.versions for name in version.attributes) if op else frozenset()


def _named(attributes: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and attributes; what iterating over the bindings' own map gives differs between releases."""
    for each in attributes:
        name = each if isinstance(each, str) else each.name
        # Not `each.attr`, which ends the process where this raises.
        yield from ((name, attribute) for attribute in _at(attributes, name))


def _at(holder: Any, key: Any) -> Iterator[Any]:
    """Yield what stands at ``key``, but for complex tensors and locations, for which the bindings have no class."""
    try:
        yield holder[key]
    except TypeError:
        return
