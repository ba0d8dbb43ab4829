"""Tensors as text, as upstream's interpreter prints them.

Source: ``Tensor::print`` in ``stablehlo/reference/Tensor.cpp`` and ``Element::print`` in
``stablehlo/reference/Element.cpp``, both in openxla/stablehlo.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Context
from vhlo_tools.bindings.toolbox import Toolbox
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.interpreter import ArgumentType, Driver, TupleType, parse_tensor_type, parse_value_type
from vhlo_tools.program import load_program

__all__ = ["array_of", "elements_of", "tensor_text", "value_text"]

#: So many elements are printed at once: MLIR prints more than a hundred in hexadecimal.
_AT_ONCE: Final = 64

Array = np.ndarray[Any, Any]


def array_of(toolbox: Toolbox, attribute: str, kind: str) -> Array | None:
    """Return the elements of a dense attribute as an array; ``None`` if programs have no values of its type.

    Args:
        toolbox: The bindings.
        attribute: The attribute as MLIR prints it: of complex elements the bindings have none.
        kind: Its type.
    """
    text = f"func.func @main() -> {kind} {{ %0 = stablehlo.constant {attribute} return %0 : {kind} }}"
    try:
        (array,) = Driver(load_program(text, provider=toolbox.provider.prefix)).run([])
    except InvalidProgramError:
        return None
    return np.asarray(array)


def value_text(toolbox: Toolbox, context: Context, value: Any, kind: str, *, dense: bool = False) -> str:
    """Return a value as the interpreter prints it.

    Source, beside that of tensors: ``Tuple::print`` in ``stablehlo/reference/Value.cpp`` and ``Token::print`` in
    ``stablehlo/reference/Token.cpp`` in openxla/stablehlo.

    Args:
        toolbox: The bindings.
        context: A context.
        value: The tensor; ``None`` for a token; the values in a tuple.
        kind: Its type, as MLIR prints it.
        dense: Whether tensors are printed as dense attributes.
    """
    if value is None:
        return kind
    parsed = parse_value_type(kind)
    if isinstance(parsed, TupleType):
        parts = zip(value, parsed.parts, strict=True)
        inner = ",\n".join(value_text(toolbox, context, each, part.text, dense=dense) for each, part in parts)
        return f"{kind} (\n{inner}\n)" if inner else f"{kind} (\n)"
    return (dense_text if dense else tensor_text)(toolbox, context, value, kind)


def tensor_text(toolbox: Toolbox, context: Context, array: Array, kind: str) -> str:
    """Return a tensor as the interpreter prints it.

    Args:
        toolbox: The bindings.
        context: A context.
        array: The tensor.
        kind: Its type, as MLIR prints it, perhaps of dynamic shape.
    """
    texts = iter(elements_of(toolbox, context, array, kind, "[{}, {}]"))
    return f"{_static(kind, array)} {{{_nested(texts, array.shape, ())}}}"


def dense_text(toolbox: Toolbox, context: Context, array: Array, kind: str) -> str:
    """Return a tensor as a dense attribute (see :func:`tensor_text`)."""
    texts = elements_of(toolbox, context, array, kind, "({},{})")
    body = texts[0] if texts and len(set(texts)) == 1 else _listed(iter(texts), array.shape) if array.size else ""
    return f"dense<{body}> : {_static(kind, array)}"


def elements_of(toolbox: Toolbox, context: Context, array: Array, kind: str, pair: str) -> list[str]:
    """Return each element as MLIR prints it.

    Args:
        toolbox: The bindings.
        context: A context.
        array: The tensor.
        kind: Its type.
        pair: How a complex number is written, of both of its parts.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    element = parse_tensor_type(kind).storage
    if np.iscomplexobj(flat):
        part = element.removeprefix("complex<").removesuffix(">")
        parts = [_printed(toolbox, context, each, part) for each in (flat.real, flat.imag)]
        return [pair.format(*each) for each in zip(*parts, strict=True)]
    return _printed(toolbox, context, flat, element)


def _printed(toolbox: Toolbox, context: Context, flat: Array, element: str) -> list[str]:
    ir = toolbox.provider.ir
    kind = ir.Type.parse(element, context)
    texts: list[str] = []
    for start in range(0, flat.size, _AT_ONCE):
        part = np.ascontiguousarray(flat[start : start + _AT_ONCE])
        if part.dtype.isbuiltin != 1:
            part = part.view(f"u{part.dtype.itemsize}")
        attribute = ir.DenseElementsAttr.get(part, type=kind, shape=[part.size], context=context)
        body = str(attribute).partition("dense<")[2].rpartition("> : ")[0]
        texts += body[1:-1].split(", ") if body.startswith("[") else [body] * part.size
    return texts


def _static(kind: str, array: Array) -> str:
    """Return a type of tensors with the shape that the tensor has."""
    parsed: ArgumentType = parse_tensor_type(kind)
    sizes = "".join(f"{size}x" for size in array.shape)
    return kind if parsed.is_static else f"tensor<{sizes}{parsed.element}>"


def _nested(texts: Iterator[str], shape: Sequence[int], index: tuple[int, ...]) -> str:
    """Return the part of a tensor at an index, in brackets and lines."""
    is_last = not index or index[-1] == shape[len(index) - 1] - 1
    if len(index) == len(shape):
        return next(texts) + ("" if is_last else ", ")
    depth = len(index)
    inner = "".join(_nested(texts, shape, (*index, each)) for each in range(shape[depth]))
    end = "\n" + "  " * depth if is_last else ","
    return f"\n{'  ' * (depth + 1)}[{inner}]{end}"


def _listed(texts: Iterator[str], shape: Sequence[int]) -> str:
    if not shape:
        return next(texts)
    return f"[{', '.join(_listed(texts, shape[1:]) for _ in range(shape[0]))}]"
