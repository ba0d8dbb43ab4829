"""``vhlo verify``: whether two programs compute the same."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.handlers import handler_option, load_handlers
from vhlo_tools.cli.run import input_option, read_inputs

if TYPE_CHECKING:
    from vhlo_tools.verification import Comparison, Drawing, Tolerance, VerificationReport


_F = TypeVar("_F", bound=Callable[..., Any])

_DRAWING: Final = (
    click.option(
        "--seed", type=int, default=0, show_default=True, help="What inputs are drawn from if none are given."
    ),
    click.option("--edges", is_flag=True, help="Draw zeros, subnormal numbers, the smallest and the largest too."),
    click.option("--non-finite", is_flag=True, help="Draw infinities too, and what is no number."),
    click.option(
        "--size", type=click.IntRange(min=0), default=3, show_default=True, help="For dimensions whose size is open."
    ),
)
_TOLERANCE: Final = (
    click.option("--ulp", type=click.IntRange(min=0), default=4, show_default=True, help="Floats may be so far apart,"),
    click.option("--rtol", type=click.FloatRange(min=0), default=0.0, help="or this much of the expected value,"),
    click.option("--atol", type=click.FloatRange(min=0), default=0.0, help="and this much beside."),
)


def drawing_options(function: _F) -> _F:
    """Add the options for how inputs are drawn, which the function takes as ``drawing``."""

    def drawing(seed: int, edges: bool, non_finite: bool, size: int) -> Drawing:
        from vhlo_tools.verification import Drawing

        return Drawing(seed, edges, non_finite, size)

    return _gathered(function, _DRAWING, "drawing", drawing)


def tolerance_options(function: _F) -> _F:
    """Add the options for how far apart floats may be, which the function takes as ``tolerance``."""

    def tolerance(ulp: int, rtol: float, atol: float) -> Tolerance:
        from vhlo_tools.verification import Tolerance

        return Tolerance(ulp, rtol, atol)

    return _gathered(function, _TOLERANCE, "tolerance", tolerance)


def _gathered(function: _F, options: Sequence[Callable[[Any], Any]], name: str, make: Callable[..., Any]) -> _F:
    """Return a function with options, which are one argument to the function that it calls."""
    taken = list(inspect.signature(make).parameters)

    @wraps(function)
    def gathered(*args: Any, **given: Any) -> Any:
        return function(*args, **{name: make(**{each: given.pop(each) for each in taken})}, **given)

    return cast(_F, reduce(lambda wrapped, option: option(wrapped), reversed(options), gathered))


@click.command()
@options.input_argument("BEFORE")
@click.argument("after", metavar="AFTER")
@input_option
@drawing_options
@click.option("--rounds", type=click.IntRange(min=1), default=1, show_default=True, help="How often they are drawn.")
@click.option("--engine", type=click.Choice(api.ENGINE_CHOICES), default="auto", show_default=True)
@handler_option
@tolerance_options
@click.option("--bisect", is_flag=True, help="If they differ, find the first op where they part.")
@options.provider_option
@options.trusted_option
@options.format_option
def verify(
    source: str,
    after: str,
    inputs: tuple[str, ...],
    drawing: Drawing,
    rounds: int,
    engine: api.EngineChoice,
    handlers: tuple[str, ...],
    tolerance: Tolerance,
    bisect: bool,
    provider: str | None,
    trusted: bool,
    output_format: str,
) -> int:
    """Run BEFORE and AFTER on the same inputs and compare their outputs: exit code 1 if they differ too much.

    Programs with aliases are run again with every aliased input given away.
    """
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
        handlers=load_handlers(handlers),
        bisect=bisect,
        names=(programs[0][1], programs[1][1]),
        provider=provider,
        trusted=trusted,
    )
    if output_format == "json":
        options.echo_json(_as_json(report))
    else:
        click.echo(report)
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
        "rounds": [
            {
                "inputs": each.inputs,
                "passed": each.passed,
                "outputs": [comparison_as_json(output) for output in each.outputs],
                "donated": [comparison_as_json(output) for output in each.donated],
                "problems": list(each.problems),
            }
            for each in report.rounds
        ],
    }


def comparison_as_json(found: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON has it."""
    return {"passed": found.passed, **asdict(found)}
