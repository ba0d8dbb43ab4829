"""Attributes that have no form in VHLO, in the nearest form that has, and back.

A unit attribute is written as ``true`` and an ``array<i32>`` as a dense tensor. What they were is written beside them,
in an attribute called ``vhlo_tools.spelled`` of the same op, argument or result, so that reading gives them back:
``{tags = "unit", sizes = "array<i32>"}``, and within lists and dictionaries ``{config = {"0" = "unit"}}``. Whoever does
not know it sees an attribute more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from vhlo_tools.aliasing import ARGUMENT_ATTRIBUTES
from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import Context, ModuleOp, Operation, Provider, class_of, elements_of, named_attributes
from vhlo_tools.program.inherent import PORTABLE, is_inherent

__all__ = ["give_back", "is_spelled", "spell"]

#: The name of the attribute that says what others were.
_RECORD: Final = "vhlo_tools.spelled"

_UNIT: Final = "unit"
_UNNOTICED: Final = "unit, of which XLA takes no notice"
#: By the word for them: the class that the bindings have, and the type of the elements.
_ARRAYS: Final = {
    "array<i8>": ("DenseI8ArrayAttr", "i8"),
    "array<i16>": ("DenseI16ArrayAttr", "i16"),
    "array<i32>": ("DenseI32ArrayAttr", "i32"),
    "array<f32>": ("DenseF32ArrayAttr", "f32"),
    "array<f64>": ("DenseF64ArrayAttr", "f64"),
}
#: Attributes nest as deep as somebody likes, but no program needs this; deeper ones stay as they are.
_DEEPEST: Final = 100
#: So many elements are given back to arrays of which all elements are equal: their dense tensors take a few bytes.
_LARGEST: Final = 1 << 20
_WORDS: Final = {"UnitAttr": _UNIT, **{name: word for word, (name, _) in _ARRAYS.items()}}
_SIDES: Final = {"arg_attrs": "argument", "res_attrs": "result"}


def spell(provider: Provider, module: ModuleOp, told: Callable[[Operation, str], None]) -> None:
    """Bring the attributes of ``module`` into a form that VHLO has, in place.

    Args:
        provider: The bindings.
        module: The module.
        told: Told of every attribute that changed: what holds it, and how it stands now.
    """
    with module.context as context:
        speller = _Speller(provider, context)
        for op in provider.walk(module):
            dialect, _, short = str(op.name).partition(".")
            if dialect not in PORTABLE:
                continue

            def say(holder: str, name: str, words: str, op: Any = op) -> None:
                told(op, f"{name} of {holder} holds {words}, which stands as {_STANDS[words]}")

            is_function = op.name == "func.func"
            holder = f"@{op.attributes['sym_name'].value}" if is_function else str(op.name)
            own = {
                name: attribute
                for name, attribute in named_attributes(op.attributes)
                if not is_inherent(short, name, attribute) and name not in _SIDES
            }
            for name, attribute in speller.spell_all(own, holder, say).items():
                op.attributes[name] = attribute
            for side, word in _SIDES.items() if is_function else ():
                speller.each_dictionary(
                    op,
                    side,
                    lambda index, held, word=word, holder=holder, say=say: {  # type: ignore[misc]
                        **held,
                        **speller.spell_all(held, f"{word} {index} of {holder}", say),
                    },
                )


def is_spelled(artifact: Artifact) -> bool:
    """Tell whether an artifact says that attributes were others once."""
    return _RECORD.encode() in artifact.file.strings


def give_back(provider: Provider, module: ModuleOp) -> None:
    """Give the attributes of ``module`` the form that they had before :func:`spell`, in place.

    What was changed since, so that the record no longer fits it, stays. So does what :func:`spell` leaves alone, for
    anybody may have written the record.
    """
    with module.context as context:
        speller = _Speller(provider, context)
        for op in provider.walk(module):
            dialect, _, short = str(op.name).partition(".")
            if dialect not in PORTABLE:
                continue
            if _RECORD in op.attributes:
                own = {
                    name: attribute
                    for name, attribute in named_attributes(op.attributes)
                    if not is_inherent(short, name, attribute)
                }
                for name, attribute in speller.give_back_all(own).items():
                    op.attributes[name] = attribute
                del op.attributes[_RECORD]
            for side in _SIDES if op.name == "func.func" else ():
                speller.each_dictionary(
                    op, side, lambda _, held: {**_without_record(held), **speller.give_back_all(held)}
                )


class _Speller:
    """Brings attributes into another form and back.

    Args:
        provider: The bindings.
        context: The context of the attributes.
    """

    def __init__(self, provider: Provider, context: Context) -> None:
        self._ir = provider.ir
        self._context = context
        self._unfolded = 0

    def each_dictionary(self, op: Any, side: str, change: Callable[[int, dict[str, Any]], dict[str, Any]]) -> None:
        """Replace the attributes of every argument or result of a function by what ``change`` makes of them."""
        if side not in op.attributes:
            return
        before = list(op.attributes[side])
        after = []
        for index, dictionary in enumerate(before):
            held = dict(named_attributes(dictionary))
            # What the bindings have no class for is not given, and would be lost.
            changed = change(index, held) if len(held) == len(dictionary) else held
            after.append(dictionary if changed == held else self._dictionary(changed))
        if after != before:
            op.attributes[side] = self._ir.ArrayAttr.get(after, context=self._context)

    def spell_all(self, held: dict[str, Any], holder: str, told: Callable[[str, str, str], None]) -> dict[str, Any]:
        """Return those of the attributes ``held`` that change, and the record of what they were."""
        changed, records = {}, {}
        for name, attribute in held.items():
            if name == _RECORD:
                continue
            found: dict[str, None] = {}
            if name in ARGUMENT_ATTRIBUTES and class_of(attribute) == "UnitAttr":
                # XLA takes no notice of a unit, and would of `true`.
                other = record = self._ir.StringAttr.get(_UNIT, context=self._context)
                found[_UNNOTICED] = None
            else:
                other, record = self._spelled(attribute, found)
            if record is not None:
                changed[name], records[name] = other, record
                for words in found:
                    told(holder, name, words)
        return {**changed, _RECORD: self._dictionary(records)} if records else {}

    def give_back_all(self, held: dict[str, Any]) -> dict[str, Any]:
        """Return those of the attributes ``held`` that were others once, as they were."""
        record = held.get(_RECORD)
        if class_of(record) != "DictAttr":
            return {}
        return {
            name: self._given_back(held[name], each)
            for name, each in named_attributes(record)
            if name in held and name != _RECORD
        }

    def _spelled(self, attribute: Any, found: dict[str, None], depth: int = 0) -> tuple[Any, Any]:
        """Return an attribute in its other form, and what it was, which is ``None`` if it stays as it is."""
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
        spelled = {key: self._spelled(each, found, depth + 1) for key, each in parts.items()}
        records = {key: record for key, (_, record) in spelled.items() if record is not None}
        if not records:
            return attribute, None
        return self._whole(kind, {key: other for key, (other, _) in spelled.items()}), self._dictionary(records)

    def _given_back(self, attribute: Any, record: Any, depth: int = 0) -> Any:
        if class_of(record) == "StringAttr":
            if record.value == _UNIT:
                stands = class_of(attribute) in ("BoolAttr", "StringAttr") and attribute.value in (True, _UNIT)
                return self._ir.UnitAttr.get(context=self._context) if stands else attribute
            return self._array(attribute, record.value)
        parts = self._parts(attribute)
        if parts is None or class_of(record) != "DictAttr" or depth == _DEEPEST:
            return attribute
        records = dict(named_attributes(record))
        return self._whole(
            class_of(attribute),
            {
                key: self._given_back(each, records[key], depth + 1) if key in records else each
                for key, each in parts.items()
            },
        )

    def _parts(self, attribute: Any) -> dict[str, Any] | None:
        """Return what is in a list or a dictionary by number or name; ``None`` if it is neither, or not all is seen."""
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
        # MLIR prints both with the same digits.
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
    _UNNOTICED: "a string, of which it takes none either",
    **dict.fromkeys(_ARRAYS, "a dense tensor"),
}


def _without_record(held: dict[str, Any]) -> dict[str, Any]:
    return {name: attribute for name, attribute in held.items() if name != _RECORD}
