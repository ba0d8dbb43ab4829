"""Attributes, locations and values of MLIR, as plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

# Kind of an MLIR location, in every release of the bindings
#
# jaxlib has a class for each kind from 0.10.1 on, and before that one class with a question for each.

LocationKind = Literal["call-site", "file", "fused", "name"]

#: The class of each kind, and the question.
_KINDS: Final[dict[LocationKind, tuple[str, str]]] = {
    "file": ("FileLineColLoc", "is_a_file"),
    "call-site": ("CallSiteLoc", "is_a_callsite"),
    "fused": ("FusedLoc", "is_a_fused"),
    "name": ("NameLoc", "is_a_name"),
}


def location_kind(location: Any) -> LocationKind | None:
    """Return ``None`` for a kind that is unknown or has no class in the bindings.

    The members of a kind have the same names in all releases: ``filename``, ``start_line`` and ``start_col``;
    ``callee`` and ``caller``; ``locations``; ``name_str`` and ``child_loc``.
    """
    name = class_of(location)
    for kind, (class_name, question) in _KINDS.items():
        if name == class_name or (hasattr(location, question) and getattr(location, question)()):
            return kind
    return None


# Access to attributes, with workarounds for limitations of the bindings


def leaves(attribute: Any) -> Iterator[Any]:
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


# Results of ops and arguments of blocks: their numbers, and their locations


def argument_number(value: Any) -> int:
    # Up to jaxlib 0.9.0 operands are of the class Value, which has no number.
    return int((value if hasattr(value, "arg_number") else _ir(value).BlockArgument(value)).arg_number)


def result_number(value: Any) -> int:
    return int((value if hasattr(value, "result_number") else _ir(value).OpResult(value)).result_number)


def relocate_arguments(block: Any, locations: Sequence[Any]) -> None:
    arguments = list(block.arguments)
    if all(hasattr(argument, "set_location") for argument in arguments):
        for argument, location in zip(arguments, locations, strict=True):
            argument.set_location(location)
        return
    # The bindings of jaxlib 0.8 cannot: others take the place of the arguments.
    for argument, location in zip(arguments, locations, strict=True):
        argument.replace_all_uses_with(block.add_argument(argument.type, location))
    for _ in arguments:
        block.erase_argument(0)


def _ir(value: Any) -> Any:
    from vhlo_tools.bindings.providers import provider_of

    provider = provider_of(value)
    assert provider is not None, f"{type(value)} is of no provider"
    return provider.ir
