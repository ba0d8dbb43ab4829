"""``vhlo run``: evaluate a program."""

from __future__ import annotations

import io
import json
import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from zipfile import BadZipFile

import click

from vhlo_tools import api
from vhlo_tools.cli import options

if TYPE_CHECKING:
    import numpy as np


@click.command()
@options.input_argument("PROGRAM")
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="VALUE",
    help="An argument of main, in order: a .npy file, a .npz file with several, or a JSON literal such as '[1, 2]'.",
)
@click.option("--engine", type=click.Choice(["auto", "reference"]), default="auto", show_default=True)
@click.option(
    "-o", "--output", help="Write the results to this .npz file, or to this .npy file if there is one result."
)
@options.format_option
@options.provider_option
@options.trusted_option
@options.force_option
def run(
    source: str,
    inputs: tuple[str, ...],
    engine: Literal["auto", "reference"],
    output: str | None,
    output_format: str,
    provider: str | None,
    trusted: bool,
    force: bool,
) -> None:
    """Evaluate main of PROGRAM and print or write its results."""
    if output is not None:
        if Path(output).suffix not in (".npy", ".npz"):
            raise click.UsageError(f"{output} is neither a .npy nor a .npz file")
        options.check_output(output, force=force, binary=True)
    program, name = options.read_program(source)
    values = [value for text in inputs for value in _values(text)]
    results = api.run(program, values, engine=engine, name=name, provider=provider, trusted=trusted)
    if output is not None:
        options.write_output(output, [_packed(results, output)], force=force, binary=True)
    elif output_format == "json":
        options.echo_json([_as_json(result) for result in results])
    else:
        for index, result in enumerate(results):
            click.echo(f"result {index}: {result.dtype}{list(result.shape)}\n{result}")


def _values(text: str) -> list[Any]:
    """Return the inputs that one option gives: the arrays of a file, or a JSON literal."""
    import numpy as np

    suffix = Path(text).suffix
    if suffix not in (".npy", ".npz"):
        try:
            return [json.loads(text)]
        except (ValueError, RecursionError) as error:
            raise click.UsageError(f"{text!r} is no .npy or .npz file and no JSON literal: {error}") from error
    try:
        with Path(text).open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            return [loaded] if suffix == ".npy" else [loaded[key] for key in _in_order(loaded.files)]
    except (ValueError, EOFError, MemoryError, BadZipFile, zlib.error) as error:
        raise click.UsageError(f"{text} cannot be read as numpy's {suffix}: {error}") from error


def _in_order(names: Sequence[str]) -> list[str]:
    """Return the names of a .npz file as arguments: by their number if all end in one, else as they stand."""
    digits = {name: name[len(name.rstrip("0123456789")) :] for name in names}
    return sorted(names, key=lambda name: int(digits[name])) if all(digits.values()) else list(names)


def _packed(results: Sequence[np.ndarray], output: str) -> bytes:
    import numpy as np

    file = io.BytesIO()
    if output.endswith(".npz"):
        np.savez(file, *results)
    elif len(results) == 1:
        np.save(file, results[0])
    else:
        raise click.UsageError(f"there are {len(results)} results, and {output} holds one: write a .npz file")
    return file.getvalue()


def _as_json(result: np.ndarray) -> dict[str, Any]:
    values = result.ravel()
    data: list[Any]
    if result.dtype.kind == "c":
        data = [[_finite(value.real), _finite(value.imag)] for value in values.tolist()]
    elif "int" in result.dtype.name and result.dtype.kind == "V":  # of ml_dtypes, where lists keep the type
        data = [int(value) for value in values]
    else:
        data = [_finite(value) for value in values.tolist()]
    return {"dtype": str(result.dtype), "shape": list(result.shape), "data": data}


def _finite(value: Any) -> Any:
    """Return a number as JSON has it, which has no word for infinities and for what is no number: they are strings."""
    return str(float(value)) if isinstance(value, float) and not math.isfinite(value) else value
