"""Output of text: what a file contains can neither control the terminal nor a CI runner."""

from __future__ import annotations

import click

from vhlo_tools.printable import printable_lines

__all__ = ["echo"]


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print lines to stdout, or to stderr, each as :func:`vhlo_tools.printable.printable_lines` returns it."""
    click.echo(printable_lines(str(text)), err=err, nl=nl)
