"""``vhlo verify``: checks whether two programs compute the same results."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import command
from vhlo_tools.cli.options import handler_option, load_handlers
from vhlo_tools.cli.run import input_option, read_inputs
from vhlo_tools.cli.verify_stores import FORMATS, are_stores, verify_stores
from vhlo_tools.printable import printable_lines

if TYPE_CHECKING:
    from vhlo_tools.execution import EngineName
    from vhlo_tools.verification import Comparison, Drawing, EnginesComparison, Round, Tolerance, VerificationReport


_F = TypeVar("_F", bound=Callable[..., Any])

_DRAWING: Final = (
    click.option(
        "--seed", type=int, default=0, show_default=True, help="The seed of random inputs, if none are given."
    ),
    click.option("--edges", is_flag=True, help="Also draw zeros, subnormal numbers, the smallest and the largest."),
    click.option("--non-finite", is_flag=True, help="Also draw infinities and NaNs."),
    click.option(
        "--size", type=click.IntRange(min=0), default=3, show_default=True, help="The size of dynamic dimensions."
    ),
)


def _tolerances(relative: float = 0.0, absolute: float = 0.0) -> tuple[Callable[[Any], Any], ...]:
    """Return the options for a tolerance, with the defaults of two of them."""
    floats: dict[str, Any] = {"type": click.FloatRange(min=0), "show_default": bool(relative or absolute)}
    return (
        click.option("--ulp", type=click.IntRange(min=0), default=4, show_default=True, help="Tolerance in ulp."),
        click.option("--rtol", default=relative, help="Relative tolerance.", **floats),
        click.option("--atol", default=absolute, help="Absolute tolerance, added to --rtol.", **floats),
    )


def drawing_options(function: _F) -> _F:
    """The function receives ``drawing``."""

    def drawing(seed: int, edges: bool, non_finite: bool, size: int) -> Drawing:
        from vhlo_tools.verification import Drawing

        return Drawing(seed, edges, non_finite, size)

    return _gathered(function, _DRAWING, "drawing", drawing)


def tolerance_options(function: _F) -> _F:
    """The function receives ``tolerance``."""
    return _gathered(function, _tolerances(), "tolerance", _tolerance)


def loose_tolerance_options(function: _F) -> _F:
    """Like :func:`tolerance_options`, with defaults for results of different compilers."""
    return _gathered(function, _tolerances(1e-4, 1e-5), "tolerance", _tolerance)


def _tolerance(ulp: int, rtol: float, atol: float) -> Tolerance:
    from vhlo_tools.verification import Tolerance

    return Tolerance(ulp, rtol, atol)


def _gathered(function: _F, options: Sequence[Callable[[Any], Any]], name: str, make: Callable[..., Any]) -> _F:
    """Return a function with several options, which it passes as one argument to the wrapped function."""
    taken = list(inspect.signature(make).parameters)

    @wraps(function)
    def gathered(*args: Any, **given: Any) -> Any:
        return function(*args, **{name: make(**{each: given.pop(each) for each in taken})}, **given)

    return cast(_F, reduce(lambda wrapped, option: option(wrapped), reversed(options), gathered))


def _to_engines(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[EngineName, ...] | None:
    if value is None:
        return None
    engines = tuple(each.strip() for each in value.split(","))
    try:
        api.check_engines(engines)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return cast("tuple[EngineName, ...]", engines)


@command()
@options.input_argument("BEFORE")
@click.argument("after", metavar="AFTER")
@input_option
@drawing_options
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    help="The number of rounds, each with other random inputs; by default as many of 256 as fit into two seconds.",
)
@click.option("--engine", type=click.Choice(api.ENGINE_CHOICES), default="auto", show_default=True)
@click.option(
    "--engines",
    metavar="NAMES",
    callback=_to_engines,
    help="Run both programs on several engines, such as reference,xla,iree: says on which the programs differ, where "
    "engines disagree on one program, and which engine stands alone.",
)
@handler_option
@tolerance_options
@click.option("--bisect", is_flag=True, help="If they differ, find the first op where they diverge.")
@options.timeout_option
@options.provider_option
@options.trusted_option
@click.option(
    "--exclude", multiple=True, metavar="GLOB", help="Of stores: files or folders to exclude. May be repeated."
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    help="Of stores: the number of processes; by default one for each core.",
)
@options.dask_option
@click.option(
    "--output-format",
    "--format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Of stores: jsonl has a line for each pair; parquet is a table for other programs, and needs -o FILE and the "
    "extra `distributed`.",
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write the report to FILE, replacing its content, instead of stdout."
)
def verify(
    source: str,
    after: str,
    inputs: tuple[str, ...],
    drawing: Drawing,
    rounds: int | None,
    engine: api.EngineChoice,
    engines: tuple[EngineName, ...] | None,
    handlers: tuple[str, ...],
    tolerance: Tolerance,
    bisect: bool,
    timeout: float | None,
    provider: str | None,
    trusted: bool,
    exclude: tuple[str, ...],
    jobs: int | None,
    dask: str | None,
    output_format: str,
    output: str | None,
) -> int:
    """Run BEFORE and AFTER on the same inputs and compare their outputs: exit code 1 if they differ too much.

    Programs with aliases are run again, with every aliased input donated.

    If BEFORE and AFTER are stores (folders, prefixes of URLs, or globs), every program is compared with the one of the
    same relative path; a NAME.mlirbc that `vhlo migrate` wrote for another program, with that. They are run only if the
    library does not read the same program from both. Exit code 1: a program differs, is missing or was added, or cannot
    be verified; 2: one cannot be read.
    """
    if engines is not None and engine != "auto":
        raise click.UsageError("--engine is one engine and --engines are several: give one of these options")
    if are_stores(source, after):
        if inputs or handlers or bisect or engines:
            raise click.UsageError(
                "-i, --engines, --handler and --bisect are for two programs: for stores, leave them out"
            )
        prover = api.Prover(
            drawing.seed, rounds, drawing, tolerance, engine, timeout, provider=provider, trusted=trusted
        )
        return verify_stores(
            source,
            after,
            prover,
            exclude=exclude,
            jobs=jobs,
            dask=dask,
            output_format=output_format,
            output=output,
        )
    if output_format not in ("text", "json"):
        raise click.UsageError(f"--output-format {output_format} is for stores: for two programs, give text or json")
    if exclude or jobs is not None or dask is not None:
        raise click.UsageError("--exclude, --jobs and --dask are for stores: give two folders, prefixes or globs")
    if output is not None:
        options.check_output(output, force=True, binary=False)
    programs = [options.read_program(each) for each in (source, after)]
    values = read_inputs(inputs)
    report = api.verify(
        programs[0][0],
        programs[1][0],
        values if inputs else None,
        drawing.seed,
        rounds=rounds,
        drawing=drawing,
        tolerance=tolerance,
        engine=engine,
        engines=engines,
        handlers=load_handlers(handlers),
        bisect=bisect,
        timeout=timeout,
        names=(programs[0][1], programs[1][1]),
        provider=provider,
        trusted=trusted,
    )
    if output_format == "json":
        said = json.dumps(_as_json(report), indent=2, default=str, allow_nan=False)
    else:
        said = printable_lines(str(report))
    if output is None:
        echo(said)
    else:
        options.write_output(output, [f"{said}\n".encode("utf-8", "backslashreplace")], force=True, binary=False)
    return 0 if report.passed else 1


def _as_json(report: VerificationReport) -> dict[str, Any]:
    found = {"divergence": report.divergence and asdict(report.divergence)} if report.looked_for_divergence else {}
    return {
        **found,
        "passed": report.passed,
        "before": report.before,
        "after": report.after,
        "engines": list(report.engines),
        "warnings": [
            {"feature": each.feature, "message": each.message, "remedy": each.remedy} for each in report.warnings
        ],
        "tolerance": asdict(report.tolerance),
        "rounds": [_round_as_json(each) for each in report.rounds],
        **({} if report.on_engines is None else {"on_engines": _engines_as_json(report.on_engines)}),
    }


def _round_as_json(found: Round) -> dict[str, Any]:
    return {
        "inputs": found.inputs,
        "passed": found.passed,
        "outputs": [comparison_as_json(output) for output in found.outputs],
        "donated": [comparison_as_json(output) for output in found.donated],
        "problems": list(found.problems),
    }


def _engines_as_json(found: EnginesComparison) -> dict[str, Any]:
    return {
        "runs": [
            {
                "engine": each.engine,
                "passed": each.passed if each.rounds else None,
                "refusal": each.refusal,
                "rounds": [_round_as_json(round_) for round_ in each.rounds],
            }
            for each in found.runs
        ],
        "disagreements": [
            {
                "program": each.program,
                "inputs": each.inputs,
                "output": each.place,
                "engines": list(each.engines),
                "alone": each.alone,
                "differing": [
                    {"engines": list(pair), **comparison_as_json(comparison)}
                    for pair, comparison in each.differing.items()
                ],
            }
            for each in found.disagreements
        ],
    }


def comparison_as_json(found: Comparison) -> dict[str, Any]:
    return {"passed": found.passed, **asdict(found)}
