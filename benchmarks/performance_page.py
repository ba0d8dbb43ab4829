"""The tables and pictures of docs/performance.md, made from what was measured: `performance_page.py [--write]`.

`bench.py growth --record`, `aims` and `start` measure, keep it in `benchmarks/performance_measured.json`, and call
this.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

# Helpers that tests use too.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from aims import AIMS
from growth_commands import COMMANDS, OPS
from growth_picture import Line, Panel, draw
from measurements import LINEAR, MEGABYTE, Outcome, Point, exponent, load
from page_tables import rows_of, with_tables
from shapes import SHAPES
from start_parts import WHY, Part

PAGE: Final = Path(__file__).parents[1] / "docs" / "performance.md"

Measured = dict[str, Any]
Family = Literal["ops", "constants"]

#: What is drawn, of those that read and those that write; the tables have all.
_DRAWN: Final[dict[Family, dict[str, tuple[str, ...]]]] = {
    "ops": {
        "commands that read": ("inspect", "check", "diff", "diff, changed", "alias show", "store status"),
        "commands that write": ("retarget down", "strip", "alias set", "migrate", "serialize", "deserialize"),
    },
    "constants": {
        "commands that read": ("inspect", "check", "diff", "constants list", "manifest check"),
        "commands that write": ("retarget down", "strip", "externalize", "restore", "extract", "manifest write"),
    },
}
_COMPARED: Final = ("library", "cp")
#: The numbers of ops that the table shows; the pictures show all.
_SHOWN: Final = OPS[4:]
_VALUES: Final[dict[str, tuple[str, Callable[[Point], float]]]] = {
    "time": ("seconds", lambda point: point.seconds),
    "memory": ("MB at the peak", lambda point: point.peak / MEGABYTE),
}

#: The files of the pictures, each with the family and the value that it shows.
PICTURES: Final = {f"performance-{family}-{value}.svg": (family, value) for family in _DRAWN for value in _VALUES}


def points_of(measured: Measured, python: str) -> list[Point]:
    """Return the points of growth that a Python measured."""
    growth = measured.get(python, {}).get("growth")
    return [Point(**dict(zip(growth["titles"], row, strict=True))) for row in growth["rows"]] if growth else []


def outcomes_of(measured: Measured, python: str) -> dict[str, Outcome]:
    """Return what a Python measured of the aims, by their names."""
    aims = measured.get(python, {}).get("aims")
    found = [Outcome(**dict(zip(aims["titles"], row, strict=True))) for row in aims["rows"]] if aims else []
    return {each.aim: each for each in found}


def written(page: str, measured: Measured) -> str:
    """Return a page with its tables made anew, each of which stands after a comment that names it."""
    return with_tables(page, TABLES, measured)


def pictures(measured: Measured) -> dict[str, str]:
    """Return the pictures by the names of their files, of the first Python that measured growth.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    points = _points(measured)
    return {
        name: _picture(own, family, value)
        for name, (family, value) in PICTURES.items()
        if (own := [each for each in points if each.family == family])
    }


def _points(measured: Measured) -> list[Point]:
    """Return the points of the first Python that measured growth."""
    return next((found for python in measured if (found := points_of(measured, python))), [])


def _picture(points: Sequence[Point], family: Family, value: str) -> str:
    what, number = _VALUES[value]
    panels = []
    for title, names in _DRAWN[family].items():
        lines = []
        for name in (*names, *_COMPARED):
            own = sorted((each.size, number(each)) for each in points if each.command == name)
            if own:
                # A process without a millisecond is one of a millisecond: the axis has no zero.
                lines.append(Line(name, [(size, max(each, 1e-3)) for size, each in own], name in _COMPARED))
        panels.append(Panel(title, lines))
    sizes = [(float(each), _size(family, each)) for each in sorted({each.size for each in points})]
    return draw(panels, what=what, sizes=sizes, of="ops" if family == "ops" else "bytes of constants")


def _size(family: str, size: int) -> str:
    """Return the size of an artifact as it stands below a picture."""
    if family != "constants":
        return f"{size:,}" if size < 10**6 else f"{size // 10**6} M"
    for power, unit in ((30, "GB"), (20, "MB"), (10, "kB")):
        if size >= 1 << power:
            return f"{size >> power} {unit}"
    return f"{size} B"


def _taken(point: Point | None) -> str:
    return f"{point.cpu:.2f} s, {point.peak / MEGABYTE:,.0f}" if point else "-"


def _powers(points: Sequence[Point]) -> list[str]:
    return ["-" if each is None else f"{each:.2f}" for each in (exponent(points, "cpu"), exponent(points, "peak"))]


def _of_command(points: Sequence[Point], name: str) -> dict[int, Point]:
    return {each.size: each for each in points if each.command == name}


def _machines(measured: Measured) -> str:
    rows = []
    for parts in measured.values():
        for part in ("growth", "aims", "start"):
            if part not in parts:
                continue
            said = parts[part]["machine"]
            rows.append(
                [
                    f"{part}, quick" if parts[part].get("quick") else part,
                    f"{said['python']}{', compiled' if said['compiled'] else ''}",
                    said["library"],
                    f"{said['cores']} cores, {said['machine']}, {said['memory'] / (1 << 30):.0f} GB",
                    said["load"],
                    f"{said['date']}, {said['revision']}",
                ]
            )
    titles = ("measured", "Python", "library", "machine", "processes that ran already", "date and revision")
    return rows_of(titles, rows)


def _aims(measured: Measured) -> str:
    found = {python: outcomes_of(measured, python) for python in measured if "aims" in measured[python]}
    titles = ["what", "of", "aim"]
    for python in found:
        titles.append(python)
    rows = []
    for aim in AIMS:
        # The memory of a million ops stands in the table of ops.
        if aim.unit == "MB" or aim.most is None or not any(aim.name in each for each in found.values()):
            continue
        row = [aim.name, aim.unit, f"{aim.most:g}"]
        for each in found.values():
            row.append(_cell(each.get(aim.name), aim.most))
        rows.append(row)
    return rows_of(titles, rows)


def _cell(outcome: Outcome | None, most: float) -> str:
    if outcome is None:
        return "-"
    figure = _figure(outcome.measured)
    marked = f"**{figure}**" if outcome.measured > most else figure
    if outcome.low is None or outcome.high is None:
        return marked
    return f"{marked} ({_figure(outcome.low)} to {_figure(outcome.high)})"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _ops(measured: Measured) -> str:
    """Return the table of all commands over the number of ops, of the first Python."""
    points = [each for each in _points(measured) if each.family == "ops"]
    rows = []
    for command in COMMANDS:
        if own := _of_command(points, command.name):
            rows.append([command.name, *(_taken(own.get(size)) for size in _SHOWN)])
    return rows_of(["command", *(f"{each:,}" for each in _SHOWN)], rows)


def _shapes(measured: Measured) -> str:
    points = _points(measured)
    names = [each.name for each in COMMANDS if "shapes" in each.families]
    rows = []
    for shape in ("ops", *SHAPES):
        own = [each for each in points if each.family == shape]
        largest = max((each.size for each in own if shape != "ops" or each.size <= 100_000), default=0)
        cells = []
        for name in names:
            command = _of_command(own, name)
            power = _powers([each for each in command.values() if each.size <= largest])[0]
            cells.append(f"{command[largest].cpu:.2f} ({power})" if largest in command else "-")
        rows.append(["one after the other" if shape == "ops" else shape, f"{largest:,}", *cells])
    return rows_of(["program", "ops", *names], rows)


def _steeper(measured: Measured) -> str:
    rows = [row for python in measured for row in _steeper_of(python, points_of(measured, python))]
    titles = ("Python", "artifacts", "command", "time ^", "memory ^", "the library's time ^", "its memory ^")
    return rows_of(titles, rows or [["-", "all", "none", *["-"] * 4]])


def _steeper_of(python: str, points: Sequence[Point]) -> Iterator[list[str]]:
    """Yield a row for each of our commands that grows faster than linearly, with the library on the same artifacts."""
    for family in dict.fromkeys(each.family for each in points):
        own = [each for each in points if each.family == family]
        for command in COMMANDS:
            if command.name.startswith(_COMPARED):
                continue
            ran = list(_of_command(own, command.name).values())
            powers = [exponent(ran, "cpu"), exponent(ran, "peak")] if ran else []
            if any(each is not None and each > LINEAR for each in powers):
                library = _powers(list(_of_command(own, command.beside).values()))
                yield [python, family, command.name, *_powers(ran), *library]


def _pythons(measured: Measured) -> str:
    """Return what other Pythons took beside the first, of all commands on the largest artifacts of each family."""
    found = {python: points for python in measured if (points := points_of(measured, python))}
    first, *others = found or [""]
    rows = [row for other in others for row in _beside(other, found[first], found[other])]
    titles = ("Python", "artifacts", "commands", "median", "least", "most", "the library")
    return rows_of(titles, rows or [["-", "all", "none", *["-"] * 4]])


def _beside(python: str, first: Sequence[Point], other: Sequence[Point]) -> Iterator[list[object]]:
    """Yield a row for each family: the processor time of one Python over that of the first, command by command."""
    before = {(each.family, each.command, each.size): each for each in first}
    for family in dict.fromkeys(each.family for each in first):
        both = [each for each in other if each.family == family and (family, each.command, each.size) in before]
        largest = {each.command: each for each in sorted(both, key=lambda each: each.size)}
        ratios = {
            name: each.cpu / before[family, name, each.size].cpu for name, each in largest.items() if name != "cp"
        }
        library = ratios.pop("library", None)
        own = {name: ratio for name, ratio in ratios.items() if not name.startswith(_COMPARED)}
        ends = [f"{own[name]:.2f} ({name})" for name in (min(own, key=own.__getitem__), max(own, key=own.__getitem__))]
        middle = f"{statistics.median(own.values()):.2f}"
        yield [python, family, len(own), middle, *ends, "-" if library is None else f"{library:.2f}"]


def _starts(measured: Measured) -> str:
    """Return what the starts of commands consist of, of the first Python that measured them."""
    found: Measured = next(
        (parts["start"] for parts in measured.values() if "start" in parts), {"titles": [], "rows": []}
    )
    parts = [Part(**dict(zip(found["titles"], row, strict=True))) for row in found["rows"]]
    commands = list(dict.fromkeys(each.command for each in parts))
    cells = {(each.part, each.command): f"{each.milliseconds:.1f} ({each.modules})" for each in parts}
    rows = [
        [part, WHY[part], *(cells.get((part, command), "-") for command in commands)]
        for part in dict.fromkeys(each.part for each in parts)
    ]
    return rows_of(["part", "why", *commands], rows)


TABLES: Final[dict[str, Callable[[Measured], str]]] = {
    "machines": _machines,
    "aims": _aims,
    "starts": _starts,
    "ops": _ops,
    "shapes": _shapes,
    "steeper": _steeper,
    "pythons": _pythons,
}


def write() -> None:
    """Write the page and, where matplotlib is installed, its pictures."""
    measured = load()
    PAGE.write_text(written(PAGE.read_text(), measured))
    if find_spec("matplotlib") is None:
        print("no picture was drawn: matplotlib is not installed, which the dependency group `bench` has")
        return
    for name, picture in pictures(measured).items():
        PAGE.with_name(name).write_text(picture)


def main() -> None:
    """Print the tables, or write the page and its pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write them into the page, and the pictures beside it")
    if parser.parse_args().write:
        write()
        return
    measured = load()
    for name, table in TABLES.items():
        print(f"{name}\n{table(measured)}\n")


if __name__ == "__main__":
    main()
