"""Values that engines exchange: arrays and their types, flattening and nesting, and the entry function."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from vhlo_tools.aliasing import (
    Alias,
    AliasConfig,
    Donor,
    Opaque,
    Shape,
    ShapeIndex,
    Signature,
    Tuple,
    format_index,
    leaves,
)
from vhlo_tools.bindings import MLIRFailure, Module, Operation, Provider, class_of, functions_of
from vhlo_tools.errors import EngineError, InvalidInputError, InvalidProgramError
from vhlo_tools.findings import Diagnostic
from vhlo_tools.program import Program, explain_failure, write_module_aliases
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from vhlo_tools.execution.donation import Buffer

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

#: Element type -> name of the dtype, conversion, and the element type that values are converted to.
_TYPES: Final[Mapping[str, tuple[str, Conversion, str]]] = {
    "i1": ("bool", "direct", "i1"),
    **{f"i{bits}": (f"int{bits}", "direct", f"i{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": (f"uint{bits}", "direct", f"ui{bits}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": (f"float{bits}", "direct", f"f{bits}") for bits in (16, 32, 64)},
    "complex<f32>": ("complex64", "parts", "f32"),
    "complex<f64>": ("complex128", "parts", "f64"),
    # Types of ml_dtypes, as the integer that contains their bits.
    "bf16": ("bfloat16", "bits", "ui16"),
    "f8E3M4": ("float8_e3m4", "bits", "ui8"),
    "f8E4M3": ("float8_e4m3", "bits", "ui8"),
    "f8E4M3B11FNUZ": ("float8_e4m3b11fnuz", "bits", "ui8"),
    "f8E4M3FN": ("float8_e4m3fn", "bits", "ui8"),
    "f8E4M3FNUZ": ("float8_e4m3fnuz", "bits", "ui8"),
    "f8E5M2": ("float8_e5m2", "bits", "ui8"),
    "f8E5M2FNUZ": ("float8_e5m2fnuz", "bits", "ui8"),
    "f8E8M0FNU": ("float8_e8m0fnu", "bits", "ui8"),
    # Types of ml_dtypes of which a wider type represents every number; none of these floats has a NaN or an infinity.
    "i2": ("int2", "wider", "i8"),
    "i4": ("int4", "wider", "i8"),
    "ui2": ("uint2", "wider", "ui8"),
    "ui4": ("uint4", "wider", "ui8"),
    "f4E2M1FN": ("float4_e2m1fn", "wider", "f32"),
    "f6E2M3FN": ("float6_e2m3fn", "wider", "f32"),
    "f6E3M2FN": ("float6_e3m2fn", "wider", "f32"),
}

#: The element type of each dtype, by name.
_ELEMENTS: Final = {dtype: element for element, (dtype, _, _) in _TYPES.items()}

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
        dynamic = ("any" if bound is None else f"at most {bound}" for bound in self.bounds)
        return ", ".join(word if size is None else str(size) for size, word in zip(self.shape, dynamic, strict=True))

    def converted_text(self) -> str:
        """Return the type to which values are converted, as MLIR text."""
        return _tensor_text(self.shape, self.converted)

    def converted_dtype(self) -> np.dtype[Any]:
        """Return the dtype of ``converted``."""
        return np.dtype(_TYPES[self.converted][0])


@dataclass(frozen=True, slots=True)
class TokenType:
    """The only value is ``None``."""

    text: str


@dataclass(frozen=True, slots=True)
class TupleType:
    text: str
    parts: tuple[ValueType, ...]


ValueType = ArgumentType | TokenType | TupleType
LeafType = ArgumentType | TokenType


def leaf_types(types: Iterable[ValueType]) -> Iterator[LeafType]:
    """The types, with the parts of tuples in place of these."""
    for type_ in types:
        if isinstance(type_, TupleType):
            yield from leaf_types(type_.parts)
        else:
            yield type_


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
    if storage not in _TYPES:
        raise EngineError(f"numpy cannot represent values of type {text}")
    name, conversion, converted = _TYPES[storage]
    dtype = _ml_dtype(name, text) if conversion in ("bits", "wider") else np.dtype(name)
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
    value = _of_torch(value)
    array = value if isinstance(value, np.ndarray | np.generic) else _from_numbers(value, wanted, which)
    array = np.asarray(array)
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == wanted.dtype.itemsize:
        array = array.view(wanted.dtype)  # numpy files contain the bits, but not the names, of ml_dtypes types
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    fitting(array, wanted, which)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)


#: The element types of torch that numpy has by ml_dtypes only, with integers of torch and of numpy as wide.
_TORCH_TYPES: Final = {
    "torch.bfloat16": ("int16", "bfloat16"),
    "torch.float8_e4m3fn": ("uint8", "float8_e4m3fn"),
    "torch.float8_e4m3fnuz": ("uint8", "float8_e4m3fnuz"),
    "torch.float8_e5m2": ("uint8", "float8_e5m2"),
    "torch.float8_e5m2fnuz": ("uint8", "float8_e5m2fnuz"),
    "torch.float8_e8m0fnu": ("uint8", "float8_e8m0fnu"),
}


def _of_torch(value: Any) -> Any:
    """A tensor of torch as numpy takes it: without gradients, and as an array if torch does not give it to numpy."""
    if not (type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach")):
        return value
    tensor = value.detach().cpu()
    if (types := _TORCH_TYPES.get(str(tensor.dtype))) is None:
        return tensor
    import ml_dtypes

    return tensor.contiguous().view(getattr(sys.modules["torch"], types[0])).numpy().view(getattr(ml_dtypes, types[1]))


def fitting(value: np.ndarray[Any, Any] | Buffer, wanted: ArgumentType, which: str) -> None:
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


def flat_config(config: AliasConfig, *, tokens: bool = True) -> AliasConfig:
    """Tuples become their leaves, of which tokens may be left out."""
    parameters = [
        (number, index, leaf)
        for number, shape in enumerate(config.signature.parameters)
        for index, leaf in leaves(shape)
        if tokens or not isinstance(leaf, Opaque)
    ]
    numbers = {(number, index): place for place, (number, index, _) in enumerate(parameters)}
    results = [each for each in leaves(config.signature.result) if tokens or not isinstance(each[1], Opaque)]
    places = {index: () if len(results) == 1 else (number,) for number, (index, _) in enumerate(results)}
    return AliasConfig(
        Signature.of_results(tuple(leaf for *_, leaf in parameters), tuple(leaf for _, leaf in results)),
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
    ir, block = provider.ir, main.regions[0].blocks[0]
    arguments, terminator = list(block.arguments), block.operations[len(block.operations) - 1]
    with main.context, main.location:
        # The ops that compose tuples must precede all uses.
        with ir.InsertionPoint.at_block_begin(block):
            for argument in arguments:
                argument.replace_all_uses_with(_composed(ir, block, argument.type))
        for _ in arguments:
            block.erase_argument(0)
        with ir.InsertionPoint(terminator):
            results = [leaf for each in terminator.operands for leaf in _decomposed(ir, each)]
            ir.Operation.create("func.return", operands=results)
        terminator.operation.erase()
        retype_main(ir, main, block.arguments, results)
    write_module_aliases(module.operation, flat_config(config), provider=provider)


def _composed(ir: Any, block: Any, type_: Any) -> Any:
    """A value of the type, of leaves that are new arguments."""
    if class_of(type_) != "TupleType":
        return block.add_argument(type_, ir.Location.current)
    elements = [_composed(ir, block, type_.get_type(number)) for number in range(type_.num_types)]
    return ir.Operation.create("stablehlo.tuple", results=[type_], operands=elements).result


def _decomposed(ir: Any, value: Any) -> list[Any]:
    type_ = value.type
    if class_of(type_) != "TupleType":
        return [value]
    found: list[Any] = []
    for number in range(type_.num_types):
        index = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), number)
        types = [type_.get_type(number)]
        element = ir.Operation.create(
            "stablehlo.get_tuple_element", results=types, operands=[value], attributes={"index": index}
        )
        found += _decomposed(ir, element.result)
    return found


def retype_main(ir: Any, main: Operation, arguments: Iterable[Any], results: Iterable[Any]) -> None:
    """A run depends on no attributes of arguments and results, except aliases, which the caller writes anew."""
    for name in ("arg_attrs", "res_attrs"):
        if name in main.attributes:
            del main.attributes[name]
    types = [each.type for each in arguments], [each.type for each in results]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))


# The entry function of a program

#: The greatest depth of tuples, as they are processed recursively.
_DEEPEST: Final = 100


@contextmanager
def explained(
    provider: Provider, name: str, how: str, error: Callable[[str, Sequence[Diagnostic]], Exception] = EngineError
) -> Iterator[None]:
    """A failure of the bindings becomes an error that says ``how`` the program ``name`` failed."""
    try:
        yield
    except MLIRFailure as failure:
        raise error(f"{name} {how}: {explain_failure(name, provider, failure)}", failure.diagnostics) from failure


def valid_module(program: Program) -> Module:
    """A module from the caller may be unverified."""
    provider = program.provider
    module = provider.as_module(program.load())
    with explained(provider, program.name, "is not valid", InvalidProgramError):
        provider.verify(module)
    for symbol, op in functions_of(module).items():
        signs = (each for each in str(op.attributes["function_type"]).replace("->", "") if each in "<>")
        depth = max(accumulate(1 if each == "<" else -1 for each in signs), default=0)
        if depth > _DEEPEST:
            raise EngineError(
                f"{program.name}: the tuples of @{symbol} are nested {depth} deep: the limit is {_DEEPEST}"
            )
    return module


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


def signature_of(main: Operation) -> tuple[list[ValueType], list[ValueType]]:
    types = main.attributes["function_type"].value
    arguments, results = ([parse_value_type(str(each)) for each in side] for side in (types.inputs, types.results))
    return arguments, results


def main_of(module: Module, name: str) -> Operation:
    functions = functions_of(module)
    if "main" in functions:
        return functions["main"]
    names = [f"@{each}" for each in functions]
    has = f"it has {', '.join(names[:5])}" if names else "it has no functions"
    raise InvalidProgramError(f"{name} has no function @main to run: {has}")
