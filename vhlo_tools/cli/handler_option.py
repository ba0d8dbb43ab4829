"""Option for handlers of custom calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from vhlo_tools.cli.helping import OptionDecorator

handler_option: OptionDecorator = click.option(
    "--handler",
    "handlers",
    multiple=True,
    metavar="TARGET=MODULE:FUNCTION",
    help="Compute custom calls of TARGET by a function in Python, which receives the call and an array for each "
    "operand, and returns an array for each result. The module is also searched in the current directory.",
)


def load_handlers(texts: Sequence[str]) -> dict[str, Callable[..., Any]]:
    return dict(map(_loaded, texts))


def _loaded(text: str) -> tuple[str, Callable[..., Any]]:
    # Names of modules and functions contain no '=', but targets may.
    target, _, place = text.rpartition("=")
    module, _, name = place.partition(":")
    if not (target and module and name):
        raise click.UsageError(f"{text!r} is not a handler: expected TARGET=MODULE:FUNCTION, as in my_op=kernels:my_op")
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
        raise click.UsageError(f"the handler {text!r} is a {type(function).__qualname__}, not a function")
    return target, function
