"""``vhlo alias``: which outputs of a program may be written over which inputs; shown, changed, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeVar, get_args

import click

from vhlo_tools import api
from vhlo_tools.aliasing import (
    Alias,
    AliasConfig,
    Array,
    Declared,
    Donor,
    Form,
    ProgramAliases,
    Shape,
    format_index,
    parse_aliases,
    parse_donors,
    subshape,
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
from vhlo_tools.cli import check_text, options
from vhlo_tools.errors import AliasError, InvalidProgramError

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


def form_option(function: _F) -> _F:
    """Add the option for where aliases are written."""
    return click.option(
        "--form",
        type=click.Choice(get_args(Form)),
        help="Where to write aliases: attributes of arguments, or one of the module. By default where they are.",
    )(function)


@alias.command()
@options.input_argument("PROGRAM")
@options.provider_option
@options.format_option
def show(source: str, provider: str | None, output_format: str) -> None:
    """Show which outputs of PROGRAM are aliased with which parameters, and which parameters are given away."""
    artifact, signature = _opened(source, provider)
    program = artifact.declared_aliases()
    if output_format == "json":
        options.echo_json(_as_json(program, signature))
        return
    for line in _table(program, signature):
        click.echo(line)


@alias.command()
@options.input_argument("PROGRAM")
@options.provider_option
@options.format_option
def lint(source: str, provider: str | None, output_format: str) -> int:
    """Say what is wrong with the aliases of PROGRAM: errors for what XLA refuses, warnings for what is hardly meant.

    Exit code 0: no errors; 1: errors; 2: a file that cannot be read.
    """
    artifact, _ = _opened(source, provider)
    found = artifact.alias_findings()
    wrong = any(each.level == "error" for each in found)
    if output_format == "json":
        file = {"path": artifact.name, "ok": not wrong, "findings": [options.finding_as_json(each) for each in found]}
        options.echo_json({"files": [file]})
    else:
        for line in check_text.lines([(artifact.name, [("XLA", found)], None)], ["XLA"]):
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
    help="By numbers, 0=1; or as HLO does, '{0}=(1,{}),must-alias'. May be repeated.",
)
@click.option("--donor", "donors", multiple=True, metavar="PARAMETER", help="A number; or '(1,{0})'. May be repeated.")
@click.option(
    "--caller",
    is_flag=True,
    help="Of a jax.export file, count the arguments and results of the function's caller, and not those of main.",
)
@click.option("--keep", is_flag=True, help="Keep the aliases and donors that are there.")
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
    form: Form | None,
    force: bool,
) -> dict[str, Any]:
    """Give ARTIFACT these aliases and donors; without --keep no others.

    Parameters and outputs are those of `main`, as `show` counts them.
    """
    if not (aliases or donors):
        raise click.UsageError("expected --alias or --donor; `vhlo alias clear` takes all away")
    new: tuple[list[Alias], list[Donor]] = (list(map(_parsed_alias, aliases)), list(map(_parsed_donor, donors)))
    if caller:
        new = _of_main(_signature_of(source), *new)

    def change(declared: Declared) -> AliasConfig:
        config = declared.config() if keep else AliasConfig(declared.signature)
        alone = declared.signature.results == 1 and isinstance(declared.signature.result, Array)
        for each in new[0]:
            # The number of the one result, which has no index.
            index = () if alone and each.output_index == (0,) else each.output_index
            config.set_up_alias(index, each.parameter_number, each.parameter_index, each.kind)
        for donor in new[1]:
            config.set_up_donor(donor.parameter_number, donor.parameter_index)
        return config

    return _changed(source, output, change, form, force)


@alias.command()
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@options.force_option
@options.reporting
def clear(source: str, output: str, force: bool) -> dict[str, Any]:
    """Take all aliases and donors of `main` away from ARTIFACT."""
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
    options.check_output(output, force=force, binary=True)
    written = api.with_aliases(options.read_artifact(source), change, form)
    options.write_output(output, written.chunks, force=force, binary=True)
    artifact = written.artifacts[0] if isinstance(written, JaxContainer) else written
    report = options.artifact_report(written, output)
    return {**report, **_as_json(artifact.declared_aliases(), None), "findings": artifact.alias_findings()}


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


def _as_json(program: ProgramAliases, signature: JaxSignature | None) -> dict[str, Any]:
    declared = program.declared
    return {
        "function": program.function,
        "aliases": [
            {
                **_fields(each),
                "form": declared.form_of(each),
                **_described(program, signature, each.parameter_number, each.parameter_index),
                "output_shape": _text(subshape(declared.signature.result, each.output_index)),
                "output_name": _output_name(program, signature, each),
            }
            for each in declared.aliases
        ],
        "donors": [
            {
                "parameter_number": each.parameter_number,
                "parameter_index": each.parameter_index,
                "form": declared.form_of(each),
                **_described(program, signature, each.parameter_number, each.parameter_index),
            }
            for each in declared.donors
        ],
        "calls": [
            {"path": call.path, "target": call.target, "aliases": [_fields(each) for each in call.aliases]}
            for call in program.calls
        ],
    }


def _fields(each: Alias) -> dict[str, Any]:
    return {
        "output_index": each.output_index,
        "parameter_number": each.parameter_number,
        "parameter_index": each.parameter_index,
        "kind": each.kind,
    }


def _described(
    program: ProgramAliases, signature: JaxSignature | None, number: int, index: tuple[int, ...]
) -> dict[str, Any]:
    """Return what a parameter is, and of a jax.export file which argument of the caller."""
    parameters = program.declared.signature.parameters
    exists = 0 <= number < len(parameters)
    own = program.parameters[number].name if exists else None
    name = signature.main_arguments[number] if signature and exists and number < len(signature.main_arguments) else own
    caller = [at for at, each in enumerate(signature.arguments) if each.main == number] if signature else []
    return {
        "name": name,
        "shape": _text(subshape(parameters[number], index) if exists else None),
        **({"caller_argument": caller[0] if caller else None} if signature else {}),
    }


def _output_name(program: ProgramAliases, signature: JaxSignature | None, each: Alias) -> str | None:
    number = each.output_index[0] if each.output_index else 0
    if signature and 0 <= number < len(signature.main_results):
        return signature.main_results[number]
    return program.results[number].name if 0 <= number < len(program.results) else None


def _text(shape: Shape | None) -> str | None:
    return None if shape is None else str(shape)


def _table(program: ProgramAliases, signature: JaxSignature | None) -> Iterator[str]:
    described = _as_json(program, signature)
    rows = [("output", "parameter", *(["argument"] if signature else []), "shape", "kind", "written on", "name")]
    for each in described["aliases"]:
        rows.append(_row(each, format_index(each["output_index"]), each["kind"]))
    for each in described["donors"]:
        rows.append(_row(each, "", "donor"))
    if len(rows) > 1:
        yield from _columns(rows)
    else:
        yield "no aliases, no donors"
    for call in described["calls"]:
        yield f"{call['path']}, {call['target']}:"
        for entry in call["aliases"]:
            operand = f"({entry['parameter_number']}, {format_index(entry['parameter_index'])})"
            yield f"  result {format_index(entry['output_index'])} over operand {operand}"


def _row(each: dict[str, Any], output: str, kind: str) -> tuple[str, ...]:
    index = format_index(each["parameter_index"]) if each["parameter_index"] else ""
    parameter = f"{each['parameter_number']}{' ' * bool(index)}{index}"
    caller = []
    if "caller_argument" in each:
        caller = ["" if each["caller_argument"] is None else str(each["caller_argument"])]
    return (output, parameter, *caller, each["shape"] or "none", kind, each["form"], each["name"] or "")


def _columns(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
