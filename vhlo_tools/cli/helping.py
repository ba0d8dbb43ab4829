"""Help: texts that fit the window, and groups of commands and options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

import click

from vhlo_tools.records import dataclass

# For each command, an example that works in the folder `examples/`, and the options that its help lists


@dataclass(frozen=True, slots=True)
class Help:
    example: str  # command lines; the last one is of the command
    usual: str = ""  # names of the options that ``--help`` lists; all if empty


#: By the words of the command after ``vhlo``.
HELP: Final[Mapping[str, Help]] = {
    "": Help("vhlo inspect keras_mlp.mlirbc"),
    "serialize": Help(
        "vhlo serialize saxpy.mlir --target jaxlib==0.4.31 -o saxpy.mlirbc",
        "output target expand weights signature strip_debug_info with_manifest force",
    ),
    "deserialize": Help("vhlo deserialize keras_mlp.mlirbc -o keras_mlp.mlir"),
    "retarget": Help(
        "vhlo retarget keras_mlp.mlirbc --target 1.4.0 -o older.mlirbc",
        "output target strip_debug_info engine expand allow_relaxed with_manifest force output_format",
    ),
    "check": Help(
        "vhlo check saxpy.mlir keras_mlp.mlirbc --target jaxlib==0.4.31",
        "target readable_by explain config show_settings exclude allow against baseline update_baseline quiet "
        "output_format",
    ),
    "diff": Help("vhlo diff saxpy.mlir saxpy.mlir"),
    "alias": Help("vhlo alias show transformer_step.mlir"),
    "alias clear": Help(
        "vhlo serialize transformer_step.mlir -o step.mlirbc\nvhlo alias clear step.mlirbc -o plain.mlirbc"
    ),
    "alias convert": Help(
        "vhlo serialize transformer_step.mlir -o step.mlirbc\n"
        "vhlo alias convert step.mlirbc --form module -o other.mlirbc"
    ),
    "alias set": Help("vhlo alias set keras_mlp.mlirbc --donor 0 -o donated.mlirbc"),
    "alias show": Help("vhlo alias show transformer_step.mlir"),
    "inspect": Help("vhlo inspect keras_mlp.mlirbc"),
    "compile": Help("vhlo compile saxpy.mlir --for libtpu==0.0.52@v5e"),
    "report": Help(
        "vhlo report keras_mlp.mlirbc -o keras_mlp.html", "output output_format target function max_nodes as_of force"
    ),
    "manifest": Help("vhlo manifest write keras_mlp.mlirbc\nvhlo manifest check keras_mlp.mlirbc"),
    "manifest check": Help("vhlo manifest write keras_mlp.mlirbc\nvhlo manifest check keras_mlp.mlirbc"),
    "manifest show": Help("vhlo manifest write keras_mlp.mlirbc\nvhlo manifest show keras_mlp.mlirbc"),
    "manifest sign": Help("vhlo manifest sign keras_mlp.mlirbc --private-key key.pem"),
    "manifest write": Help("vhlo manifest write jax_store"),
    "constants": Help("vhlo constants list keras_mlp.mlirbc"),
    "constants externalize": Help("vhlo constants externalize keras_mlp.mlirbc --min-size 64 -o program.mlirbc"),
    "constants extract": Help("vhlo constants extract keras_mlp.mlirbc -o weights.safetensors"),
    "constants list": Help("vhlo constants list keras_mlp.mlirbc"),
    "constants restore": Help(
        "vhlo constants externalize keras_mlp.mlirbc --min-size 64 -o p.mlirbc\n"
        "vhlo constants restore p.mlirbc --weights p.safetensors -o whole.mlirbc"
    ),
    "run": Help(
        "vhlo run saxpy.mlir -i 2.0 -i '[1, 2, 3, 4]' -i '[1, 1, 1, 1]'",
        "inputs engine handlers donated timeout probe output output_format",
    ),
    "golden": Help("vhlo golden record golden/ saxpy.mlir\nvhlo golden check golden/"),
    "golden check": Help("vhlo golden record golden/ saxpy.mlir\nvhlo golden check golden/"),
    "golden record": Help("vhlo golden record golden/ saxpy.mlir", "inputs name target seed engine ulp rtol force"),
    "verify": Help(
        "vhlo retarget keras_mlp.mlirbc --target 1.4.0 -o older.mlirbc\nvhlo verify keras_mlp.mlirbc older.mlirbc",
        "inputs rounds engines ulp rtol bisect output_format",
    ),
    "migrate": Help(
        "vhlo migrate jax_store/ --target 1.9.0 --output-dir moved/",
        "target dry_run output_dir backup verify expand confirm_with",
    ),
    "store": Help("vhlo store status jax_store/ --horizon 6m --as-of 2026-07-01"),
    "store status": Help(
        "vhlo store status jax_store/ --horizon 6m --as-of 2026-07-01",
        "horizon windows quiet fail_on_left exclude as_of output_format",
    ),
    "matrix": Help(
        "vhlo matrix saxpy.mlir --consumers jaxlib==0.4.31 --sizes",
        "producers consumers target no_run sizes timeout output_format output picture",
    ),
    "targets": Help("vhlo targets jaxlib==0.4.31"),
    "spec": Help("vhlo spec show tan_v1"),
    "spec diff": Help("vhlo spec diff 1.0.0 1.9.0"),
    "spec import": Help("vhlo spec import stablehlo/ --specs specs/"),
    "spec lint": Help("vhlo spec lint"),
    "spec list": Help("vhlo spec list"),
    "spec new-version": Help(
        "vhlo spec new-version 1.23.0 --op 'shapes/fold(operand) -> result'",
        "ops attributes types kinds cases feature brought dry_run",
    ),
    "spec probe": Help("vhlo spec probe"),
    "spec show": Help("vhlo spec show tan_v1"),
    "shims": Help("vhlo shims bin/"),
    "completion": Help("vhlo completion bash --install"),
}


# Output of ``--help``: one screen, with the usual options and an example; ``--help-all`` prints every option

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


def words_of(ctx: click.Context) -> str:
    """Return the words of a command after ``vhlo``."""
    return " ".join(ctx.command_path.split()[1:])


def _show_schema(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        # Imported here because few ask for it.
        from vhlo_tools.cli.schemas import output_schema
        from vhlo_tools.printable import json_text

        click.echo(json_text(output_schema(words_of(ctx)), indent=2))
        ctx.exit()


#: Every command that prints JSON takes it; the long help lists it.
_JSON_SCHEMA: Final = click.Option(
    ["--json-schema"],
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_schema,
    help="Show the JSON schema of what --output-format json prints, and exit.",
)


def prints_json(command: click.Command) -> bool:
    choices = [each.type for each in command.params if each.name == "output_format" and not command.hidden]
    return any(isinstance(each, click.Choice) and "json" in each.choices for each in choices)


def _help_of(ctx: click.Context) -> Help:
    return HELP[words_of(ctx)]


def _write_example(self: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    with formatter.section("Example"):
        for line in _help_of(ctx).example.splitlines():
            formatter.write(f"  $ {line}\n")


class Command(click.Command):
    """A command whose help fits a screen, and ends with an example."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return its parameters, with those that commands share."""
        return [*super().get_params(ctx), *([_JSON_SCHEMA] if prints_json(self) else []), _HELP_ALL]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        usual = [] if ctx.meta.get(_ALL) else _help_of(ctx).usual.split()
        options = [each for each in super().get_params(ctx) if isinstance(each, click.Option)]
        shown = [each for each in options if not usual or each.name in usual or each.name == "help"]
        shared = [_HELP_ALL] if usual else [_JSON_SCHEMA] if ctx.meta.get(_ALL) and prints_json(self) else []
        records = [each.get_help_record(ctx) for each in [*shown, *shared]]
        with formatter.section("Usual options" if usual else "Options"):
            formatter.write_dl([record for record in records if record is not None])

    format_epilog = _write_example


class Group(click.Group):
    """A group whose help names its commands in whole lines."""

    command_class: type[click.Command] | None = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        # Releases of click before 8.4 do not say what may have been meant.
        if name[:1] != "-" and self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            # Imported here because few calls are wrong.
            from difflib import get_close_matches

            near = get_close_matches(name, self.list_commands(ctx), n=1)
            ctx.fail(f"No such command {name!r}.{f' Did you mean {near[0]!r}?' if near else ''}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # That of click cuts what does not fit a line.
        members = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(sys.maxsize)) for name, each in members if each])

    format_epilog = _write_example


def command(name: str | None = None, **attributes: Any) -> Callable[[Callable[..., Any]], Command]:
    return click.command(name, cls=Command, **attributes)
