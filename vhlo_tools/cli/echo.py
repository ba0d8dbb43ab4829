"""Output of text that can control neither the terminal nor a CI runner, whatever a file contains."""

from __future__ import annotations

import os
import sys

import click

from vhlo_tools.printable import printable_lines


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print lines as :func:`vhlo_tools.printable.printable_lines` returns them."""
    click.echo(printable_lines(str(text)), err=err, nl=nl)


def has_colours() -> bool:
    """Whether stdout shows colours: a terminal does, unless ``NO_COLOR`` is set; ``FORCE_COLOR`` forces them.

    Source: the conventions at no-color.org and force-color.org.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
