"""``vhlo run``: evaluates a program."""

from __future__ import annotations

import io
import lzma
import math
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, Final
from zipfile import BadZipFile

import click

from vhlo_tools import api
from vhlo_tools.aliasing import parse_donors
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import OptionDecorator, command
from vhlo_tools.documents import read_json
from vhlo_tools.errors import AliasError
from vhlo_tools.files import Url, open_regular, place as place_of, read_bytes

if TYPE_CHECKING:
    import numpy as np


#: An input for one device; no JSON literal starts like this.
_OF_DEVICE = re.compile(r"(\d+):(.*)", re.DOTALL)

input_option: OptionDecorator = click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="VALUE",
    help="An argument of main, in order: a .npy file, a .npz file with several, or a JSON literal such as '[1, 2]'.",
)


@command()
@options.input_argument("PROGRAM")
@input_option
@options.engine_option(api.ENGINE_CHOICES, plugins=True)
@options.handler_option
@click.option(
    "--replicas",
    type=click.IntRange(min=1),
    help="The number of replicas, each on devices of its own. With --partitions alone, the number that the program "
    "specifies; with neither, one device. An input is passed to all devices, 'DEVICE:VALUE' to one. A program "
    "with shardings takes whole inputs.",
)
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    help="The number of partitions of each replica: device R*PARTITIONS+P is partition P of replica R.",
)
@click.option(
    "--donate",
    "donated",
    multiple=True,
    metavar="NUMBER",
    help="Donate an input: an output that is aliased with it overwrites it. Also a part of a tuple: '(0,{1})'.",
)
@options.timeout_option
@click.option(
    "--platform",
    metavar="NAME",
    help="For an export of jax for several platforms, the one whose program runs: by default cpu. With 'any' the first "
    "input is the number of the platform.",
)
@click.option("--probe", metavar="DIR", help="Write intermediate values to this folder, with an index.csv.")
@click.option(
    "--probe-ops", metavar="PATTERN", help="Only values of ops whose name or location matches this regular expression."
)
@click.option("--probe-function", metavar="NAME", help="Only values of ops in this function.")
@click.option(
    "--details", is_flag=True, help="Print on stderr which engine ran the program, and which outputs overwrote inputs."
)
@click.option(
    "-o", "--output", help="Write the results to this .npz file, or to this .npy file if there is one result."
)
@options.input_manifest_options
@options.format_option
@options.read_in_time_option
@options.provider_option
@options.trusted_option
@options.force_option
def run(
    source: str,
    inputs: tuple[str, ...],
    replicas: int | None,
    partitions: int | None,
    donated: tuple[str, ...],
    probe: str | None,
    probe_ops: str | None,
    probe_function: str | None,
    details: bool,
    output: str | None,
    output_format: str,
    force: bool,
    **loading: Any,
) -> None:
    """Evaluate main of PROGRAM and print or write its results."""
    if output is not None:
        if PurePath(output).suffix not in (".npy", ".npz"):
            raise click.UsageError(f"{output} is neither a .npy nor a .npz file")
        options.check_output(output, force=force, binary=True)
    if probe is None and (probe_ops or probe_function):
        raise click.UsageError("--probe-ops and --probe-function require --probe DIR")
    program, name = options.read_program(source)
    from vhlo_tools.execution import DonationWarning, Probe

    loading["name"] = name
    outputs: tuple[Any, ...]
    if probe is not None and loading["engine"] == "auto":
        loading["engine"] = "reference"

    def probed() -> Probe | None:
        return None if probe is None else Probe(probe_ops, probe_function, probe, replace=force)

    if replicas is not None or partitions is not None:
        if donated or details:
            raise click.UsageError("--donate and --details support one device only: omit --replicas and --partitions")
        several = api.load_parallel_executable(program, replicas=replicas, partitions=partitions, **loading)
        given = inputs_of_devices(inputs, several.inputs)
        outputs = several.run(given, probe=probed())
        word = "device"
    else:
        values, donate = read_inputs(inputs), [_donated(text) for text in donated]
        executable = api.load_executable(program, **loading)
        with warnings.catch_warnings(action="ignore", category=DonationWarning):
            # The report contains the warnings.
            execution = executable.execute(values, donate=donate, probe=probed())
        if details or donate:
            echo(execution.report, err=True)
        outputs, word = execution.outputs, "result"
    results = dict(_leaves(outputs))
    if output is not None:
        arrays = [each for each in results.values() if each is not None]
        options.write_output(output, [_packed(arrays, output)], force=force, binary=True)
    elif output_format == "json":
        options.echo_json({"outputs": _as_json(outputs)})
    else:
        for place, result in results.items():
            shown = "a token" if result is None else f"{result.dtype}{list(result.shape)}\n{result}"
            echo(f"{word} {place}: {shown}")


def read_inputs(texts: Sequence[str]) -> list[Any]:
    return [value for text in texts for value in _values(text)]


def inputs_of_devices(texts: Sequence[str], devices: int) -> list[list[Any]]:
    """Return the inputs of each device, given as ``DEVICE:VALUE``, or as a value for all devices."""
    given: list[list[Any]] = [[] for _ in range(devices)]
    for text in texts:
        match = _OF_DEVICE.fullmatch(text)
        if match and int(match[1]) >= devices:
            raise click.UsageError(
                f"{text!r} is for device {match[1]}, but there are {devices} devices, numbered from 0"
            )
        values = _values(match[2] if match else text)
        for each in [given[int(match[1])]] if match else given:
            each += values
    return given


def _donated(text: str) -> int | tuple[int, tuple[int, ...]]:
    if text.strip().isdecimal():
        return int(text)
    try:
        (donor,) = parse_donors(f"{{ {text} }}")
    except (AliasError, ValueError) as error:
        raise click.UsageError(
            f"{text!r} is not an input: expected its number, or '(0,{{1}})' for a part of a tuple"
        ) from error
    return donor.parameter_number, donor.parameter_index


def _leaves(results: tuple[Any, ...], place: str = "") -> Iterator[tuple[str, np.ndarray | None]]:
    """Yield the arrays, ``None`` for a token, each with its number, in tuples ``0.1``."""
    for number, result in enumerate(results):
        if isinstance(result, tuple):
            yield from _leaves(result, f"{place}{number}.")
        else:
            yield f"{place}{number}", result


# What numpy raises for damaged files; it parses their headers as Python.
_UNREADABLE: Final = (
    BadZipFile, EOFError, LookupError, MemoryError, RecursionError, SyntaxError, TokenError, TypeError, ValueError,
    zlib.error, lzma.LZMAError,
)  # fmt: skip


def _values(text: str) -> list[Any]:
    """Return the inputs of one option: the arrays of a file, or a JSON literal."""
    import numpy as np

    suffix = PurePath(text).suffix
    if suffix not in (".npy", ".npz"):
        try:
            return [read_json(text, not_finite=True)]
        except ValueError as error:
            raise click.UsageError(f"{text!r} is neither a .npy or .npz file nor a JSON literal: {error}") from error
    try:
        found = place_of(text)
        with io.BytesIO(bytes(read_bytes(found))) if isinstance(found, Url) else open_regular(found) as file:
            loaded = np.load(file, allow_pickle=False)
            if suffix == ".npy":
                arrays = [loaded]
            else:
                # By their final numbers if all names have one.
                numbers = {name: name[len(name.rstrip("0123456789")) :] for name in loaded.files}
                names = sorted(numbers, key=lambda name: int(numbers[name])) if all(numbers.values()) else loaded.files
                arrays = [loaded[name] for name in names]
            # A loaded array may be a view, whose memory cannot be donated.
            return [each if each.flags.owndata else each.copy() for each in arrays]
    except _UNREADABLE as error:
        raise click.UsageError(f"{text} cannot be read as numpy's {suffix}: {error}") from error


def _packed(results: Sequence[np.ndarray], output: str) -> bytes:
    import numpy as np

    from vhlo_tools.execution import as_saved

    file = io.BytesIO()
    arrays = [as_saved(each) for each in results]
    if output.endswith(".npz"):
        np.savez(file, *arrays)
    elif len(arrays) == 1:
        np.save(file, arrays[0])
    else:
        raise click.UsageError(
            f"there are {len(results)} results, but {output} can contain only one: write a .npz file"
        )
    return file.getvalue()


def _as_json(result: Any) -> Any:
    if isinstance(result, tuple):
        return [_as_json(each) for each in result]
    if result is None:
        return None
    values = result.ravel()
    data: list[Any]
    if result.dtype.kind == "c":
        data = [[_finite(value.real), _finite(value.imag)] for value in values.tolist()]
    elif "int" in result.dtype.name and result.dtype.kind == "V":  # of ml_dtypes, where lists keep the element type
        data = [int(value) for value in values]
    else:
        data = [_finite(value) for value in values.tolist()]
    return {"dtype": str(result.dtype), "shape": list(result.shape), "data": data}


def _finite(value: Any) -> Any:
    """Return a number for JSON; infinities and NaN, which JSON lacks, are strings."""
    return str(float(value)) if isinstance(value, float) and not math.isfinite(value) else value
