"""``vhlo translate``."""

from __future__ import annotations

import click


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def translate(arguments: tuple[str, ...]) -> None:
    """Serialize, deserialize and evaluate programs, with the arguments of stablehlo-translate: --help lists them."""
    from vhlo_tools.cli.upstream import main

    click.get_current_context().exit(main("vhlo translate", arguments))
