"""``python -m vhlo_tools.integrations.model_explorer MODEL``: start Model Explorer with a program and its node data."""

from __future__ import annotations

import sys
from typing import get_args

import click

from vhlo_tools.errors import VhloToolsError
from vhlo_tools.integrations.model_explorer.conversion import Form
from vhlo_tools.integrations.model_explorer.main import visualize


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option("--form", type=click.Choice(get_args(Form)), default="stablehlo", help="Whose names and types to show.")
@click.option("--target", metavar="TARGET", help="Also show what stands in the way of this version or release.")
@click.option("--host", default="localhost", show_default=True, help="The host of the server.")
@click.option("--port", type=int, default=8080, show_default=True, help="The port of the server.")
@click.option("--no-browser", is_flag=True, help="Open no browser.")
def main(models: tuple[str, ...], form: Form, target: str | None, host: str, port: int, no_browser: bool) -> None:
    """Show portable artifacts, and jax.export files, of any version in Model Explorer.

    Introductions and aliases are there as data of the nodes. Exit code 2: a file cannot be read, or the target is
    unknown.
    """
    try:
        visualize(models, form, target=target, host=host, port=port, open_browser=not no_browser)
    except (VhloToolsError, OSError) as error:
        click.echo(f"vhlo: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main(prog_name="python -m vhlo_tools.integrations.model_explorer")
