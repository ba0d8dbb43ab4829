"""Handlers of custom calls, named on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

__all__ = ["handler_option", "load_handlers"]

handler_option = click.option(
    "--handler",
    "handlers",
    multiple=True,
    metavar="TARGET=MODULE:FUNCTION",
    help="Compute custom calls of TARGET by a function in Python, which gets the call and an array for each operand, "
    "and returns an array for each result. The module is looked for in the current directory too.",
)


def load_handlers(texts: Sequence[str]) -> dict[str, Callable[..., Any]]:
    """Return the handlers that options name.

    Args:
        texts: The values of the options.

    Raises:
        click.UsageError: If one names no function.
    """
    return dict(map(_loaded, texts))


def _loaded(text: str) -> tuple[str, Callable[..., Any]]:
    # Names of modules and functions hold no '=', which targets may.
    target, _, place = text.rpartition("=")
    module, _, name = place.partition(":")
    if not (target and module and name):
        raise click.UsageError(f"{text!r} names no handler: expected TARGET=MODULE:FUNCTION, as in my_op=kernels:my_op")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        function: Any = import_module(module)
        for each in name.split("."):
            function = getattr(function, each)
    except (ImportError, AttributeError) as error:
        raise click.UsageError(f"the handler {text!r} cannot be loaded: {error}") from error
    if not callable(function):
        raise click.UsageError(f"the handler {text!r} is a {type(function).__qualname__}, and not a function")
    return target, function
