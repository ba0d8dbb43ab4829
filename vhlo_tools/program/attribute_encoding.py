"""Encoding of attributes without a form in VHLO as similar attributes with one, and decoding.

A unit attribute is written as ``true`` and an ``array<i32>`` as a dense tensor. The original form is recorded beside
them, in an attribute ``vhlo_tools.spelled`` of the same op, argument or result, so that reading restores it:
``{tags = "unit", sizes = "array<i32>"}``, and within lists and dictionaries ``{config = {"0" = "unit"}}``. Readers that
do not know the record see an additional attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from vhlo_tools.aliasing import ARGUMENT_ATTRIBUTES
from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import Context, ModuleOp, Operation, Provider, class_of, elements_of, named_attributes
from vhlo_tools.spec import find_op

#: The dialects whose attributes are encoded; ops of other dialects keep their attributes unchanged.
PORTABLE: Final = ("func", "stablehlo")

#: The name of the attribute that records the original forms.
_RECORD: Final = "vhlo_tools.spelled"

_UNIT: Final = "unit"
_UNNOTICED: Final = "a unit attribute, which XLA ignores"
#: By the identifier in the record: the class of the bindings, and the element type.
_ARRAYS: Final = {
    "array<i8>": ("DenseI8ArrayAttr", "i8"),
    "array<i16>": ("DenseI16ArrayAttr", "i16"),
    "array<i32>": ("DenseI32ArrayAttr", "i32"),
    "array<f32>": ("DenseF32ArrayAttr", "f32"),
    "array<f64>": ("DenseF64ArrayAttr", "f64"),
}
#: The maximum depth of nested attributes that are encoded, which no program needs; deeper ones are not changed.
_DEEPEST: Final = 100
#: The maximum number of elements of arrays restored from splats, whose dense tensors take only a few bytes.
_LARGEST: Final = 1 << 20
_WORDS: Final = {"UnitAttr": _UNIT, **{name: word for word, (name, _) in _ARRAYS.items()}}
_SIDES: Final = {"arg_attrs": "argument", "res_attrs": "result"}


def encode_attributes(provider: Provider, module: ModuleOp, told: Callable[[Operation, str], None]) -> None:
    """``told`` is called for every changed attribute, with its op and a message."""
    with module.context as context:
        encoder = _Encoder(provider, context)
        for op in provider.walk(module):
            dialect, _, short = str(op.name).partition(".")
            if dialect not in PORTABLE:
                continue

            def say(holder: str, name: str, words: str, op: Any = op) -> None:
                told(op, f"{name} of {holder} contains {words}, which is encoded as {_STANDS[words]}")

            is_function = op.name == "func.func"
            holder = f"@{op.attributes['sym_name'].value}" if is_function else str(op.name)
            own = {name: each for name, each in _discardable(op, short) if name not in _SIDES}
            for name, attribute in encoder.spell_all(own, holder, say).items():
                op.attributes[name] = attribute
            for side, word in _SIDES.items() if is_function else ():
                encoder.each_dictionary(
                    op,
                    side,
                    lambda index, held, word=word, holder=holder, say=say: {  # type: ignore[misc]
                        **held,
                        **encoder.spell_all(held, f"{word} {index} of {holder}", say),
                    },
                )


def is_encoded(artifact: Artifact) -> bool:
    return _RECORD.encode() in artifact.file.strings


def decode_attributes(provider: Provider, module: ModuleOp) -> None:
    """Leaves attributes that differ from the record, or are never encoded: the record may be of another program."""
    with module.context as context:
        encoder = _Encoder(provider, context)
        for op in provider.walk(module):
            dialect, _, short = str(op.name).partition(".")
            if dialect not in PORTABLE:
                continue
            if _RECORD in op.attributes:
                for name, attribute in encoder.decode_all(dict(_discardable(op, short))).items():
                    op.attributes[name] = attribute
                del op.attributes[_RECORD]
            for side in _SIDES if op.name == "func.func" else ():
                encoder.each_dictionary(op, side, lambda _, held: encoder.decoded(held))


class _Encoder:
    def __init__(self, provider: Provider, context: Context) -> None:
        self._ir = provider.ir
        self._context = context
        self._unfolded = 0

    def each_dictionary(self, op: Any, side: str, change: Callable[[int, dict[str, Any]], dict[str, Any]]) -> None:
        if side not in op.attributes:
            return
        before = list(op.attributes[side])
        after = []
        for index, dictionary in enumerate(before):
            held = dict(named_attributes(dictionary))
            # Attributes without a class in the bindings are missing, and would be lost.
            changed = change(index, held) if len(held) == len(dictionary) else held
            after.append(dictionary if changed == held else self._dictionary(changed))
        if after != before:
            op.attributes[side] = self._ir.ArrayAttr.get(after, context=self._context)

    def spell_all(self, held: dict[str, Any], holder: str, told: Callable[[str, str, str], None]) -> dict[str, Any]:
        """The attributes that change, and the record of their original forms."""
        changed, records = {}, {}
        for name, attribute in held.items():
            if name == _RECORD:
                continue
            found: dict[str, None] = {}
            if name in ARGUMENT_ATTRIBUTES and class_of(attribute) == "UnitAttr":
                # XLA ignores a unit attribute, but would not ignore `true`.
                other = record = self._ir.StringAttr.get(_UNIT, context=self._context)
                found[_UNNOTICED] = None
            else:
                other, record = self._encoded(attribute, found)
            if record is not None:
                changed[name], records[name] = other, record
                for words in found:
                    told(holder, name, words)
        return {**changed, _RECORD: self._dictionary(records)} if records else {}

    def decode_all(self, held: dict[str, Any]) -> dict[str, Any]:
        record = held.get(_RECORD)
        if class_of(record) != "DictAttr":
            return {}
        return {
            name: self._given_back(held[name], each)
            for name, each in named_attributes(record)
            if name in held and name != _RECORD
        }

    def decoded(self, held: dict[str, Any]) -> dict[str, Any]:
        return {name: each for name, each in {**held, **self.decode_all(held)}.items() if name != _RECORD}

    def _encoded(self, attribute: Any, found: dict[str, None], depth: int = 0) -> tuple[Any, Any]:
        """The record is ``None`` if the attribute is unchanged."""
        kind = class_of(attribute)
        if (word := _WORDS.get(kind)) is not None:
            found[word] = None
            other = (
                self._ir.BoolAttr.get(True, context=self._context) if word == _UNIT else self._dense(attribute, word)
            )
            return other, self._ir.StringAttr.get(word, context=self._context)
        parts = self._parts(attribute)
        if parts is None or depth == _DEEPEST:
            return attribute, None
        encoded = {key: self._encoded(each, found, depth + 1) for key, each in parts.items()}
        records = {key: record for key, (_, record) in encoded.items() if record is not None}
        if not records:
            return attribute, None
        return self._whole(kind, {key: other for key, (other, _) in encoded.items()}), self._dictionary(records)

    def _given_back(self, attribute: Any, record: Any, depth: int = 0) -> Any:
        if class_of(record) == "StringAttr":
            if record.value == _UNIT:
                stands = class_of(attribute) in ("BoolAttr", "StringAttr") and attribute.value in (True, _UNIT)
                return self._ir.UnitAttr.get(context=self._context) if stands else attribute
            return self._array(attribute, record.value)
        parts = self._parts(attribute)
        if parts is None or class_of(record) != "DictAttr" or depth == _DEEPEST:
            return attribute
        for key, each in named_attributes(record):
            if key in parts:
                parts[key] = self._given_back(parts[key], each, depth + 1)
        return self._whole(class_of(attribute), parts)

    def _parts(self, attribute: Any) -> dict[str, Any] | None:
        """``None`` for other attributes, or if an item is unreadable."""
        kind = class_of(attribute)
        if kind == "DictAttr":
            parts = dict(named_attributes(attribute))
        elif kind == "ArrayAttr":
            parts = {str(index): each for index, each in enumerate(elements_of(attribute))}
        else:
            return None
        return parts if len(parts) == len(attribute) else None

    def _whole(self, kind: str, parts: dict[str, Any]) -> Any:
        if kind == "DictAttr":
            return self._dictionary(parts)
        return self._ir.ArrayAttr.get(list(parts.values()), context=self._context)

    def _dictionary(self, parts: dict[str, Any]) -> Any:
        return self._ir.DictAttr.get(parts, context=self._context)

    def _dense(self, array: Any, word: str) -> Any:
        element = _ARRAYS[word][1]
        # MLIR prints the same digits for both.
        numbers = str(array)[len(f"array<{element}") : -1].removeprefix(":").strip()
        text = f"dense<{f'[{numbers}]' if numbers else ''}> : tensor<{len(array)}x{element}>"
        return self._ir.Attribute.parse(text, context=self._context)

    def _array(self, dense: Any, word: str) -> Any:
        name, element = _ARRAYS.get(word, ("", ""))
        if not name or class_of(dense) not in ("DenseIntElementsAttr", "DenseFPElementsAttr"):
            return dense
        if str(dense.type) != f"tensor<{len(dense)}x{element}>":
            return dense
        if dense.is_splat:
            self._unfolded += len(dense)
            if self._unfolded > _LARGEST:
                return dense
        return getattr(self._ir, name).get(list(dense), context=self._context)


_STANDS: Final = {
    _UNIT: "true",
    _UNNOTICED: "a string, which XLA ignores too",
    **dict.fromkeys(_ARRAYS, "a dense tensor"),
}


def _discardable(op: Operation, short: str) -> Iterator[tuple[str, Any]]:
    return ((name, each) for name, each in named_attributes(op.attributes) if not is_inherent(short, name, each))


def is_inherent(short: str, name: str, attribute: Any) -> bool:
    """VHLO has a form for inherent attributes, whatever their value."""
    kind = class_of(attribute)
    if name in _names_of(short):
        # Resources have no class in the bindings; what has a class may be a large constant, and is not printed.
        return kind != "DictAttr" and not (kind == "Attribute" and str(attribute).startswith("dense_resource<"))
    # An attribute of StableHLO, such as the dimension numbers of a dot, may be several attributes in VHLO.
    return "." not in name and str(attribute).startswith("#stablehlo")


@cache
def _names_of(short: str) -> frozenset[str]:
    """In any version of the op."""
    op = find_op(short)
    return frozenset(name for version in op.versions for name in version.attributes) if op else frozenset()
