"""``vhlo opt`` and ``vhlo translate``, and ``vhlo shims``, which writes programs with upstream's names."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import command
from vhlo_tools.cli.options import force_option
from vhlo_tools.cli.upstream import COMMANDS, main
from vhlo_tools.files import write_atomically

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
    click.get_current_context().exit(main(program, arguments))


_MARK = "# Written by `vhlo shims`: runs `vhlo {command}` of the Python below."
_SHIM = '#!/bin/sh\n{mark}\nexec {python} -P -m vhlo_tools.cli.upstream {program} "$@"\n'


@command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@force_option
def shims(folder: Path, force: bool) -> None:
    """Write stablehlo-opt and stablehlo-translate to DIR, which is created if necessary.

    They run `vhlo opt` and `vhlo translate` with this Python. With DIR on the path, scripts for upstream's programs
    need no change.
    """
    written = {folder / program: started for program, started in COMMANDS.items()}
    for path, started in written.items():
        if not force and not _is_ours(path, started):
            raise click.UsageError(f"{path} exists and was not written by `vhlo shims`: --force replaces it")
    folder.mkdir(parents=True, exist_ok=True)
    for path, started in written.items():
        mark = _MARK.format(command=started)
        text = _SHIM.format(mark=mark, python=shlex.quote(sys.executable), program=path.name)
        write_atomically(path, [text.encode()], force=True)
        path.chmod(0o755)
        echo(path)


def _is_ours(path: Path, command: str) -> bool:
    """Whether a file can be replaced without loss."""
    if not path.exists():
        return not path.is_symlink()
    return path.is_file() and _MARK.format(command=command).encode() in path.read_bytes()
