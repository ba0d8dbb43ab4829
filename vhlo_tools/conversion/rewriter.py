"""Rewriting of one op: the rewriter, notes on what was rewritten, and changes of types."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isfinite
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider, named_attributes, source_of
from vhlo_tools.findings import Finding, FindingKind, SourceLocation
from vhlo_tools.program import place_of

# Records of rewrites, as findings of level note

#: The feature of a finding about an op or attribute that was rewritten into plain StableHLO.
REWRITTEN: Final = "rewritten"


class Notes:
    def __init__(self, program: str) -> None:
        self.program = program
        self.findings: list[Finding] = []

    def add(self, op: Operation, message: str, kind: FindingKind = "op") -> None:
        self.add_at(str(op.name), source_of(op.location), message, kind)

    def add_at(self, op: str, location: SourceLocation | None, message: str, kind: FindingKind = "op") -> None:
        """For an op that no longer exists."""
        self.findings.append(
            Finding(REWRITTEN, "note", kind, message, op=op, location=place_of(location, self.program))
        )


# The rewriter: builds the replacement of an op in front of it

#: The width of integers for sizes of dimensions, which are indices in MLIR: StableHLO has no index type.
DIMENSION_BITS: Final = 64


class MatchFailure(Exception):  # noqa: N818 - it never leaves the rewriting: the op remains unchanged
    """An op has a form that its pattern does not support."""


class Rewriter:
    """Builds ops in front of the op that they replace.

    A *converted* value represents a value of the program: a tensor represents a scalar, integers represent indices, and
    any other tensor represents itself. ``without`` tells the note what the replacement lacks; ``later`` has converted
    values of results of ops that are visited later.
    """

    def __init__(self, provider: Provider, op: Operation, converted: dict[Any, Any]) -> None:
        self.op = op
        self.made: list[Any] = []
        self.without: list[str] = []
        self.later: dict[Any, Any] = {}
        self._provider = provider
        self._ir = provider.ir
        self._context = op.context
        self._converted = converted
        # MLIR's encoding of a dynamic size.
        self._dynamic = provider.ir.ShapedType.get_dynamic_size()
        self._point = provider.ir.InsertionPoint(op)
        # By type, number and sign, which zeros have too; constants of an outer region can be used in an inner one.
        self._constants: ChainMap[tuple[Any, complex, bool], Any] = ChainMap()

    # Values

    def operand(self, index: int) -> Any:
        return self.converted(self.op.operands[index])

    def operands(self) -> list[Any]:
        return [self.converted(value) for value in self.op.operands]

    def converted(self, value: Any) -> Any:
        """:class:`MatchFailure` if it needs conversion, and its defining op was not replaced."""
        if value in self._converted:
            return self._converted[value]
        if self.converted_type(value.type) != value.type:
            raise MatchFailure(f"{value.type} produced by an op that is not rewritten")
        return value

    def is_converted(self, value: Any) -> bool:
        return value in self._converted

    def known(self, value: Any) -> int:
        owner = value.owner
        if getattr(owner, "name", None) == "arith.constant" and "value" in owner.attributes:
            attribute = owner.attributes["value"]
            if isinstance(attribute, self._ir.IntegerAttr):
                return int(attribute.value)
        raise MatchFailure("a number that is only known at run time")

    # Types

    def converted_type(self, type_: Any) -> Any:
        if self.is_tensor(type_):
            element = self._element(type_.element_type)
            return type_ if element == type_.element_type else self.tensor(self.shape(type_), element, type_.encoding)
        return self.tensor((), self._element(type_))

    def _element(self, type_: Any) -> Any:
        ir = self._ir
        if isinstance(type_, ir.IndexType):
            return self.integer(DIMENSION_BITS)
        if isinstance(type_, ir.IntegerType | ir.FloatType | ir.ComplexType) or str(type_).startswith("!quant."):
            return type_
        raise MatchFailure(f"a value of type {type_}")

    def is_tensor(self, type_: Any) -> bool:
        """Whether the type is a tensor of known rank."""
        return isinstance(type_, self._ir.RankedTensorType)

    def integer(self, bits: int, *, unsigned: bool = False) -> Any:
        make = self._ir.IntegerType.get_unsigned if unsigned else self._ir.IntegerType.get_signless
        return make(bits, context=self._context)

    def is_integer(self, type_: Any, bits: int | None = None) -> bool:
        return self._is(type_, self._ir.IntegerType) and bits in (None, getattr(type_, "element_type", type_).width)

    def is_float(self, type_: Any, bits: int = 64) -> bool:
        """Of at most so many bits."""
        return self._is(type_, self._ir.FloatType) and getattr(type_, "element_type", type_).width <= bits

    def is_number(self, type_: Any) -> bool:
        return self._is(type_, self._ir.IntegerType | self._ir.FloatType)

    def is_complex(self, type_: Any) -> bool:
        return self._is(type_, self._ir.ComplexType)

    def _is(self, type_: Any, kinds: Any) -> bool:
        return isinstance(type_.element_type if self.is_tensor(type_) else type_, kinds)

    def tensor(self, shape: Sequence[int | None], element: Any, encoding: Any = None) -> Any:
        """``None`` is a dynamic size."""
        sizes = [self._dynamic if size is None else size for size in shape]
        return self._ir.RankedTensorType.get(sizes, element, encoding, loc=self.op.location)

    def shape(self, type_: Any) -> tuple[int | None, ...]:
        """``None`` is a dynamic size."""
        return tuple(None if size == self._dynamic else size for size in type_.shape)

    def static(self, type_: Any) -> tuple[int, ...]:
        """:class:`MatchFailure` if a size is dynamic."""
        shape = self.shape(type_) if self.is_tensor(type_) else (None,)
        known = tuple(size for size in shape if size is not None)
        if len(known) != len(shape):
            raise MatchFailure(f"{type_} has a size that is only known at run time")
        return known

    def result_type(self) -> Any:
        return self.converted_type(self.op.results[0].type)

    def function(self, name: str) -> Operation | None:
        module: Any = self.op.operation
        while module is not None and str(module.name) != "builtin.module":
            module = module.parent
        symbols = self._ir.SymbolTable(module)
        found: Any = symbols[name].operation if name in symbols else None
        return found if found is not None and str(found.name) == "func.func" else None

    def type(self, text: str) -> Any:
        return self._ir.Type.parse(text, context=self._context)

    # Attributes and ops

    def attribute(self, text: str) -> Any:
        return self._ir.Attribute.parse(text, context=self._context)

    def integers(self, values: Iterable[int]) -> Any:
        """An ``array<i64>``."""
        return self._ir.DenseI64ArrayAttr.get(list(values), context=self._context)

    def number(self, value: int) -> Any:
        """A 64-bit integer attribute."""
        return self._ir.IntegerAttr.get(self.integer(64), value)

    def numbers(self, name: str) -> list[int | None]:
        """``None`` is a dynamic number."""
        return [None if each == self._dynamic else int(each) for each in self.op.attributes[name]]

    def filled(self, type_: Any, value: Any) -> Any:
        elements = self._ir.DenseElementsAttr.get_splat(type_, value)
        return self.make("stablehlo.constant", [], type_, value=elements)

    def dense(self, type_: Any, numbers: Any) -> Any:
        """``numbers`` has one dimension, of integers of 8 to 64 bits or IEEE floats; a single one is repeated."""
        if len(numbers) == 1:
            element = type_.element_type
            if self.is_integer(element):
                return self.filled(type_, self._ir.IntegerAttr.get(element, numbers.item()))
            return self.filled(type_, self._ir.FloatAttr.get(element, numbers.item(), loc=self.op.location))
        held = self._provider.dense_elements(self._context, numbers.reshape(self.static(type_)))
        return self.make("stablehlo.constant", [], type_, value=held)

    def constant(self, type_: Any, number: complex) -> Any:
        """Created once per region."""
        key = type_, number, str(number).startswith("-")
        if key not in self._constants:
            self._constants[key] = self._new_constant(type_, number)
        return self._constants[key]

    def _new_constant(self, type_: Any, number: complex) -> Any:
        if self.is_complex(type_):
            # The bindings have no class for the attribute.
            value = f"dense<({number.real:.17e},{number.imag:.17e})> : {type_}"
            return self._parsed(f'"stablehlo.constant"() <{{value = {value}}}> : () -> {type_} {self.op.location}')
        if not self.is_integer(type_) and not isfinite(number.real):
            return self.filled(type_, self._ir.FloatAttr.get(type_.element_type, number.real, loc=self.op.location))
        if self.is_integer(type_, 1):
            literal = str(bool(number)).lower()
        else:
            literal = str(int(number.real)) if self.is_integer(type_) else f"{number.real:.17e}"
        return self.make("stablehlo.constant", [], type_, value=self.attribute(f"dense<{literal}> : {type_}"))

    def sizes(self, values: Sequence[int]) -> Any:
        """A one-dimensional constant."""
        type_ = self.tensor((len(values),), self.integer(DIMENSION_BITS))
        text = f"dense<[{', '.join(map(str, values))}]> : {type_}" if values else f"dense<> : {type_}"
        return self.make("stablehlo.constant", [], type_, value=self.attribute(text))

    def size(self, value: int) -> Any:
        """A scalar constant."""
        type_ = self.tensor((), self.integer(DIMENSION_BITS))
        return self.filled(type_, self.number(value))

    def make(self, name: str, operands: Sequence[Any], type_: Any, **attributes: Any) -> Any:
        return self.make_several(name, operands, [type_], **attributes)[0]

    def make_several(
        self,
        name: str,
        operands: Sequence[Any],
        types: Sequence[Any],
        bodies: Sequence[tuple[Sequence[Any], Callable[..., Sequence[Any]]]] = (),
        **attributes: Any,
    ) -> list[Any]:
        """``bodies`` has for each region the types of its arguments, and a function from these to its results."""
        if name.startswith("chlo.") and "chlo" in self._provider.lacking:
            raise MatchFailure(f"{self._provider.prefix} does not have CHLO, and crashes on an op of it")
        op = self._ir.Operation.create(
            name,
            results=list(types),
            operands=list(operands),
            attributes=attributes,
            regions=len(bodies),
            loc=self.op.location,
            ip=self._point,
        )
        self.made.append(op)
        outside = self._point, self.made, self._constants
        try:
            for region, (takes, build) in zip(op.regions, bodies, strict=True):
                block = region.blocks.append(*takes, arg_locs=[self.op.location] * len(takes))
                self._point, self.made = self._ir.InsertionPoint(block), []
                self._constants = outside[2].new_child()
                self.make_several("stablehlo.return", build(*block.arguments), [])
        finally:
            self._point, self.made, self._constants = outside
        return list(op.results)

    def convert_arguments(self, block: Any, element: Any) -> None:
        """The arguments are converted back where the block uses them."""
        point = self._ir.InsertionPoint.at_block_begin(block)
        for argument in block.arguments:
            narrow = argument.type
            back = self._ir.Operation.create(
                "stablehlo.convert", results=[narrow], operands=[argument], loc=self.op.location, ip=point
            )
            argument.replace_all_uses_except(back.results[0], back)
            argument.set_type(self.tensor(self.shape(narrow), element, narrow.encoding))

    def make_like(
        self,
        operands: Sequence[Any],
        types: Sequence[Any],
        *,
        name: str | None = None,
        without: Iterable[str] = (),
        **attributes: Any,
    ) -> list[Any]:
        """Copies the op and its regions, with other operands and results; the attribute ``None`` removes one.

        Where the number of operands or results or the name changes, discardable attributes without a class in the
        bindings are left out, and the note says so.
        """
        op = self.op.operation
        gone = {*without, *(key for key, value in attributes.items() if value is None)}
        new = {key: value for key, value in attributes.items() if value is not None}
        twin = op.clone(ip=self._point).operation
        made = twin
        if (name or op.name, len(operands), len(types)) == (op.name, len(op.operands), len(op.results)):
            for index, value in enumerate(operands):
                made.operands[index] = value
            for result, type_ in zip(made.results, types, strict=True):
                result.set_type(type_)
            for key in gone:
                if key in made.attributes:
                    del made.attributes[key]
            for key, value in new.items():
                made.attributes[key] = value
        else:
            held = {key: value for key, value in named_attributes(op.attributes) if key not in gone}
            made = self._ir.Operation.create(
                name or str(op.name),
                results=list(types),
                operands=list(operands),
                attributes=held | new,
                regions=len(op.regions),
                loc=op.location,
                ip=self._point,
            )
            for region, copied in zip(made.regions, twin.regions, strict=True):
                for block in list(copied.blocks):
                    block.append_to(region)
            twin.erase()
        self.made.append(made)
        return list(made.results)

    def rows(self, rows: Sequence[Sequence[int]]) -> Any:
        """Padded with -1 to one length, as a two-dimensional attribute of 64-bit integers."""
        import numpy as np  # imported here because few rewrites need it

        padded = np.full((len(rows), max(map(len, rows), default=0)), -1, np.int64)
        for to, row in zip(padded, rows, strict=True):
            to[: len(row)] = row
        return self._provider.dense_elements(self._context, padded)

    def module(self) -> Any:
        op = self.op.operation
        while op.parent is not None:
            op = op.parent.operation
        return op

    def add_function(self, text: str) -> None:
        self.module().regions[0].blocks[0].append(self._ir.Operation.parse(text, context=self._context))

    def ops(self, name: str) -> list[Any]:
        return [op for op in self._provider.walk(self.module()) if str(op.name) == name]

    def body(self, values: Sequence[Any]) -> list[Any]:
        """Inlines the only block of the op."""
        expected = [argument.type for argument in self.op.regions[0].blocks[0].arguments]
        if expected != (given := [value.type for value in values]):
            raise MatchFailure(f"its body takes {len(expected)} values of other types than the {len(given)} given")
        twin = self.op.operation.clone(ip=self._point)
        block = twin.regions[0].blocks[0]
        for argument, value in zip(block.arguments, values, strict=True):
            argument.replace_all_uses_with(value)
        *body, end = block.operations
        for each in body:
            each.operation.move_before(twin.operation)
        returned = list(end.operands)
        twin.operation.erase()
        return returned

    def renamed(self, name: str) -> Any:
        """A copy of the op, which has no operands, under another name."""
        op = self.op.operation
        text = op.get_asm(print_generic_op_form=True, enable_debug_info=True, use_local_scope=True)
        return self._parsed(text.replace(f'"{op.name}"', f'"{name}"', 1))

    def _parsed(self, text: str) -> Any:
        op = self._ir.Operation.parse(text, context=self._context).operation
        self._point.insert(op)
        self.made.append(op)
        return op.results[0]

    def convert(self, value: Any, element: Any) -> Any:
        type_ = self.tensor(self.shape(value.type), element, value.type.encoding)
        return value if type_ == value.type else self.make("stablehlo.convert", [value], type_)

    def compare(self, direction: str, one: Any, other: Any, **attributes: Any) -> Any:
        """``direction`` is ``EQ``, ``NE``, ``LT``, ``LE``, ``GT`` or ``GE``."""
        type_ = self.tensor(self.shape(one.type), self.integer(1), one.type.encoding)
        held = self.attribute(f"#stablehlo<comparison_direction {direction}>")
        return self.make("stablehlo.compare", [one, other], type_, comparison_direction=held, **attributes)

    def concatenate(self, parts: Sequence[Any], type_: Any, dimension: int = 0) -> Any:
        """A single part is returned itself."""
        if len(parts) == 1:
            return parts[0]
        return self.make("stablehlo.concatenate", parts, type_, dimension=self.number(dimension))

    def slice(self, value: Any, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] = ()) -> Any:
        strides = strides or [1] * len(starts)
        shape = [-(-(high - low) // step) for low, high, step in zip(starts, limits, strides, strict=True)]
        bounds = {"start_indices": starts, "limit_indices": limits, "strides": strides}
        held = {name: self.integers(each) for name, each in bounds.items()}
        return self.make("stablehlo.slice", [value], self.tensor(shape, value.type.element_type), **held)

    def dynamic_slice(self, value: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
        """``starts`` are scalars."""
        type_ = self.tensor(sizes, value.type.element_type)
        return self.make("stablehlo.dynamic_slice", [value, *starts], type_, slice_sizes=self.integers(sizes))

    def reduced_precision(self, value: Any, exponent_bits: int, mantissa_bits: int) -> Any:
        """The value keeps its type."""
        held = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
        attributes = {name: self.attribute(f"{number} : i32") for name, number in held.items()}
        return self.make("stablehlo.reduce_precision", [value], value.type, **attributes)

    def reshape(self, value: Any, shape: Sequence[int]) -> Any:
        type_ = self.tensor(shape, value.type.element_type)
        return value if type_ == value.type else self.make("stablehlo.reshape", [value], type_)

    def transpose(self, value: Any, order: Sequence[int]) -> Any:
        if list(order) == sorted(order):
            return value
        shape = self.shape(value.type)
        type_ = self.tensor([shape[at] for at in order], value.type.element_type)
        return self.make("stablehlo.transpose", [value], type_, permutation=self.integers(order))

    def dimension(self, tensor: Any, index: int) -> Any:
        shape = self.shape(tensor.type)
        if not 0 <= index < len(shape):
            raise MatchFailure(f"dimension {index} of {tensor.type}")
        known = shape[index]
        if known is not None:
            return self.size(known)
        of_32 = self.tensor((), self.integer(32))
        asked = self.make("stablehlo.get_dimension_size", [tensor], of_32, dimension=self.number(index))
        return self.convert(asked, self.integer(DIMENSION_BITS))

    def joined(self, numbers: Sequence[Any], element: Any) -> Any:
        """Scalars as a one-dimensional tensor."""
        if not numbers:
            return self.sizes([])
        parts = [self.reshape(number, (1,)) for number in numbers]
        return self.concatenate(parts, self.tensor((len(parts),), element))

    def reshaped(self, value: Any, type_: Any, sizes: Sequence[Any]) -> Any:
        """``sizes`` are scalars."""
        if all(size is not None for size in self.shape(type_)):
            return self.reshape(value, self.static(type_))
        of_sizes = self.joined(sizes, self.integer(DIMENSION_BITS))
        return self.make("stablehlo.dynamic_reshape", [value, of_sizes], type_)


# Changes of the types of all values of a program


def values_of(op: Operation) -> Iterator[Any]:
    """The results, and the arguments of the blocks."""
    yield from op.results
    for region in op.regions:
        for block in region:
            yield from block.arguments


def retype(provider: Provider, module: ModuleOp, change: Callable[[Any], Any]) -> None:
    """Rewrites in place, also within tuples; ``change`` may return its argument."""
    ir = provider.ir

    def changed(type_: Any) -> Any:
        if isinstance(type_, ir.TupleType):
            return ir.TupleType.get_tuple([changed(type_.get_type(index)) for index in range(type_.num_types)])
        return change(type_) if isinstance(type_, ir.RankedTensorType) else type_

    with module.context, module.operation.location:
        for op in provider.walk(module):
            for value in values_of(op):
                type_ = changed(value.type)
                if type_ != value.type:
                    value.set_type(type_)
            if str(op.name) == "func.func":
                function = op.attributes["function_type"].value
                types = ([changed(each) for each in listed] for listed in (function.inputs, function.results))
                op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
