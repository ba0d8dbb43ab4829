"""``vhlo verify``: checks whether two programs compute the same results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import OptionDecorator, command
from vhlo_tools.cli.reports import encoded
from vhlo_tools.cli.run import input_option, read_inputs
from vhlo_tools.cli.verify_stores import are_stores, verify_stores
from vhlo_tools.printable import json_record, json_text

if TYPE_CHECKING:
    from vhlo_tools.execution import EngineName
    from vhlo_tools.verification import Comparison, Drawing, EnginesComparison, Round, Tolerance, VerificationReport


def _drawing(seed: int, edges: bool, non_finite: bool, size: int) -> Drawing:
    from vhlo_tools.verification import Drawing

    return Drawing(seed, edges, non_finite, size)


def _tolerance(ulp: int, rtol: float, atol: float) -> Tolerance:
    from vhlo_tools.verification import Tolerance

    return Tolerance(ulp, rtol, atol)


def _tolerance_options(relative: float, absolute: float) -> OptionDecorator:
    floats: dict[str, Any] = {"type": click.FloatRange(min=0), "show_default": bool(relative)}
    return options.gathered(
        "tolerance",
        _tolerance,
        click.option("--ulp", type=click.IntRange(min=0), default=4, show_default=True, help="Tolerance in ulp."),
        click.option("--rtol", default=relative, help="Relative tolerance.", **floats),
        click.option("--atol", default=absolute, help="Absolute tolerance, added to --rtol.", **floats),
    )


#: The function receives ``drawing``.
drawing_options: OptionDecorator = options.gathered(
    "drawing",
    _drawing,
    click.option(
        "--seed", type=int, default=0, show_default=True, help="The seed of random inputs, if none are given."
    ),
    click.option("--edges", is_flag=True, help="Also draw zeros, subnormal numbers, the smallest and the largest."),
    click.option("--non-finite", is_flag=True, help="Also draw infinities and NaNs."),
    click.option(
        "--size", type=click.IntRange(min=0), default=3, show_default=True, help="The size of dynamic dimensions."
    ),
)
#: The function receives ``tolerance``.
tolerance_options: OptionDecorator = _tolerance_options(0.0, 0.0)
#: For results of different compilers.
loose_tolerance_options: OptionDecorator = _tolerance_options(1e-4, 1e-5)


def _to_engines(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[EngineName, ...] | None:
    if value is None:
        return None
    engines = tuple(each.strip() for each in value.split(","))
    try:
        api.check_engines(engines)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return engines


@command()
@options.input_argument("BEFORE")
@click.argument("after", metavar="[AFTER]", required=False)
@input_option
@drawing_options
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    help="The number of rounds, each with other random inputs; by default as many of 256 as fit into two seconds.",
)
@options.engine_option(api.ENGINE_CHOICES, plugins=True)
@click.option(
    "--engines",
    metavar="NAMES",
    callback=_to_engines,
    help="Run the programs on several engines, such as reference,xla,pjrt:PLUGIN: says on which the programs differ, "
    "where engines disagree, and which one stands alone.",
)
@options.handler_option
@tolerance_options
@click.option("--bisect", is_flag=True, help="If they differ, find the first op where they diverge.")
@options.timeout_option
@options.read_in_time_option
@options.provider_option
@options.trusted_option
@options.exclude_option("Of stores: files")
@options.jobs_option("Of stores: the number of processes; by default one for each core.")
@options.dask_option
@options.format_choice(
    *("text", "json", "jsonl", "parquet"),
    what="Of stores: jsonl has a line for each pair; parquet is a table for other programs, and needs -o FILE and the "
    "extra `distributed`.",
)
@options.result_option()
def verify(
    source: str,
    after: str | None,
    inputs: tuple[str, ...],
    drawing: Drawing,
    engines: tuple[EngineName, ...] | None,
    handlers: dict[str, Callable[..., Any]],
    bisect: bool,
    exclude: tuple[str, ...],
    jobs: int | None,
    dask: str | None,
    output_format: str,
    output: str | None,
    **running: Any,
) -> int:
    """Run BEFORE and AFTER on the same inputs and compare their outputs: exit code 1 if they differ too much.

    Programs with aliases are run again, with every aliased input donated. Without AFTER, --engines are compared on one
    program.

    If BEFORE and AFTER are stores (folders, prefixes of URLs, or globs), every program is compared with the one of the
    same relative path; a NAME.mlirbc that `vhlo migrate` wrote for another program, with that. They are run only if the
    library does not read the same program from both. Exit code 1: a program differs, is missing or was added, or cannot
    be verified; 2: one cannot be read.
    """
    if engines is not None and running["engine"] != "auto":
        raise click.UsageError("--engine is one engine and --engines are several: give one of these options")
    if after is None and engines is None:
        raise click.UsageError(
            "one program is compared between engines: give AFTER, or --engines such as reference,xla"
        )
    if after is not None and are_stores(source, after):
        if inputs or handlers or bisect or engines:
            raise click.UsageError(
                "-i, --engines, --handler and --bisect are for two programs: for stores, leave them out"
            )
        prover = api.EquivalenceChecker(drawing.seed, drawing=drawing, **running)
        return verify_stores(
            source, after, prover, exclude=exclude, jobs=jobs, dask=dask, output_format=output_format, output=output
        )
    if output_format not in ("text", "json"):
        raise click.UsageError(f"--output-format {output_format} is for stores: for two programs, give text or json")
    if exclude or jobs is not None or dask is not None:
        raise click.UsageError("--exclude, --jobs and --dask are for stores: give two folders, prefixes or globs")
    if output is not None:
        options.check_output(output, force=True, binary=False)
    read = (options.read_program(source),) if after is None else options.read_programs(source, after)
    running |= {"drawing": drawing, "engines": engines, "handlers": handlers, "bisect": bisect}
    values = read_inputs(inputs) if inputs else None
    (before, name), (other, other_name) = (*read, (None, None))[:2]
    report = api.verify(before, other, values, drawing.seed, names=(name, other_name), **running)
    said = json_text(json_record(_as_json(report)), indent=2) if output_format == "json" else str(report)
    if output is None:
        echo(said)
    else:
        options.write_output(output, encoded([said]), force=True, binary=False)
    return 0 if report.passed else 1


def _as_json(report: VerificationReport) -> dict[str, Any]:
    found = {"divergence": report.divergence and asdict(report.divergence)} if report.looked_for_divergence else {}
    return {
        **found,
        "passed": report.passed,
        "before": report.before,
        "after": report.after,
        "engines": list(report.engines),
        "warnings": [{key: getattr(each, key) for key in ("feature", "message", "remedy")} for each in report.warnings],
        "tolerance": asdict(report.tolerance),
        "rounds": [_round_as_json(each) for each in report.rounds],
        "known_faults": [asdict(each) for each in report.known_faults],
        **({} if report.on_engines is None else {"on_engines": _engines_as_json(report.on_engines)}),
    }


def _round_as_json(found: Round) -> dict[str, Any]:
    return {
        "inputs": found.inputs,
        "passed": found.passed,
        "outputs": [comparison_as_json(output) for output in found.outputs],
        "donated": [comparison_as_json(output) for output in found.donated],
        "problems": list(found.problems),
        "subnormals": found.subnormals,
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
                "explained": each.explained,
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
