"""Output of ``vhlo alias``: the aliases of a program as JSON, and as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from vhlo_tools.aliasing import Alias, ProgramAliases, Shape, format_index, subshape
from vhlo_tools.cli.display import Column, show_table
from vhlo_tools.cli.echo import echo
from vhlo_tools.files import JaxSignature

_OUTPUT: Final = (Column("output", whole=True), Column("parameter", whole=True))
_CALLER: Final = (Column("argument", whole=True),)
_VALUE: Final = (Column("shape"), Column("kind", style="cyan", whole=True), Column("written on"), Column("name"))


def as_json(program: ProgramAliases, signature: JaxSignature | None) -> dict[str, Any]:
    """``signature`` is that of a jax.export file."""
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
    """Return the description of a parameter, for a jax.export file with the argument of the caller."""
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


def show_aliases(program: ProgramAliases, signature: JaxSignature | None) -> None:
    described = as_json(program, signature)
    rows = [_row(each, format_index(each["output_index"]), each["kind"]) for each in described["aliases"]]
    rows += [_row(each, "", "donor") for each in described["donors"]]
    if rows:
        show_table([*_OUTPUT, *(_CALLER if signature else ()), *_VALUE], rows)
    else:
        echo("no aliases, no donors" if program.function else "no function main, so no aliases, no donors")
    for line in _calls(described):
        echo(line)


def _calls(described: dict[str, Any]) -> Iterator[str]:
    for call in described["calls"]:
        yield f"{call['path']}, {call['target']}{':' if call['aliases'] else ': no aliases'}"
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
