"""``vhlo``: the group of commands, and what becomes of errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from vhlo_tools.cli import options
from vhlo_tools.errors import VhloToolsError

__all__ = ["cli", "main"]

# Each command is a module of this package with an object of the same name; it is imported when it is called.
_COMMANDS = {
    "serialize": "Write a program as a portable artifact.",
    "deserialize": "Turn an artifact into a program.",
    "retarget": "Move an artifact up or down to another version.",
    "strip": "Take the source locations out of an artifact.",
    "check": "Say who can read programs, and why others cannot.",
    "diff": "Show how two programs differ.",
    "alias": "Show, change and check which outputs are written over which inputs.",
    "inspect": "Show what a file is and holds.",
    "constants": "List, extract, externalize and restore the constants of an artifact.",
    "run": "Evaluate a program.",
    "golden": "Record programs with their outputs, and replay them.",
    "verify": "Compare two programs by what they compute.",
    "migrate": "Bring a store of programs to another version.",
    "store": "Watch the compatibility windows of a store.",
    "targets": "Show versions, releases, and what a target means.",
    "spec": "Show, compare, check and extend the specification of VHLO.",
    "opt": "Run passes on a program, as stablehlo-opt does.",
    "translate": "Serialize, deserialize and evaluate programs, as stablehlo-translate does.",
    "shims": "Write programs named stablehlo-opt and stablehlo-translate.",
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"vhlo_tools.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="vhlo-tools", prog_name="vhlo")
def cli() -> None:
    """StableHLO programs as versioned portable artifacts."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 fine, 1 the answer is no, 2 usage or unreadable input."""
    try:
        result = cli.main(args=arguments, prog_name="vhlo", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return 130
    except click.ClickException as error:
        error.show()
        return 2
    except VhloToolsError as error:
        return _fail(str(error), options.exit_code_of(error))
    except (BrokenPipeError, SystemExit):
        # Whoever read our output has stopped; click turns some of these into an exit. Python would complain once more
        # when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", 2)
    return result if isinstance(result, int) else 0


def _fail(message: str, code: int) -> int:
    click.echo(f"vhlo: {message}", err=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
