"""Access to attributes, with workarounds for limitations of the bindings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def leaves(attribute: Any) -> Iterator[Any]:
    """Yield the elements of nested lists and dictionaries, or the attribute itself."""
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
    return type(attribute).__name__


def elements_of(array: Any) -> Iterator[Any]:
    """Elements without a class in the bindings are left out."""
    for index in range(len(array)):
        yield from _at(array, index)


def named_attributes(attributes: Any) -> Iterator[tuple[str, Any]]:
    """The items of the bindings' own map differ between releases."""
    for each in attributes:
        if not isinstance(each, str):
            # Raises where `each.name` crashes the process: the name is not UTF-8.
            repr(each)
        name = each if isinstance(each, str) else each.name
        # Not `each.attr`, which crashes the process in cases where this raises.
        yield from ((name, attribute) for attribute in _at(attributes, name))


def names_without_class(attributes: Any) -> list[str]:
    names = [each if isinstance(each, str) else each.name for each in attributes]
    return [name for name in names if not list(_at(attributes, name))]


def _at(holder: Any, key: Any) -> Iterator[Any]:
    """Yield the item at ``key``, except complex tensors and locations, for which the bindings have no class."""
    try:
        yield holder[key]
    except TypeError:
        return
    except KeyError:
        # The bindings end a name at a NUL byte, and look for the rest in vain.
        raise RuntimeError("a name contains a NUL byte") from None
