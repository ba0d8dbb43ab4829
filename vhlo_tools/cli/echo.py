"""Output of text: what a file contains can neither control the terminal nor a CI runner."""

from __future__ import annotations

import os
import sys

import click

from vhlo_tools.printable import printable_lines


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print lines to stdout, or to stderr, each as :func:`vhlo_tools.printable.printable_lines` returns it."""
    click.echo(printable_lines(str(text)), err=err, nl=nl)


def has_colours() -> bool:
    """Return whether stdout shows colours: a terminal does, unless ``NO_COLOR`` is set; ``FORCE_COLOR`` has any do so.

    Source: the conventions at no-color.org and force-color.org.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
