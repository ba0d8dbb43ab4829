"""``vhlo completion``: prints the script that makes a shell complete commands, options and their values."""

from __future__ import annotations

import click

from vhlo_tools.cli.completion_shells import SHELLS, script_of

__all__ = ["completion"]


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: str) -> None:
    r"""Print the script that makes SHELL complete commands, options, versions, releases and features.

    \b
    bash: vhlo completion bash > ~/.local/share/bash-completion/completions/vhlo
    zsh:  vhlo completion zsh > ~/.zfunc/_vhlo, where fpath has ~/.zfunc
    fish: vhlo completion fish > ~/.config/fish/completions/vhlo.fish
    """
    click.echo(script_of(shell), nl=False)
