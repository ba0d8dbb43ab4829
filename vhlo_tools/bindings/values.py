"""Results of ops and arguments of blocks: their numbers, and their locations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


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
