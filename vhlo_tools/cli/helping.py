"""Output of ``--help``: one screen, with the usual options and an example; ``--help-all`` prints every option."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import click

if TYPE_CHECKING:
    from vhlo_tools.cli.help_texts import Help

_Function = TypeVar("_Function", bound=Callable[..., Any])


class OptionDecorator(Protocol):
    """Type of the result of ``click.option``, for options that several commands have."""

    def __call__(self, function: _Function, /) -> _Function: ...


_ALL: Final = "vhlo_tools.help_all"


def _show_all(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


#: Every command takes it; the help of those with more options than fit a screen names it.
_HELP_ALL: Final = click.Option(
    ["--help-all"],
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_all,
    help="Show all options and exit.",
)


def _help_of(ctx: click.Context) -> Help:
    # Imported here because few runs print help.
    from vhlo_tools.cli.help_texts import HELP

    return HELP[" ".join(ctx.command_path.split()[1:])]


def _write_example(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    with formatter.section("Example"):
        for line in _help_of(ctx).example.splitlines():
            formatter.write(f"  $ {line}\n")


class Command(click.Command):
    """A command whose help fits a screen, and ends with an example."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return its parameters, with that of the long help."""
        return [*super().get_params(ctx), _HELP_ALL]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        usual = () if ctx.meta.get(_ALL) else _help_of(ctx).usual
        options = [each for each in super().get_params(ctx) if isinstance(each, click.Option)]
        shown = [each for each in options if not usual or each.name in usual or each.name == "help"]
        records = [each.get_help_record(ctx) for each in [*shown, *([_HELP_ALL] if usual else [])]]
        with formatter.section("Usual options" if usual else "Options"):
            formatter.write_dl([record for record in records if record is not None])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_example(ctx, formatter)


class Group(click.Group):
    command_class: type[click.Command] | None = Command

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_example(ctx, formatter)


def command(name: str | None = None, **attributes: Any) -> Callable[[Callable[..., Any]], Command]:
    return click.command(name, cls=Command, **attributes)
