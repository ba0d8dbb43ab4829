"""Attributes as the bindings give them, past what they stumble over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["class_of", "elements_of", "leaves", "named_attributes"]


def leaves(attribute: Any) -> Iterator[Any]:
    """Yield what ``attribute`` is made of: what stands in lists and dictionaries, however deep, or itself."""
    pending = [attribute]
    while pending:
        each = pending.pop()
        kind = class_of(each)
        if kind == "ArrayAttr":
            pending += reversed(list(elements_of(each)))
        elif kind == "DictAttr":
            pending += reversed([value for _, value in named_attributes(each)])
        else:
            yield each


def class_of(attribute: Any) -> str:
    """Return the class that the bindings have for an attribute."""
    return type(attribute).__name__


def elements_of(array: Any) -> Iterator[Any]:
    """Yield the elements of an ``ArrayAttr``, but for those that the bindings have no class for."""
    for index in range(len(array)):
        yield from _at(array, index)


def named_attributes(attributes: Any) -> Iterator[tuple[str, Any]]:
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
