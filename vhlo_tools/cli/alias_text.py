"""The output of ``vhlo alias``: the aliases of a program as JSON, and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from vhlo_tools.aliasing import Alias, ProgramAliases, Shape, format_index, subshape
from vhlo_tools.formats import JaxSignature

__all__ = ["as_json", "table"]


def as_json(program: ProgramAliases, signature: JaxSignature | None) -> dict[str, Any]:
    """Return the aliases of a program as a JSON object.

    Args:
        program: The aliases.
        signature: The signature of its function, if the program is a jax.export file.
    """
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


def table(program: ProgramAliases, signature: JaxSignature | None) -> Iterator[str]:
    """Yield the aliases of a program as lines of a table; arguments as for :func:`as_json`."""
    described = as_json(program, signature)
    rows = [("output", "parameter", *(["argument"] if signature else []), "shape", "kind", "written on", "name")]
    for each in described["aliases"]:
        rows.append(_row(each, format_index(each["output_index"]), each["kind"]))
    for each in described["donors"]:
        rows.append(_row(each, "", "donor"))
    if len(rows) > 1:
        yield from _columns(rows)
    else:
        yield "no aliases, no donors" if program.function else "no function main, so no aliases, no donors"
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


def _columns(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
