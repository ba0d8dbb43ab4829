"""``vhlo completion``: prints the script that makes a shell complete commands, options and their values."""

from __future__ import annotations

import os
from pathlib import Path

import click

from vhlo_tools.cli.completion_shells import SHELLS, script_of
from vhlo_tools.cli.echo import echo
from vhlo_tools.cli.helping import command


@command()
@click.argument("shell", type=click.Choice(list(SHELLS)), required=False)
@click.option("--install", "installs", is_flag=True, help="Install it for you, instead of printing it.")
def completion(shell: str | None, installs: bool) -> None:
    """Print the script that makes SHELL complete commands, options, versions, releases and features.

    By default SHELL is the one that the variable SHELL names. With --install it is written to where the shell finds it:
    fish in its folder of completions, bash and zsh by a line in ~/.bashrc or ~/.zshrc.
    """
    chosen = shell or _shell_of_user()
    if not installs:
        click.echo(script_of(chosen), nl=False)
        return
    # Imported here because one installs once.
    from vhlo_tools.cli.completion_install import install

    for path in install(chosen):
        echo(f"wrote {path}")
    echo(f"start a new {chosen}, and press Tab after vhlo")


def _shell_of_user() -> str:
    name = Path(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        raise click.UsageError(f"name the shell: {', '.join(SHELLS)}")
    return name
