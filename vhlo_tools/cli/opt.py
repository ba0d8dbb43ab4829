"""``vhlo opt``."""

from __future__ import annotations

import click


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def opt(arguments: tuple[str, ...]) -> None:
    """Run passes on a program, with the arguments of stablehlo-opt: --help lists them."""
    from vhlo_tools.cli.upstream import main

    click.get_current_context().exit(main("vhlo opt", arguments))
