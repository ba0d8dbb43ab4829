"""``vhlo alias``: which outputs of a program may be written over which inputs; shown, changed, checked."""

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
    Signature,
    compare_aliases,
    parse_aliases,
    parse_donors,
)
from vhlo_tools.artifact import (
    Artifact,
    JaxContainer,
    JaxSignature,
    JaxValue,
    Kind,
    decode_jax_export,
    read_signature,
    recognise,
)
from vhlo_tools.cli import alias_text, options
from vhlo_tools.errors import AliasError, InvalidProgramError
from vhlo_tools.report import finding_lines

_F = TypeVar("_F", bound=Callable[..., Any])
_Entry = TypeVar("_Entry", Alias, Donor)

_NUMBERS: Final = re.compile(r"\s*(\d+)\s*=\s*(\d+)\s*")
_LONG: Final = re.compile(r"\s*(\{[^}]*\})\s*=\s*(\d+|\([^)]*\))\s*(?:,\s*(may-alias|must-alias)\s*)?")
_NUMBER: Final = re.compile(r"\s*(\d+)\s*")


@click.group()
def alias() -> None:
    """Show, change and check which outputs of a program may be written over which inputs.

    `show` and `lint` take any program; what changes aliases takes artifacts and jax.export files, on their bytes.
    """


def call_option(what: str) -> Callable[[_F], _F]:
    """Return the option for the custom calls that are changed in place of the program."""
    return click.option(
        "--call",
        metavar="PATH|TARGET",
        help=f"{what} the custom call at this path, as `show --calls` names it, or all calls of this target.",
    )


def form_option(function: _F) -> _F:
    """Add the option for where aliases are written."""
    return click.option(
        "--form",
        type=click.Choice(get_args(Form)),
        help="Where to write aliases: attributes of arguments, or one of the module. By default where they are.",
    )(function)


@alias.command()
@options.input_argument("PROGRAM")
@click.option("--calls", is_flag=True, help="Show all custom calls, and not only those that have aliases.")
@options.provider_option
@options.format_option
def show(source: str, calls: bool, provider: str | None, output_format: str) -> None:
    """Show which outputs of PROGRAM are aliased with which parameters, and which parameters are given away."""
    artifact, signature = _opened(source, provider)
    program = artifact.declared_aliases()
    if calls:
        program = replace(program, calls=artifact.custom_calls())
    if output_format == "json":
        options.echo_json(alias_text.as_json(program, signature))
        return
    for line in alias_text.table(program, signature):
        click.echo(line)


@alias.command()
@options.input_argument("PROGRAM")
@click.option(
    "--against",
    metavar="OTHER",
    help="Also say which aliases and donors of this program are lost or changed, wherever they are written.",
)
@options.provider_option
@options.format_option
def lint(source: str, against: str | None, provider: str | None, output_format: str) -> int:
    """Say what is wrong with the aliases of PROGRAM: errors for what XLA refuses, warnings for what is hardly meant.

    Exit code 0: no errors, and nothing of OTHER is lost or changed; 1: errors, or something is; 2: a file that cannot
    be read, or an OTHER with another signature.
    """
    if source == against == options.STANDARD:
        raise click.UsageError("only one of the programs can come from stdin")
    artifact, _ = _opened(source, provider)
    found, compared = artifact.alias_findings(), []
    if against is not None:
        other, _ = _opened(against, provider)
        compared = compare_aliases(artifact.declared_aliases(), other.declared_aliases())
    wrong = bool(compared) or any(each.level == "error" for each in found)
    found += compared
    if output_format == "json":
        file = {"path": artifact.name, "ok": not wrong, "findings": [options.finding_as_json(each) for each in found]}
        options.echo_json({"files": [file]})
    else:
        question = "XLA" if against is None else f"XLA, compared with {against}"
        for line in finding_lines(artifact.name, question, found):
            click.echo(line)
    return int(wrong)


@alias.command("set")
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@click.option(
    "--alias",
    "aliases",
    multiple=True,
    metavar="OUTPUT=PARAMETER",
    help="By numbers, 0=1; or as HLO does, '{0}=(1,{}),must-alias'. With --call, RESULT=OPERAND. May be repeated.",
)
@click.option("--donor", "donors", multiple=True, metavar="PARAMETER", help="A number; or '(1,{0})'. May be repeated.")
@click.option(
    "--caller",
    is_flag=True,
    help="Of a jax.export file, count the arguments and results of the function's caller, and not those of main.",
)
@click.option("--keep", is_flag=True, help="Keep the aliases and donors that are there.")
@call_option("Write output_operand_aliases of")
@form_option
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
    """Give ARTIFACT these aliases and donors; without --keep no others.

    Parameters and outputs are those of `main`, as `show` counts them; with --call, operands and results of calls.
    """
    if not (aliases or donors):
        raise click.UsageError("expected --alias or --donor; `vhlo alias clear` takes all away")
    if call is not None:
        if donors or caller or form:
            raise click.UsageError("a custom call has aliases only: --donor, --caller and --form are not for --call")
        must = list(map(_parsed_call_alias, aliases))

        def aliases_of(said: CallAliases) -> list[Alias]:
            kept = said.aliases if keep else ()
            return [*kept, *(_placed(said.signature, each) for each in must)]

        return _changed_calls(source, output, call, aliases_of, force)
    new: tuple[list[Alias], list[Donor]] = (list(map(_parsed_alias, aliases)), list(map(_parsed_donor, donors)))
    if caller:
        new = _of_main(_signature_of(source), *new)

    def change(declared: Declared) -> AliasConfig:
        config = declared.config() if keep else AliasConfig(declared.signature)
        for each in (_placed(declared.signature, each) for each in new[0]):
            config.set_up_alias(each.output_index, each.parameter_number, each.parameter_index, each.kind)
        for donor in new[1]:
            config.set_up_donor(donor.parameter_number, donor.parameter_index)
        return config

    return _changed(source, output, change, form, force)


@alias.command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@call_option("Take away only those of")
@options.force_option
@options.reporting
def clear(source: str, output: str, call: str | None, force: bool) -> dict[str, Any]:
    """Take all aliases and donors of `main` away from ARTIFACT, or with --call those of custom calls."""
    if call is not None:
        return _changed_calls(source, output, call, lambda said: [], force)
    return _changed(source, output, lambda declared: AliasConfig(declared.signature), None, force)


@alias.command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@click.option("--form", type=click.Choice(get_args(Form)), required=True, help="Where aliases shall be written.")
@options.force_option
@options.reporting
def convert(source: str, output: str, form: Form, force: bool) -> dict[str, Any]:
    """Write the aliases of ARTIFACT as attributes of arguments, or as one of the module; donors stay on arguments."""
    return _changed(source, output, Declared.config, form, force)


def _changed(
    source: str, output: str, change: Callable[[Declared], AliasConfig], form: Form | None, force: bool
) -> dict[str, Any]:
    return _written(source, output, lambda opened: api.with_aliases(opened, change, form), force)


def _changed_calls(
    source: str, output: str, call: str, change: Callable[[CallAliases], list[Alias]], force: bool
) -> dict[str, Any]:
    return _written(source, output, lambda opened: api.with_call_aliases(opened, call, change), force)


_Opened = Artifact | JaxContainer


def _written(source: str, output: str, edit: Callable[[_Opened], _Opened], force: bool) -> dict[str, Any]:
    options.check_output(output, force=force, binary=True)
    written = edit(options.read_artifact(source))
    options.write_output(output, written.chunks, force=force, binary=True)
    artifact = written.artifacts[0] if isinstance(written, JaxContainer) else written
    report = options.artifact_report(written, output)
    return {**report, **alias_text.as_json(artifact.declared_aliases(), None), "findings": artifact.alias_findings()}


def _signature_of(source: str) -> JaxSignature:
    data, name = options.read_input(source)
    if source == options.STANDARD or recognise(data, name) is not Kind.JAX_EXPORT:
        raise click.UsageError("--caller counts the arguments that a jax.export file says it has: expected such a file")
    return read_signature(decode_jax_export(data))


def _of_main(signature: JaxSignature, aliases: list[Alias], donors: list[Donor]) -> tuple[list[Alias], list[Donor]]:
    """Return aliases and donors with the numbers of `main` in place of those of its caller."""

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
        raise click.UsageError(f"the caller has no {word} {number}: there are {len(values)}")
    found = values[number].main
    if found is None:
        raise click.UsageError(
            f"{word} {number} of the caller, {values[number].path}, was dropped: main does not use it"
        )
    return found


def _opened(source: str, provider: str | None) -> tuple[Artifact, JaxSignature | None]:
    """Return the artifact that a program is, holds or becomes, and how jax calls it if it is a file of jax."""
    program, name = options.read_program(source)
    artifact = api.aliased_artifact(program, name=name, provider=provider)
    signature = None
    with suppress(InvalidProgramError, IsADirectoryError):
        data, _ = (program, name) if isinstance(program, bytes) else options.read_input(source)
        if recognise(data, name) is Kind.JAX_EXPORT:
            signature = read_signature(decode_jax_export(data))
    return artifact, signature


def _placed(signature: Signature, alias: Alias) -> Alias:
    """Return an alias by the index of its output, where it was the number of the one result, which has no index."""
    alone = signature.results == 1 and isinstance(signature.result, Array)
    return replace(alias, output_index=()) if alone and alias.output_index == (0,) else alias


def _parsed_call_alias(text: str) -> Alias:
    if "may-alias" in text:
        raise click.UsageError(f"{text!r}: an alias of a custom call must be; expected RESULT=OPERAND, such as 0=1")
    return replace(_parsed_alias(text), kind="must-alias")


def _parsed_alias(text: str) -> Alias:
    if numbers := _NUMBERS.fullmatch(text):
        return Alias((int(numbers[1]),), int(numbers[2]))
    long = _LONG.fullmatch(text)
    if long is None:
        expected = "OUTPUT=PARAMETER, such as 0=1 or '{0}=(1,{}),must-alias'"
        raise click.UsageError(f"{text!r} is no alias: expected {expected}")
    held = long[2] if long[2].startswith("(") else f"({long[2]}, {{}})"
    # HLO has the kind within the brackets.
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
        raise click.UsageError(f"{text!r} is more than one: repeat the option")
    return found[0]
