"""Text of tensors, as upstream's interpreter prints them.

Source: ``Tensor::print`` in ``stablehlo/reference/Tensor.cpp`` and ``Element::print`` in
``stablehlo/reference/Element.cpp``, both in openxla/stablehlo.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Context, MlirSession
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.execution import ArgumentType, Stepper, TupleType, parse_tensor_type, parse_value_type
from vhlo_tools.program import load_program

#: The number of elements that are printed at once: MLIR prints more than a hundred in hexadecimal.
_AT_ONCE: Final = 64

Array = np.ndarray[Any, Any]


def array_of(toolbox: MlirSession, attribute: str, type_: str) -> Array | None:
    """Return the elements of a dense attribute; ``None`` if its type is not valid for values of programs.

    The attribute is text, as MLIR prints it, because the bindings have none with complex elements.
    """
    text = f"func.func @main() -> {type_} {{ %0 = stablehlo.constant {attribute} return %0 : {type_} }}"
    try:
        (array,) = Stepper(load_program(text, provider=toolbox.provider.prefix)).run([])
    except InvalidProgramError:
        return None
    return np.asarray(array)


def value_text(toolbox: MlirSession, context: Context, value: Any, type_: str, *, dense: bool = False) -> str:
    """Format a value: a tensor, ``None`` for a token, or the elements of a tuple.

    Sources, in addition to those of tensors: ``Tuple::print`` in ``stablehlo/reference/Value.cpp`` and ``Token::print``
    in ``stablehlo/reference/Token.cpp`` in openxla/stablehlo.
    """
    if value is None:
        return type_
    parsed = parse_value_type(type_)
    if isinstance(parsed, TupleType):
        parts = zip(value, parsed.parts, strict=True)
        inner = ",\n".join(value_text(toolbox, context, each, part.text, dense=dense) for each, part in parts)
        return f"{type_} (\n{inner}\n)" if inner else f"{type_} (\n)"
    return (dense_text if dense else tensor_text)(toolbox, context, value, type_)


def tensor_text(toolbox: MlirSession, context: Context, array: Array, type_: str) -> str:
    """``type_`` is as MLIR prints it, and may have a dynamic shape."""
    texts = iter(elements_of(toolbox, context, array, type_, "[{}, {}]"))
    return f"{_static(type_, array)} {{{_nested(texts, array.shape, ())}}}"


def dense_text(toolbox: MlirSession, context: Context, array: Array, type_: str) -> str:
    texts = elements_of(toolbox, context, array, type_, "({},{})")
    body = texts[0] if texts and len(set(texts)) == 1 else _listed(iter(texts), array.shape) if array.size else ""
    return f"dense<{body}> : {_static(type_, array)}"


def elements_of(toolbox: MlirSession, context: Context, array: Array, type_: str, pair: str) -> list[str]:
    """Format each element as MLIR prints it; ``pair`` is the format of a complex number, with both of its parts."""
    flat = np.ascontiguousarray(array).reshape(-1)
    element = parse_tensor_type(type_).storage
    if np.iscomplexobj(flat):
        part = element.removeprefix("complex<").removesuffix(">")
        parts = [_printed(toolbox, context, each, part) for each in (flat.real, flat.imag)]
        return [pair.format(*each) for each in zip(*parts, strict=True)]
    return _printed(toolbox, context, flat, element)


def _printed(toolbox: MlirSession, context: Context, flat: Array, element: str) -> list[str]:
    ir = toolbox.provider.ir
    type_ = ir.Type.parse(element, context)
    texts: list[str] = []
    for start in range(0, flat.size, _AT_ONCE):
        part = np.ascontiguousarray(flat[start : start + _AT_ONCE])
        if part.dtype == np.bool_:
            attribute = toolbox.provider.dense_elements(context, part)
        else:
            if part.dtype.isbuiltin != 1:
                part = part.view(f"u{part.dtype.itemsize}")
            attribute = ir.DenseElementsAttr.get(part, type=type_, shape=[part.size], context=context)
        body = str(attribute).partition("dense<")[2].rpartition("> : ")[0]
        texts += body[1:-1].split(", ") if body.startswith("[") else [body] * part.size
    return texts


def _static(type_: str, array: Array) -> str:
    parsed: ArgumentType = parse_tensor_type(type_)
    sizes = "".join(f"{size}x" for size in array.shape)
    return type_ if parsed.is_static else f"tensor<{sizes}{parsed.element}>"


def _nested(texts: Iterator[str], shape: Sequence[int], index: tuple[int, ...]) -> str:
    """Return the part of a tensor at an index, with brackets and line breaks."""
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
