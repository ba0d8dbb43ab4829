"""Growth as a picture: panels of lines over size, both axes logarithmic, each line named where it ends.

matplotlib draws, of the dependency group `bench`. Pictures have no background, and their colours are read on white and
on black.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: At least 3.6 : 1 to white and to the dark pages of GitHub; neighbours differ for people with any colour vision.
COLOURS: Final = ("#0072b2", "#d55e00", "#00896a", "#b5569b", "#a6761d", "#6674d8", "#d6456b")
#: Of text, of axes, and of what lines are compared with.
INK: Final = "#767676"
#: Inches of a panel with the names of its lines.
_PANEL: Final = (4.7, 3.4)
#: Parts of the height of a panel that a line of text takes.
_TEXT: Final = 0.05
#: Parts of the width of a panel that the name of a size takes.
_NAME: Final = 0.11
#: So many times the least value is little: values between powers of ten are marked too.
_LITTLE: Final = 300
_STYLE: Final[dict[str, Any]] = {
    # The same values give the same bytes with the same matplotlib.
    "svg.hashsalt": "vhlo_tools",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 8,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK
    ),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A line."""

    name: str  # what stands at its end
    points: Sequence[tuple[float, float]]  # sizes and values, all positive, by size
    compared: bool = False  # whether it is something that the others are compared with; drawn dashed, without a colour


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines with axes of their own."""

    title: str  # what stands above it
    lines: Sequence[Line]  # the lines


def draw(panels: Sequence[Panel], *, what: str, sizes: Sequence[tuple[float, str]], of: str) -> str:
    """Return a picture as SVG, of panels that share their axes.

    Args:
        panels: From left to right.
        what: What the values are, with their unit.
        sizes: The sizes that are marked, each with its name.
        of: What the sizes are.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(len(panels) * _PANEL[0], _PANEL[1]))
        figure.subplots_adjust(left=0.06, right=0.87, wspace=0.55, bottom=0.13, top=0.91)
        all_axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        values = [value for panel in panels for line in panel.lines for _, value in line.points]
        for axes, panel in zip(all_axes, panels, strict=True):
            _set_axes(axes, values, sizes)
            axes.set_title(f"{panel.title}: {what}", loc="left", fontweight="bold")
            axes.set_xlabel(of)
            _draw_lines(axes, panel.lines)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None, "Title": f"{what} over {of}"})
    return drawn.getvalue()


def spread(wanted: Sequence[float], distance: float) -> list[float]:
    """Return places from 0 to 1, as near as can be to those that are wanted, and so far apart.

    Args:
        wanted: In ascending order.
        distance: The least distance of two places.
    """
    # Without the distances below each, places only have to be in order: neighbours that are not get their mean.
    groups: list[list[float]] = []
    for index, each in enumerate(wanted):
        groups.append([each - index * distance])
        while len(groups) > 1 and _mean(groups[-2]) > _mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    room = max(0.0, 1 - (len(wanted) - 1) * distance)
    places = [min(max(_mean(group), 0.0), room) for group in groups for _ in group]
    return [place + index * distance for index, place in enumerate(places)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _set_axes(axes: Axes, values: Sequence[float], sizes: Sequence[tuple[float, str]]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    least, most = min(values) * 0.9, max(values) * 1.1
    axes.set(xscale="log", yscale="log", xlim=(sizes[0][0], sizes[-1][0]), ylim=(least, most))
    shares = [axes.transAxes.inverted().transform(axes.transData.transform((size, most)))[0] for size, _ in sizes]
    # A name that would run into the next one is left out.
    room = [after - share for share, after in zip(shares, [*shares[1:], 2.0], strict=True)]
    names = [name if left > _NAME else "" for (_, name), left in zip(sizes, room, strict=True)]
    axes.set_xticks([size for size, _ in sizes], names)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if most / least < _LITTLE else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.tick_params(labelleft=True)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.grid(visible=True, axis="y", color=INK, alpha=0.3, linewidth=0.8)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    # What is as steep as this grows as the size does.
    last = sizes[-1][0]
    axes.axline((last, most), (last / 10, most / 10), color=INK, alpha=0.5, linestyle=":", linewidth=0.8)


def _draw_lines(axes: Axes, lines: Sequence[Line]) -> None:
    colours = iter(COLOURS * len(lines))
    ends = []
    for line in lines:
        colour = INK if line.compared else next(colours)
        axes.plot(
            *zip(*line.points, strict=True),
            color=colour,
            linestyle="--" if line.compared else "-",
            marker="o",
            markersize=3,
            linewidth=1.4,
            clip_on=False,
            # Of the picture, in which panels have lines of the same names.
            gid=f"{axes.get_subplotspec().num1}-{line.name}".replace(" ", "-"),
        )
        share = axes.transAxes.inverted().transform(axes.transData.transform(line.points[-1]))
        ends.append((tuple(share), colour, line.name))
    # Names stand in one column, in the order of the ends, and each as near to its own as the others let it.
    ends.sort(key=lambda end: end[0][1])
    for (share, colour, name), place in zip(ends, spread([end[0][1] for end in ends], _TEXT), strict=True):
        axes.annotate(
            name,
            share,
            xytext=(1.05, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=colour,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "alpha": 0.5, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3},
        )
