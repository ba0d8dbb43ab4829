"""``vhlo compile``: shows what the compiler of an accelerator makes of a program."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo, show_facts
from vhlo_tools.cli.helping import command

if TYPE_CHECKING:
    from vhlo_tools.releases import Compilation, CompiledAlias


@command()
@options.input_argument("FILE")
@click.option(
    "--for",
    "release",
    metavar="RELEASE",
    required=True,
    help="The release of a plugin, and the device: libtpu==0.0.52@v5e:2x2, jax-cuda13-pjrt==0.12.0.1@h100.",
)
@click.option("--hlo", metavar="FILE", help="Write the optimized program to FILE, a serialized HloModuleProto.")
@options.force_option
@options.read_in_time_option
@options.provider_option
@options.format_option
def compile(source: str, release: str, hlo: str | None, force: bool, provider: str | None, output_format: str) -> None:  # noqa: A001
    """Compile FILE for an accelerator, which need not be there.

    Show which aliases and donors the compiler kept, the memory that the program needs on each device, and what an
    execution costs, as far as the compiler says. An artifact is compiled as it is, another program as it would be
    written for RELEASE. Exit code 1 if an alias was not kept.
    """
    program, name = options.read_program(source)
    compiled = api.compile_for(
        program, release, name=name, provider=provider, say=lambda line: echo(f"vhlo: {line}", err=True)
    )
    if hlo is not None and compiled.hlo is None:
        raise click.UsageError(f"{release} does not give its optimized program: leave --hlo out")
    if hlo is not None and compiled.hlo is not None:
        options.write_output(hlo, [compiled.hlo], force=force, binary=True)
    if output_format == "json":
        options.echo_json(_values(compiled))
    else:
        show_facts(f"{compiled.program} on {compiled.release}", compiled.facts())
    click.get_current_context().exit(1 if compiled.lost else 0)


def _values(compiled: Compilation) -> dict[str, object]:
    aliases = [
        {
            "parameter": each.declared.parameter_number,
            "parameter_index": list(each.declared.parameter_index),
            "declared_output": None if (index := _declared(each)) is None else list(index),
            "output": None if each.output_index is None else list(each.output_index),
            "kept": each.kept,
            "reason": each.reason or None,
        }
        for each in compiled.aliases or ()
    ]
    held = asdict(compiled)
    return {
        "path": compiled.program,
        "ok": not compiled.lost,
        "release": compiled.release,
        "aliases": None if compiled.aliases is None else aliases,
        **{name: held[name] for name in ("memory", "costs", "seconds")},
    }


def _declared(each: CompiledAlias) -> tuple[int, ...] | None:
    index: tuple[int, ...] | None = getattr(each.declared, "output_index", None)
    return index
