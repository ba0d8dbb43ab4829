"""``vhlo``: the group of commands, and the handling of errors."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any

import click

from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import Group
from vhlo_tools.errors import UnknownReleaseWarning, VhloToolsError
from vhlo_tools.system import CLOSED_OUTPUT

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Each command is an object in the module of the same name in this package, which is imported on a call of the command.
_MODULES = {"shims": "opt", "translate": "opt"}
# Most users need those of the first group; the titles of others say who needs them.
_GROUPS = {
    "Commands": {
        "inspect": "Show the format and contents of a file.",
        "report": "Write a page or a picture of a program or a store.",
        "serialize": "Write a program as a portable artifact.",
        "deserialize": "Convert an artifact to a program.",
        "retarget": "Retarget an artifact to an older or newer version.",
        "check": "Check which consumers can read programs, and why others cannot.",
        "migrate": "Migrate a store of programs to another version.",
        "store": "Watch the compatibility windows of a store.",
        "targets": "Show versions, releases, and the version of a target.",
        "run": "Evaluate a program.",
        "diff": "Show the differences of two programs.",
        "verify": "Compare the results of two programs.",
    },
    "For those who edit artifacts": {
        "alias": "Show and change input-output aliases.",
        "constants": "List, extract and externalize constants.",
        "manifest": "Write, check and sign the manifests of artifacts.",
    },
    "For maintainers of a dialect, an engine or a library": {
        "golden": "Record programs with their outputs, and replay them.",
        "matrix": "Let real releases write and read programs.",
        "compile": "Compile a program for a TPU or GPU that need not be there.",
        "spec": "Show, compare, check and extend the specification of VHLO.",
    },
    "In place of upstream's tools, and for your shell": {
        "opt": "Run passes on a program, as stablehlo-opt does.",
        "translate": "Serialize and evaluate programs, as stablehlo-translate does.",
        "shims": "Write programs named stablehlo-opt and stablehlo-translate.",
        "completion": "Let a shell complete commands and options.",
    },
}
_COMMANDS = {name: said for group in _GROUPS.values() for name, said in group.items()}

# The variable by which a shell asks for completion, as click names it.
_COMPLETING = "_VHLO_COMPLETE"

# What the package requires, but not for everything: where it cannot be installed, as in a browser, the rest works.
_REQUIRED = ("jaxlib", "ml_dtypes", "numpy")

# The commands whose exit code is an answer.
_ANSWERING = ("check", "compile", "diff", "golden", "manifest", "matrix", "migrate", "store", "verify")


def import_command(name: str = "") -> click.Command | None:
    if name not in _COMMANDS:
        return None
    command: click.Command = getattr(import_module(f"vhlo_tools.cli.{_MODULES.get(name, name)}"), name)
    return command


class _Lazy(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = import_command(cmd_name) or super().get_command(ctx, cmd_name)
        if command is None or _COMPLETING not in os.environ:
            return command
        # Imported here because only a shell asks for it.
        from vhlo_tools.cli.completers import complete_parameters

        return complete_parameters(command)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        # That of a group imports every command.
        items = [CompletionItem(name, help=said) for name, said in _COMMANDS.items() if name.startswith(incomplete)]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # A line for the options that every program has leaves the screen to the commands.
        formatter.write_paragraph()
        formatter.write(f"Options: {', '.join(name for each in self.get_params(ctx) for name in each.opts)}\n")
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Those of all sections stand below each other.
        width = max(map(len, _COMMANDS))
        for title, commands in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), said) for name, said in commands.items()])


def _show_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    # Imported here because few ask for it.
    from importlib.metadata import version

    from vhlo_tools.bytecode import is_compiled

    click.echo(f"vhlo, version {version('vhlo-tools')}{' (compiled)' if is_compiled() else ''}")
    ctx.exit()


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """StableHLO programs as versioned portable artifacts."""


#: What Python says where a thread has no memory for its stack, and where it has lost the error of what has none.
_LACKING_MEMORY = ("can't start new thread", "without exception set", "without setting an exception")


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code: 0 success, 1 negative result, 2 bad usage or unreadable input, 130 after Ctrl-C.

    If the reader of the output closes it: 141 where the exit code is an answer, and otherwise 0.
    """
    if _COMPLETING in os.environ:
        import vhlo_tools.cli.completion  # noqa: F401 - registers its shells
    exhausted, result = False, None
    try:
        with _shown_warnings():
            result = cli.main(args=arguments, prog_name="vhlo", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return 130
    except click.ClickException as error:
        shown = StringIO()
        error.show(shown)
        echo(shown.getvalue(), err=True, nl=False)
        return 2
    except VhloToolsError as error:
        return _fail(str(error), options.exit_code_of(error))
    except (BrokenPipeError, SystemExit):
        # The reader of the output has closed it; click turns some of these errors into an exit. Without the new stdout,
        # Python would report the error again on closing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        # Where the exit code is an answer, there is none: the code is that of a command that SIGPIPE ends.
        given = sys.argv[1:] if arguments is None else arguments
        return CLOSED_OUTPUT if given and given[0] in _ANSWERING else 0
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _REQUIRED:
            raise
        return _fail(
            f"{missing} is not installed, and this needs it: `pip install .` in a clone of vhlo_tools installs it", 2
        )
    except (MemoryError, RuntimeError, SystemError) as error:
        if not isinstance(error, MemoryError) and not str(error).endswith(_LACKING_MEMORY):
            raise
        exhausted = True
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", 2)
    if exhausted:
        # Here, where the frames of the error, which have what took it, have ended.
        return _fail("there is not enough memory for it: raise the limit of this process, or give it less at once", 2)
    return result if isinstance(result, int) else 0


@contextmanager
def _shown_warnings() -> Iterator[None]:
    """Show warnings of unknown releases as messages, each once; others as Python does."""
    told: set[str] = set()
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if not issubclass(category, UnknownReleaseWarning):
                show_others(message, category, *rest, **more)
            elif str(message) not in told:
                told.add(str(message))
                echo(f"vhlo: warning: {message}", err=True)

        warnings.simplefilter("always", UnknownReleaseWarning)
        warnings.showwarning = show
        yield


def _fail(message: str, code: int) -> int:
    echo(f"vhlo: {message}", err=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
