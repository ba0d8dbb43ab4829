"""``vhlo alias``: shows and changes which outputs of a program may overwrite which inputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeVar, get_args

import click

from vhlo_tools import api
from vhlo_tools.aliasing import (
    Alias,
    AliasConfig,
    Array,
    CallAliases,
    Declared,
    Donor,
    Form,
    ProgramAliases,
    Signature,
    format_index,
    parse_aliases,
    parse_donors,
    subshape,
)
from vhlo_tools.artifact import Artifact, JaxContainer, Making
from vhlo_tools.cli import options
from vhlo_tools.cli.display import Column, echo, show_table
from vhlo_tools.cli.helping import Group, OptionDecorator
from vhlo_tools.cli.reports import fields_of
from vhlo_tools.errors import AliasError, InvalidProgramError
from vhlo_tools.files import JaxSignature, JaxValue, Kind, decode_jax_export, read_signature, recognise

# Output of ``vhlo alias``: the aliases of a program as JSON, and as tables

_OUTPUT: Final = (Column("output", whole=True), Column("parameter", whole=True))
_CALLER: Final = (Column("argument", whole=True),)
_VALUE: Final = (Column("shape"), Column("kind", style="cyan", whole=True), Column("written on"), Column("name"))


def aliases_as_json(program: ProgramAliases, signature: JaxSignature | None) -> dict[str, Any]:
    """``signature`` is that of a jax.export file."""
    declared = program.declared
    parameters = declared.signature.parameters

    def described(each: Alias | Donor) -> dict[str, Any]:
        """Describe its parameter, for a jax.export file with the argument of the caller."""
        number = each.parameter_number
        exists = 0 <= number < len(parameters)
        name = program.parameters[number].name if exists else None
        said = {}
        if signature:
            if exists and number < len(signature.main_arguments):
                name = signature.main_arguments[number]
            said = {
                "caller_argument": next((at for at, one in enumerate(signature.arguments) if one.main == number), None)
            }
        shape = subshape(parameters[number], each.parameter_index) if exists else None
        return {**fields_of(each), "form": declared.form_of(each), "name": name, "shape": shape and str(shape), **said}

    def aliased(each: Alias) -> dict[str, Any]:
        shape = subshape(declared.signature.result, each.output_index)
        name = _output_name(program, signature, each)
        return {**described(each), "output_shape": shape and str(shape), "output_name": name}

    return {
        "function": program.function,
        "aliases": list(map(aliased, declared.aliases)),
        "donors": list(map(described, declared.donors)),
        "calls": [
            {"path": call.path, "target": call.target, "aliases": list(map(fields_of, call.aliases))}
            for call in program.calls
        ],
    }


def _output_name(program: ProgramAliases, signature: JaxSignature | None, each: Alias) -> str | None:
    number = each.output_index[0] if each.output_index else 0
    if signature and 0 <= number < len(signature.main_results):
        return signature.main_results[number]
    return program.results[number].name if 0 <= number < len(program.results) else None


def show_aliases(program: ProgramAliases, signature: JaxSignature | None) -> None:
    described = aliases_as_json(program, signature)
    rows = [_row(each, format_index(each["output_index"]), each["kind"]) for each in described["aliases"]]
    rows += [_row(each, "", "donor") for each in described["donors"]]
    if rows:
        show_table([*_OUTPUT, *(_CALLER if signature else ()), *_VALUE], rows)
    else:
        echo("no aliases, no donors" if program.function else "no function main, so no aliases, no donors")
    for call in program.calls:
        echo(f"{call.path}, {call.target}{':' if call.aliases else ': no aliases'}")
        for each in call.aliases:
            operand = f"({each.parameter_number}, {format_index(each.parameter_index)})"
            echo(f"  result {format_index(each.output_index)} over operand {operand}")


def _row(each: dict[str, Any], output: str, kind: str) -> tuple[str, ...]:
    index = format_index(each["parameter_index"]) if each["parameter_index"] else ""
    parameter = f"{each['parameter_number']}{' ' * bool(index)}{index}"
    caller = []
    if "caller_argument" in each:
        caller = ["" if each["caller_argument"] is None else str(each["caller_argument"])]
    return (output, parameter, *caller, each["shape"] or "none", kind, each["form"], each["name"] or "")


_Entry = TypeVar("_Entry", Alias, Donor)

_NUMBERS: Final = re.compile(r"\s*(\d+)\s*=\s*(\d+)\s*")
_LONG: Final = re.compile(r"\s*(\{[^}]*\})\s*=\s*(\d+|\([^)]*\))\s*(?:,\s*(may-alias|must-alias)\s*)?")
_NUMBER: Final = re.compile(r"\s*(\d+)\s*")


@click.group(cls=Group)
def alias() -> None:
    """Show and change which outputs of a program may overwrite which inputs.

    `show` accepts any program; commands that change aliases accept artifacts and jax.export files, and edit their
    bytes. `vhlo check` finds mistakes in aliases.
    """


def call_option(what: str) -> OptionDecorator:
    return click.option(
        "--call",
        metavar="PATH|TARGET",
        help=f"{what} the custom call at this path, as `show --calls` names it, or all calls of this target.",
    )


@alias.command()
@options.input_argument("PROGRAM")
@click.option("--calls", is_flag=True, help="Show all custom calls, not only those with aliases.")
@options.provider_option
@options.format_option
def show(source: str, calls: bool, provider: str | None, output_format: str) -> None:
    """Show the aliases and donors of PROGRAM.

    An alias is an output that is written over a parameter; a donor is a parameter that any output may use.
    """
    artifact, signature = _opened(source, provider)
    program = artifact.declared_aliases()
    if calls:
        program = replace(program, calls=artifact.custom_calls())
    unknown = [each for each in artifact.alias_findings() if each.unknown]
    if output_format == "json":
        options.echo_json(aliases_as_json(program, signature) | {"unknown": [each.feature for each in unknown]})
        return
    options.report_findings(unknown)
    show_aliases(program, signature)


@alias.command("set")
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@click.option(
    "--alias",
    "aliases",
    multiple=True,
    metavar="OUTPUT=PARAMETER",
    help="Numbers, 0=1; or the form of HLO, '{0}=(1,{}),must-alias'. With --call, RESULT=OPERAND. May be repeated.",
)
@click.option("--donor", "donors", multiple=True, metavar="PARAMETER", help="A number; or '(1,{0})'. May be repeated.")
@click.option(
    "--caller",
    is_flag=True,
    help="Of a jax.export file, count the arguments and results of the function's caller instead of those of main.",
)
@click.option("--keep", is_flag=True, help="Keep the existing aliases and donors.")
@call_option("Write output_operand_aliases of")
@click.option(
    "--form",
    type=click.Choice(get_args(Form)),
    help="The form of the aliases: attributes of arguments, or one attribute of the module. By default unchanged.",
)
@options.force_option
@options.reporting
def set_(
    source: str,
    output: str,
    aliases: tuple[str, ...],
    donors: tuple[str, ...],
    caller: bool,
    keep: bool,
    call: str | None,
    form: Form | None,
    force: bool,
) -> dict[str, Any]:
    """Set aliases and donors of ARTIFACT.

    Without --keep all others are removed. Parameters and outputs are those of `main`, numbered as by `show`; with
    --call, operands and results of calls.
    """
    if not (aliases or donors):
        raise click.UsageError("expected --alias or --donor; `vhlo alias clear` removes all")
    if call is not None:
        if donors or caller or form:
            raise click.UsageError(
                "a custom call can only have aliases: --donor, --caller and --form cannot be used with --call"
            )
        if may := next((each for each in aliases if "may-alias" in each), None):
            raise click.UsageError(
                f"{may!r}: an alias of a custom call is always a must-alias; expected RESULT=OPERAND, such as 0=1"
            )
        must = [replace(_parsed_alias(each), kind="must-alias") for each in aliases]

        def aliases_of(said: CallAliases) -> list[Alias]:
            kept = said.aliases if keep else ()
            return [*kept, *(_placed(said.signature, each) for each in must)]

        return _edited(source, output, force, lambda opened: api.with_call_aliases(opened, call, aliases_of))
    new: tuple[list[Alias], list[Donor]] = (list(map(_parsed_alias, aliases)), list(map(_parsed_donor, donors)))
    if caller:
        data, name = options.read_input(source)
        if source == options.STANDARD or recognise(data, name) is not Kind.JAX_EXPORT:
            raise click.UsageError("--caller requires a jax.export file, which specifies the arguments of the caller")
        new = _of_main(read_signature(decode_jax_export(data)), *new)

    def change(declared: Declared) -> AliasConfig:
        config = declared.config() if keep else AliasConfig(declared.signature)
        for each in (_placed(declared.signature, each) for each in new[0]):
            config.set_up_alias(each.output_index, each.parameter_number, each.parameter_index, each.kind)
        for donor in new[1]:
            config.set_up_donor(donor.parameter_number, donor.parameter_index)
        return config

    return _edited(source, output, force, lambda opened: api.with_aliases(opened, change, form))


@alias.command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@call_option("Remove only those of")
@options.force_option
@options.reporting
def clear(source: str, output: str, call: str | None, force: bool) -> dict[str, Any]:
    """Remove all aliases and donors of `main` from ARTIFACT. With --call, remove those of custom calls."""

    def edit(opened: Artifact | JaxContainer) -> Artifact | JaxContainer:
        if call is not None:
            return api.with_call_aliases(opened, call, lambda said: [])
        return api.with_aliases(opened, lambda declared: AliasConfig(declared.signature))

    return _edited(source, output, force, edit)


@alias.command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@click.option("--form", type=click.Choice(get_args(Form)), required=True, help="The form of the aliases.")
@options.force_option
@options.reporting
def convert(source: str, output: str, form: Form, force: bool) -> dict[str, Any]:
    """Write the aliases of ARTIFACT on arguments, or on the module. Donors stay on arguments."""
    return _edited(source, output, force, lambda opened: api.with_aliases(opened, Declared.config, form))


def _edited(
    source: str, output: str, force: bool, edit: Callable[[Artifact | JaxContainer], Artifact | JaxContainer]
) -> dict[str, Any]:
    options.check_output(output, force=force, binary=True)
    written = edit(options.read_artifact(source))
    options.write_artifact(output, written, force=force, made=Making("alias"))
    artifact = written.artifacts[0] if isinstance(written, JaxContainer) else written
    report = options.artifact_report(written, output)
    return {**report, **aliases_as_json(artifact.declared_aliases(), None), "findings": artifact.alias_findings()}


def _of_main(signature: JaxSignature, aliases: list[Alias], donors: list[Donor]) -> tuple[list[Alias], list[Donor]]:
    """Use parameter and output numbers of `main` instead of its caller."""

    def parameter(entry: _Entry) -> _Entry:
        return replace(entry, parameter_number=_number(signature.arguments, entry.parameter_number, "argument"))

    def output(each: Alias) -> Alias:
        if not each.output_index:
            return each
        number = _number(signature.results, each.output_index[0], "result")
        return replace(each, output_index=(number, *each.output_index[1:]))

    return [output(parameter(each)) for each in aliases], [parameter(each) for each in donors]


def _number(values: Sequence[JaxValue], number: int, word: str) -> int:
    if not 0 <= number < len(values):
        raise click.UsageError(f"the caller has no {word} {number}: it has {len(values)}")
    found = values[number].main
    if found is None:
        raise click.UsageError(
            f"{word} {number} of the caller, {values[number].path}, was removed: main does not use it"
        )
    return found


def _opened(source: str, provider: str | None) -> tuple[Artifact, JaxSignature | None]:
    """Return the artifact of a program, and for a jax.export file the signature of its function."""
    program, name = options.read_program(source)
    artifact = api.aliased_artifact(program, name=name, provider=provider)
    signature = None
    with suppress(InvalidProgramError, IsADirectoryError):
        data, _ = (program, name) if isinstance(program, bytes) else options.read_input(source)
        if recognise(data, name) is Kind.JAX_EXPORT:
            signature = read_signature(decode_jax_export(data))
    return artifact, signature


def _placed(signature: Signature, alias: Alias) -> Alias:
    """Empty the output index if the output was given as number 0 of a single array result."""
    alone = signature.results == 1 and isinstance(signature.result, Array)
    return replace(alias, output_index=()) if alone and alias.output_index == (0,) else alias


def _parsed_alias(text: str) -> Alias:
    if numbers := _NUMBERS.fullmatch(text):
        return Alias((int(numbers[1]),), int(numbers[2]))
    long = _LONG.fullmatch(text)
    if long is None:
        expected = "OUTPUT=PARAMETER, such as 0=1 or '{0}=(1,{}),must-alias'"
        raise click.UsageError(f"{text!r} is not an alias: expected {expected}")
    held = long[2] if long[2].startswith("(") else f"({long[2]}, {{}})"
    # In HLO, the kind is inside of the parentheses.
    return _parsed(parse_aliases, f"{{ {long[1]}: {held[:-1]}{f', {long[3]}' if long[3] else ''}) }}")


def _parsed_donor(text: str) -> Donor:
    number = _NUMBER.fullmatch(text)
    return Donor(int(number[1])) if number else _parsed(parse_donors, f"{{ {text} }}")


_T = TypeVar("_T")


def _parsed(parse: Callable[[str], list[_T]], text: str) -> _T:
    try:
        found = parse(text)
    except AliasError as error:
        raise click.UsageError(str(error)) from error
    if len(found) != 1:
        raise click.UsageError(f"{text!r} is more than one value: repeat the option")
    return found[0]
