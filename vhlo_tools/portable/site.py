"""The place of an op that is being rewritten, and what can be built there."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from vhlo_tools.bindings import Operation, Provider

__all__ = ["DIMENSION_BITS", "Site", "Unfit"]

#: Sizes of dimensions, which are indices to MLIR, are integers of so many bits here: StableHLO has no indices.
DIMENSION_BITS: Final = 64


class Unfit(Exception):  # noqa: N818 - it never leaves the rewriting: the op stays as it is
    """An op has a form that its rule does not take."""


class Site:
    """Builds ops in front of the one that they replace.

    A *carried* value is what stands for a value of the program: a tensor for a number, integers for indices, and itself
    for any other tensor.

    Args:
        provider: The bindings.
        op: The op to be replaced.
        carried: What stands for results of ops that were replaced before.

    Attributes:
        op: The op to be replaced.
        made: The ops that were built.
    """

    def __init__(self, provider: Provider, op: Operation, carried: dict[Any, Any]) -> None:
        self.op = op
        self.made: list[Any] = []
        self._provider = provider
        self._ir = provider.ir
        self._context = op.context
        self._carried = carried
        # How MLIR writes a size that is known at run time only.
        self._dynamic = provider.ir.ShapedType.get_dynamic_size()
        self._point = provider.ir.InsertionPoint(op)
        # By type and number; those of an outer region can be used in an inner one.
        self._constants: ChainMap[tuple[Any, complex], Any] = ChainMap()

    # Values

    def operand(self, index: int) -> Any:
        """Return what stands for an operand.

        Raises:
            Unfit: If it is no tensor, and was made by an op that stays.
        """
        return self.carried(self.op.operands[index])

    def operands(self) -> list[Any]:
        """Return what stands for all operands."""
        return [self.carried(value) for value in self.op.operands]

    def carried(self, value: Any) -> Any:
        """Return what stands for ``value``."""
        if value in self._carried:
            return self._carried[value]
        if self.carrier(value.type) != value.type:
            raise Unfit(f"{value.type} made by an op that stays")
        return value

    def known(self, value: Any) -> int:
        """Return the integer that ``value`` always is.

        Raises:
            Unfit: If it is no constant.
        """
        owner = value.owner
        if getattr(owner, "name", None) == "arith.constant" and "value" in owner.attributes:
            attribute = owner.attributes["value"]
            if isinstance(attribute, self._ir.IntegerAttr):
                return int(attribute.value)
        raise Unfit("a number that is known only at run time")

    # Types

    def carrier(self, kind: Any) -> Any:
        """Return the type of what stands for a value of the type ``kind``.

        Raises:
            Unfit: If nothing can.
        """
        if self.is_tensor(kind):
            element = self._element(kind.element_type)
            return kind if element == kind.element_type else self.tensor(self.shape(kind), element, kind.encoding)
        return self.tensor((), self._element(kind))

    def _element(self, kind: Any) -> Any:
        ir = self._ir
        if isinstance(kind, ir.IndexType):
            return self.integer(DIMENSION_BITS)
        if isinstance(kind, ir.IntegerType | ir.FloatType | ir.ComplexType) or str(kind).startswith("!quant."):
            return kind
        raise Unfit(f"a value of type {kind}")

    def is_tensor(self, kind: Any) -> bool:
        """Tell whether a type is a tensor of known rank."""
        return isinstance(kind, self._ir.RankedTensorType)

    def integer(self, bits: int, *, unsigned: bool = False) -> Any:
        """Return the type of integers of so many bits."""
        make = self._ir.IntegerType.get_unsigned if unsigned else self._ir.IntegerType.get_signless
        return make(bits, context=self._context)

    def is_integer(self, kind: Any, bits: int | None = None) -> bool:
        """Tell whether the elements of a type are integers, of so many bits."""
        element = kind.element_type if self.is_tensor(kind) else kind
        return isinstance(element, self._ir.IntegerType) and bits in (None, element.width)

    def is_number(self, kind: Any) -> bool:
        """Tell whether the elements of a type are integers or floats."""
        element = kind.element_type if self.is_tensor(kind) else kind
        return isinstance(element, self._ir.IntegerType | self._ir.FloatType)

    def is_complex(self, kind: Any) -> bool:
        """Tell whether the elements of a type are complex numbers."""
        element = kind.element_type if self.is_tensor(kind) else kind
        return isinstance(element, self._ir.ComplexType)

    def tensor(self, shape: Sequence[int | None], element: Any, encoding: Any = None) -> Any:
        """Return a tensor type; ``None`` is a size that is known at run time only."""
        sizes = [self._dynamic if size is None else size for size in shape]
        return self._ir.RankedTensorType.get(sizes, element, encoding, loc=self.op.location)

    def shape(self, kind: Any) -> tuple[int | None, ...]:
        """Return the sizes of a tensor type."""
        return tuple(None if size == self._dynamic else size for size in kind.shape)

    def static(self, kind: Any) -> tuple[int, ...]:
        """Return the sizes of a tensor type.

        Raises:
            Unfit: If one is known at run time only.
        """
        shape = self.shape(kind) if self.is_tensor(kind) else (None,)
        known = tuple(size for size in shape if size is not None)
        if len(known) != len(shape):
            raise Unfit(f"{kind} is of a size that is known at run time only")
        return known

    def result_type(self) -> Any:
        """Return the type of what shall stand for the only result."""
        return self.carrier(self.op.results[0].type)

    def kind(self, text: str) -> Any:
        """Return a type, parsed from what MLIR prints."""
        return self._ir.Type.parse(text, context=self._context)

    # Attributes and ops

    def attribute(self, text: str) -> Any:
        """Return an attribute, parsed from what MLIR prints."""
        return self._ir.Attribute.parse(text, context=self._context)

    def integers(self, values: Iterable[int]) -> Any:
        """Return an ``array<i64>``."""
        return self._ir.DenseI64ArrayAttr.get(list(values), context=self._context)

    def number(self, value: int) -> Any:
        """Return an integer of 64 bits as an attribute."""
        return self._ir.IntegerAttr.get(self.integer(64), value)

    def numbers(self, name: str) -> list[int | None]:
        """Return the numbers in an attribute of the op; ``None`` is one that is known at run time only."""
        return [None if each == self._dynamic else int(each) for each in self.op.attributes[name]]

    def filled(self, kind: Any, value: Any) -> Any:
        """Return the constant of type ``kind`` whose elements are all ``value``, an attribute."""
        elements = self._ir.DenseElementsAttr.get_splat(kind, value)
        return self.make("stablehlo.constant", [], kind, value=elements)

    def constant(self, kind: Any, number: complex) -> Any:
        """Return the constant of type ``kind`` whose elements are all ``number``, made once in each region."""
        if (kind, number) not in self._constants:
            self._constants[kind, number] = self._new_constant(kind, number)
        return self._constants[kind, number]

    def _new_constant(self, kind: Any, number: complex) -> Any:
        if self.is_complex(kind):
            # The bindings have no class for the attribute.
            value = f"dense<({number.real:.17e},{number.imag:.17e})> : {kind}"
            return self._parsed(f'"stablehlo.constant"() <{{value = {value}}}> : () -> {kind} {self.op.location}')
        if self.is_integer(kind, 1):
            literal = str(bool(number)).lower()
        else:
            literal = str(int(number.real)) if self.is_integer(kind) else f"{number.real:.17e}"
        return self.make("stablehlo.constant", [], kind, value=self.attribute(f"dense<{literal}> : {kind}"))

    def sizes(self, values: Sequence[int]) -> Any:
        """Return a constant of one dimension with ``values``."""
        kind = self.tensor((len(values),), self.integer(DIMENSION_BITS))
        text = f"dense<[{', '.join(map(str, values))}]> : {kind}" if values else f"dense<> : {kind}"
        return self.make("stablehlo.constant", [], kind, value=self.attribute(text))

    def size(self, value: int) -> Any:
        """Return ``value`` as a constant."""
        kind = self.tensor((), self.integer(DIMENSION_BITS))
        return self.filled(kind, self.number(value))

    def make(self, name: str, operands: Sequence[Any], kind: Any, **attributes: Any) -> Any:
        """Build an op, and return its result."""
        return self.make_several(name, operands, [kind], **attributes)[0]

    def make_several(self, name: str, operands: Sequence[Any], kinds: Sequence[Any], **attributes: Any) -> list[Any]:
        """Build an op, and return its results.

        Raises:
            Unfit: If it is of CHLO, and the provider does not have that.
        """
        if name.startswith("chlo.") and "chlo" in self._provider.lacking:
            raise Unfit(f"{self._provider.prefix} does not have CHLO, and ends the process over an op of it")
        op = self._ir.Operation.create(
            name,
            results=list(kinds),
            operands=list(operands),
            attributes=attributes,
            loc=self.op.location,
            ip=self._point,
        )
        self.made.append(op)
        return list(op.results)

    def make_with_bodies(
        self,
        name: str,
        operands: Sequence[Any],
        kinds: Sequence[Any],
        bodies: Sequence[tuple[Sequence[Any], Callable[..., Sequence[Any]]]],
        **attributes: Any,
    ) -> list[Any]:
        """Build an op with regions of one block, and return its results.

        Args:
            name: The name of the op.
            operands: Its operands.
            kinds: The types of its results.
            bodies: For each region, the types of what its block takes, and what builds what it returns of these.
            attributes: The attributes of the op.
        """
        op = self._ir.Operation.create(
            name,
            results=list(kinds),
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

    def make_again(self, operands: Sequence[Any], kinds: Sequence[Any]) -> list[Any]:
        """Build the op itself with other operands, and return its results, which are of the types ``kinds``."""
        twin = self.op.operation.clone(ip=self._point)
        for index, value in enumerate(operands):
            twin.operands[index] = value
        for result, kind in zip(twin.results, kinds, strict=True):
            result.set_type(kind)
        self.made.append(twin.operation)
        return list(twin.results)

    def body(self, values: Sequence[Any]) -> list[Any]:
        """Build what the only block of the op does with ``values``, and return what it returns."""
        twin = self.op.operation.clone(ip=self._point)
        block = twin.regions[0].blocks[0]
        for argument, value in zip(block.arguments, values, strict=True):
            if argument.type != value.type:
                raise Unfit(f"{value.type} where {argument.type} is taken")
            argument.replace_all_uses_with(value)
        *body, end = block.operations
        for each in body:
            each.operation.move_before(twin.operation)
        returned = list(end.operands)
        twin.operation.erase()
        return returned

    def renamed(self, name: str) -> Any:
        """Return the result of the op as another op, which takes no operands, and is otherwise spelled the same."""
        op = self.op.operation
        text = op.get_asm(print_generic_op_form=True, enable_debug_info=True, use_local_scope=True)
        return self._parsed(text.replace(f'"{op.name}"', f'"{name}"', 1))

    def _parsed(self, text: str) -> Any:
        """Return the result of an op in its generic form, with its location."""
        op = self._ir.Operation.parse(text, context=self._context).operation
        self._point.insert(op)
        self.made.append(op)
        return op.results[0]

    def convert(self, value: Any, element: Any) -> Any:
        """Return ``value`` with elements of another type."""
        kind = self.tensor(self.shape(value.type), element, value.type.encoding)
        return value if kind == value.type else self.make("stablehlo.convert", [value], kind)

    def reshape(self, value: Any, shape: Sequence[int]) -> Any:
        """Return ``value`` with other sizes, which are all known."""
        kind = self.tensor(shape, value.type.element_type)
        return value if kind == value.type else self.make("stablehlo.reshape", [value], kind)

    def dimension(self, tensor: Any, index: int) -> Any:
        """Return the size of a dimension of a tensor as a number."""
        shape = self.shape(tensor.type)
        if not 0 <= index < len(shape):
            raise Unfit(f"dimension {index} of {tensor.type}")
        known = shape[index]
        if known is not None:
            return self.size(known)
        of_32 = self.tensor((), self.integer(32))
        asked = self.make("stablehlo.get_dimension_size", [tensor], of_32, dimension=self.number(index))
        return self.convert(asked, self.integer(DIMENSION_BITS))

    def joined(self, numbers: Sequence[Any], element: Any) -> Any:
        """Return numbers as a tensor of one dimension."""
        if not numbers:
            return self.sizes([])
        parts = [self.reshape(number, (1,)) for number in numbers]
        kind = self.tensor((len(parts),), element)
        return (
            parts[0] if len(parts) == 1 else self.make("stablehlo.concatenate", parts, kind, dimension=self.number(0))
        )

    def reshaped(self, value: Any, kind: Any, sizes: Sequence[Any]) -> Any:
        """Return ``value`` as a tensor of type ``kind`` with the sizes ``sizes``, which are numbers."""
        if all(size is not None for size in self.shape(kind)):
            return self.reshape(value, self.static(kind))
        of_sizes = self.joined(sizes, self.integer(DIMENSION_BITS))
        return self.make("stablehlo.dynamic_reshape", [value, of_sizes], kind)
