"""``vhlo opt`` and ``vhlo translate``."""

from __future__ import annotations

import click

_OWN_OPTIONS = {"ignore_unknown_options": True, "help_option_names": []}


@click.command(context_settings=_OWN_OPTIONS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def opt(arguments: tuple[str, ...]) -> None:
    """Run passes on a program, with the arguments of stablehlo-opt: --help lists them."""
    _run("vhlo opt", arguments)


@click.command(context_settings=_OWN_OPTIONS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def translate(arguments: tuple[str, ...]) -> None:
    """Serialize, deserialize and evaluate programs, with the arguments of stablehlo-translate: --help lists them."""
    _run("vhlo translate", arguments)


def _run(program: str, arguments: tuple[str, ...]) -> None:
    from vhlo_tools.cli.upstream import main

    click.get_current_context().exit(main(program, arguments))
