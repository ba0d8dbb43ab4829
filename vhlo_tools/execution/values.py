"""Values that engines exchange: arrays and their types, flattening and nesting, and the entry function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np

from vhlo_tools.aliasing import Alias, AliasConfig, Donor, Shape, ShapeIndex, Signature, Tuple, format_index, leaves
from vhlo_tools.bindings import MLIRFailure, Module, Operation, Provider, class_of, functions_of
from vhlo_tools.errors import EngineError, InvalidInputError, InvalidProgramError
from vhlo_tools.program import Program, explain_failure, write_module_aliases
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Flatten nested values to leaves, and nest leaves, by the shapes of a program


def leaf_values(value: Any, shape: Shape, which: str, index: ShapeIndex = ()) -> Iterator[tuple[ShapeIndex, Any]]:
    """``index`` is the position of ``value`` in the parameter."""
    if not isinstance(shape, Tuple):
        yield index, value
        return
    place = f"{which} at {format_index(index)}" if index else which
    if not isinstance(value, tuple | list):
        raise InvalidInputError(f"{place} is a {type(value).__qualname__}, but the program requires a tuple: {shape}")
    if len(value) != len(shape.elements):
        raise InvalidInputError(
            f"{place} has {len(value)} elements, but the program requires {len(shape.elements)}: {shape}"
        )
    for number, (each, element) in enumerate(zip(value, shape.elements, strict=True)):
        yield from leaf_values(each, element, which, (*index, number))


def nested_values(leaves: Iterator[Any], shapes: Sequence[Shape]) -> tuple[Any, ...]:
    return tuple(
        nested_values(leaves, shape.elements) if isinstance(shape, Tuple) else next(leaves) for shape in shapes
    )


# Values: numpy arrays, their types, and the form in which the interpreter exchanges them
#
# The interpreter itself exchanges booleans, integers of 8 to 64 bits and the IEEE floats. All other values are
# *converted*: to real and imaginary parts, to the bits of an unsigned integer, or to a wider number, and back in the
# program (:mod:`vhlo_tools.execution.reference.calling_convention`). Quantized tensors are, as stored, integers in
# numpy; tokens are ``None``, and tuples are tuples.

Conversion = Literal["direct", "parts", "bits", "wider"]

_DIRECT: Final = {
    "i1": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
}
_PARTS: Final = {"complex<f32>": ("complex64", "f32"), "complex<f64>": ("complex128", "f64")}
# The dtypes of ml_dtypes, with the integer type that contains their bits.
_BITS: Final = {
    "bf16": ("bfloat16", "ui16"),
    "f8E3M4": ("float8_e3m4", "ui8"),
    "f8E4M3": ("float8_e4m3", "ui8"),
    "f8E4M3B11FNUZ": ("float8_e4m3b11fnuz", "ui8"),
    "f8E4M3FN": ("float8_e4m3fn", "ui8"),
    "f8E4M3FNUZ": ("float8_e4m3fnuz", "ui8"),
    "f8E5M2": ("float8_e5m2", "ui8"),
    "f8E5M2FNUZ": ("float8_e5m2fnuz", "ui8"),
    "f8E8M0FNU": ("float8_e8m0fnu", "ui8"),
}
# Types for which a wider type represents every number; none of these floats has a NaN or an infinity.
_WIDER: Final = {
    "i2": ("int2", "i8"),
    "i4": ("int4", "i8"),
    "ui2": ("uint2", "ui8"),
    "ui4": ("uint4", "ui8"),
    "f4E2M1FN": ("float4_e2m1fn", "f32"),
    "f6E2M3FN": ("float6_e2m3fn", "f32"),
    "f6E3M2FN": ("float6_e3m2fn", "f32"),
}

#: The element type of each dtype, by name.
_ELEMENTS: Final = {
    **{dtype: element for element, dtype in _DIRECT.items()},
    **{dtype: element for element, (dtype, _) in (*_PARTS.items(), *_BITS.items(), *_WIDER.items())},
}

_TENSOR: Final = re.compile(
    r"tensor<((?:(?:[0-9]+|\?)x)*)(!quant\.uniform<(?:[^<>]|<[^<>]*>)*>|[a-zA-Z][^,]*?)"
    r"(?:, #stablehlo\.bounds<(.*)>|, .*)?>"
)
_STORAGE: Final = re.compile(r"!quant\.uniform<([iu][0-9]+)")


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """The tensor type of an argument or a result.

    Attributes:
        text: The type as MLIR prints it, without bounds, and with the storage of quantized elements.
        shape: Its dimensions; ``None`` for a dynamic dimension.
        bounds: The greatest size of each dimension; ``None`` for a dimension without a bound.
        element: Its element type as MLIR prints it.
        dtype: The numpy dtype of its values.
        conversion: The conversion of its values for the interpreter.
        converted: The element type to which they are converted.
        storage: The element type of ``dtype``: the element type itself, or the storage type of a quantized one.
    """

    text: str
    shape: tuple[int | None, ...]
    bounds: tuple[int | None, ...]
    element: str
    dtype: np.dtype[Any]
    conversion: Conversion
    converted: str
    storage: str

    @property
    def is_static(self) -> bool:
        """Whether all dimensions are known."""
        return None not in self.shape

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The dimensions.

        Raises:
            EngineError: If a dimension is dynamic.
        """
        sizes = tuple(size for size in self.shape if size is not None)
        if len(sizes) != len(self.shape):
            raise EngineError(f"the inputs do not resolve the shape of a result, {self.text}")
        return sizes

    @property
    def is_direct(self) -> bool:
        """Whether the interpreter exchanges values of the type without conversion."""
        return self.conversion == "direct"

    def with_shape(self, shape: tuple[int, ...]) -> ArgumentType:
        """Return the type with the dimensions ``shape``."""
        return parse_tensor_type(_tensor_text(shape, self.element))

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Return whether a value may have the shape ``shape``."""
        return len(shape) == len(self.shape) and all(
            size in (None, found) and (bound is None or found <= bound)
            for size, bound, found in zip(self.shape, self.bounds, shape, strict=True)
        )

    def sizes(self) -> str:
        """Return the sizes that values may have, as text."""
        words = []
        for size, bound in zip(self.shape, self.bounds, strict=True):
            dynamic = "any" if bound is None else f"at most {bound}"
            words.append(dynamic if size is None else str(size))
        return ", ".join(words)

    def converted_text(self) -> str:
        """Return the type to which values are converted, as MLIR text."""
        return _tensor_text(self.shape, self.converted)

    def converted_dtype(self) -> np.dtype[Any]:
        """Return the dtype of ``converted``."""
        return np.dtype(_DIRECT[self.converted])


@dataclass(frozen=True, slots=True)
class TokenType:
    """The only value is ``None``."""

    text: str


@dataclass(frozen=True, slots=True)
class TupleType:
    text: str
    parts: tuple[ValueType, ...]


ValueType = ArgumentType | TokenType | TupleType


def _tensor_text(shape: tuple[int | None, ...], element: str) -> str:
    dimensions = "".join(f"{'?' if size is None else size}x" for size in shape)
    return f"tensor<{dimensions}{element}>"


@cache
def parse_value_type(text: str) -> ValueType:
    if text == "!stablehlo.token":
        return TokenType(text)
    if text.startswith("tuple<") and text.endswith(">"):
        parts = tuple(map(parse_value_type, _split(text[len("tuple<") : -1])))
        return TupleType(f"tuple<{', '.join(part.text for part in parts)}>", parts)
    return parse_tensor_type(text)


def _split(types: str) -> Iterator[str]:
    depth = start = 0
    for index, sign in enumerate(types):
        depth += {"<": 1, "{": 1, ">": -1, "}": -1}.get(sign, 0)
        if sign == "," and not depth:
            yield types[start:index].strip()
            start = index + 1
    if types[start:].strip():
        yield types[start:].strip()


@cache
def parse_tensor_type(text: str) -> ArgumentType:
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise EngineError(f"numpy cannot represent values of type {text}")
    shape = _sizes(match[1].split("x")[:-1])
    bounds = _sizes(match[3].split(",")) if match[3] else (None,) * len(shape)
    element = storage = match[2]
    if stored := _STORAGE.match(element):
        storage = stored[1].replace("u", "ui")
    if storage in _DIRECT:
        conversion: Conversion = "direct"
        name = converted = storage
        dtype = np.dtype(_DIRECT[name])
    elif storage in _PARTS:
        conversion, (name, converted) = "parts", _PARTS[storage]
        dtype = np.dtype(name)
    elif storage in _BITS:
        conversion, (name, converted) = "bits", _BITS[storage]
        dtype = _ml_dtype(name, text)
    elif storage in _WIDER:
        conversion, (name, converted) = "wider", _WIDER[storage]
        dtype = _ml_dtype(name, text)
    else:
        raise EngineError(f"numpy cannot represent values of type {text}")
    return ArgumentType(_tensor_text(shape, storage), shape, bounds, element, dtype, conversion, converted, storage)


def type_of_array(array: np.ndarray[Any, Any]) -> ArgumentType | None:
    element = _ELEMENTS.get(array.dtype.name)
    return None if element is None else parse_tensor_type(_tensor_text(array.shape, element))


def _sizes(words: Iterable[str]) -> tuple[int | None, ...]:
    return tuple(None if word.strip() == "?" else int(word) for word in words)


def _ml_dtype(name: str, text: str) -> np.dtype[Any]:
    import ml_dtypes

    if not hasattr(ml_dtypes, name):
        raise EngineError(f"values of type {text} require a newer ml_dtypes, with {name}")
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def as_arrays(value: Any, wanted: ValueType, which: str) -> list[tuple[np.ndarray[Any, Any], ArgumentType]]:
    """One array, those of a tuple, or none for a token."""
    if isinstance(wanted, ArgumentType):
        return [(as_array(value, wanted, which), wanted)]
    if isinstance(wanted, TokenType):
        if value is not None:
            raise InvalidInputError(f"{which} has the type {type(value).__name__}, but a token must be None")
        return []
    if not isinstance(value, tuple | list) or len(value) != len(wanted.parts):
        found = f"{len(value)} values" if isinstance(value, tuple | list) else f"of the type {type(value).__name__}"
        raise InvalidInputError(
            f"{which} is {found}, but the program requires a tuple of {len(wanted.parts)} ({wanted.text})"
        )
    return [
        array
        for index, (each, part) in enumerate(zip(value, wanted.parts, strict=True))
        for array in as_arrays(each, part, f"{which}[{index}]")
    ]


def as_array(value: ArrayLike, wanted: ArgumentType, which: str) -> np.ndarray[Any, Any]:
    """An array must have the dtype; Python numbers must be representable in it, floats after rounding."""
    array = value if isinstance(value, np.ndarray | np.generic) else _from_numbers(value, wanted, which)
    array = np.asarray(array)
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == wanted.dtype.itemsize:
        array = array.view(wanted.dtype)  # numpy files contain the bits, but not the names, of ml_dtypes types
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    fitting(array, wanted, which)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)


class _Typed(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...


def fitting(value: _Typed, wanted: ArgumentType, which: str) -> None:
    if value.dtype != wanted.dtype or not wanted.takes(value.shape):
        raise InvalidInputError(
            f"{which} is {value.dtype}{list(value.shape)}, but the program requires {wanted.dtype}[{wanted.sizes()}] "
            f"({wanted.text})"
        )


def as_saved(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Raw bytes for elements of ml_dtypes types: for some of these, numpy would write names that it cannot read."""
    return array if array.dtype.type.__module__ == "numpy" else array.view(f"V{array.dtype.itemsize}")


def _from_numbers(value: ArrayLike, wanted: ArgumentType, which: str) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidInputError(f"{which} is not an array of numbers: {error}") from error
    if array.dtype.kind not in "biufc":
        raise InvalidInputError(f"{which} is not an array of numbers: the program requires {wanted.text}")
    whole = wanted.storage.startswith(("i", "ui"))
    if array.dtype.kind == "c" and wanted.conversion != "parts":
        raise InvalidInputError(f"{which} is complex: the program requires {wanted.text}")
    with np.errstate(over="ignore", invalid="ignore"):
        converted = array.astype(wanted.dtype)
        if whole and not np.array_equal(converted.astype(array.dtype), array):
            raise InvalidInputError(f"{which} contains numbers that {wanted.text} cannot represent")
    return converted


# Flattening of tuples of ``main``, for engines that exchange arrays only


def flat_config(config: AliasConfig) -> AliasConfig:
    numbers: dict[tuple[int, ShapeIndex], int] = {}
    shapes: list[Shape] = []
    for number, shape in enumerate(config.signature.parameters):
        for index, leaf in leaves(shape):
            numbers[number, index] = len(shapes)
            shapes.append(leaf)
    results = list(leaves(config.signature.result))
    alone = len(results) == 1
    places = {index: () if alone else (number,) for number, (index, _) in enumerate(results)}
    return AliasConfig(
        Signature.of_results(tuple(shapes), tuple(leaf for _, leaf in results)),
        [
            Alias(places[each.output_index], numbers[each.parameter_number, each.parameter_index], (), each.kind)
            for each in config.aliases
        ],
        [Donor(numbers[each.parameter_number, each.parameter_index]) for each in config.donors],
    )


def flatten_main(provider: Provider, module: Module, main: Operation, config: AliasConfig) -> None:
    """Aliases and donors are preserved."""
    function_type = main.attributes["function_type"].value
    if not any(class_of(each) == "TupleType" for each in (*function_type.inputs, *function_type.results)):
        return
    block = main.regions[0].blocks[0]
    flatten = _Flattening(provider.ir)
    with main.context, main.location:
        inputs = flatten.arguments(block)
        results = flatten.returned(block.operations[len(block.operations) - 1])
        # A run depends on no attributes of arguments and results, except aliases.
        for name in ("arg_attrs", "res_attrs"):
            if name in main.attributes:
                del main.attributes[name]
        main.attributes["function_type"] = provider.ir.TypeAttr.get(provider.ir.FunctionType.get(inputs, results))
    write_module_aliases(module.operation, flat_config(config), provider=provider)


class _Flattening:
    def __init__(self, ir: Any) -> None:
        self._ir = ir

    def arguments(self, block: Any) -> list[Any]:
        """Replaces all arguments by their leaves, and returns the types of these."""
        old = list(block.arguments)
        # The ops that compose tuples must precede all uses.
        with self._ir.InsertionPoint.at_block_begin(block):
            for argument in old:
                argument.replace_all_uses_with(self._taken(block, argument.type))
        for _ in old:
            block.erase_argument(0)
        return [each.type for each in block.arguments]

    def _taken(self, block: Any, type_: Any) -> Any:
        if class_of(type_) != "TupleType":
            return block.add_argument(type_, self._ir.Location.current)
        elements = [self._taken(block, each) for each in _elements(type_)]
        return self._ir.Operation.create("stablehlo.tuple", results=[type_], operands=elements).result

    def returned(self, terminator: Any) -> list[Any]:
        """Returns the leaves of all results from the function, and their types here."""
        with self._ir.InsertionPoint(terminator):
            values = [leaf for each in terminator.operands for leaf in self._given(each)]
            self._ir.Operation.create("func.return", operands=values)
        terminator.operation.erase()
        return [each.type for each in values]

    def _given(self, value: Any) -> list[Any]:
        if class_of(value.type) != "TupleType":
            return [value]
        found: list[Any] = []
        for number, type_ in enumerate(_elements(value.type)):
            index = self._ir.IntegerAttr.get(self._ir.IntegerType.get_signless(32), number)
            element = self._ir.Operation.create(
                "stablehlo.get_tuple_element", results=[type_], operands=[value], attributes={"index": index}
            )
            found += self._given(element.result)
        return found


def _elements(type_: Any) -> list[Any]:
    return [type_.get_type(number) for number in range(type_.num_types)]


# The entry function of a program

#: The greatest depth of tuples, as they are processed recursively.
_DEEPEST: Final = 100


def valid_module(program: Program) -> Module:
    """A module from the caller may be unverified."""
    provider = program.provider
    module = provider.as_module(program.load())
    try:
        provider.verify(module)
    except MLIRFailure as failure:
        said = explain_failure(program.name, provider, failure)
        raise InvalidProgramError(f"{program.name} is not valid: {said}", failure.diagnostics) from failure
    for symbol, op in functions_of(module).items():
        if (depth := _depth(str(op.attributes["function_type"]))) > _DEEPEST:
            raise EngineError(
                f"{program.name}: the tuples of @{symbol} are nested {depth} deep: the limit is {_DEEPEST}"
            )
    return module


def _depth(text: str) -> int:
    starts_and_ends = (1 if each == "<" else -1 for each in text.replace("->", "") if each in "<>")
    return max(accumulate(starts_and_ends), default=0)


def bind_first_argument(program: Program, number: int) -> Module:
    """``number`` becomes a constant in the place of the first argument."""
    module = program.provider.as_module(program.load())
    main, ir = main_of(module, program.name), program.provider.ir
    function_type, block = main.attributes["function_type"].value, main.regions[0].blocks[0]
    with module.context, main.location:
        if not function_type.inputs or str(type_ := function_type.inputs[0]) not in ("tensor<i32>", "tensor<i64>"):
            raise InvalidProgramError(f"{program.name} does not take a number as its first argument")
        value = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(type_.element_type, number))
        at = ir.InsertionPoint.at_block_begin(block)
        constant = ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": value}, ip=at)
        block.arguments[0].replace_all_uses_with(constant.result)
        block.erase_argument(0)
        types = function_type.inputs[1:], function_type.results
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
        if "arg_attrs" in main.attributes:
            main.attributes["arg_attrs"] = ir.ArrayAttr.get(list(main.attributes["arg_attrs"])[1:])
    return module


def main_of(module: Module, name: str) -> Operation:
    functions = functions_of(module)
    if "main" in functions:
        return functions["main"]
    names = [f"@{each}" for each in functions]
    has = f"it has {', '.join(names[:5])}" if names else "it has no functions"
    raise InvalidProgramError(f"{name} has no function @main to run: {has}")
