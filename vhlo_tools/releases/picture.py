"""Picture of a matrix: a field for each pair of releases, with a square for each program."""

from __future__ import annotations

import io
import math
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.errors import MissingExtraError, installing
from vhlo_tools.releases.matrix import OUTCOMES, Matrix, Outcome, ReleaseFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE_SUFFIXES: Final = (".svg", ".png", ".pdf")

#: The colours of outcomes, which people with any colour vision tell apart (after the palette of Okabe and Ito), and
#: their legend.
_SHOWN: Final[dict[Outcome, tuple[str, str]]] = {
    "equal": ("#009e73", "read, and computes the same"),
    "read": ("#56b4e9", "read, not run"),
    "differs": ("#e69f00", "computes other results"),
    "refused": ("#b8b8b8", "refused"),
    "crash": ("#000000", "died"),
    "timeout": ("#7a4fa3", "did not end"),
    "unwritten": ("#f3f3f3", "not written"),
}
_WRONG: Final = "#d00000"
#: Squares between two fields, and inches of a square.
_GAP: Final = 1
_INCHES: Final = 0.085


def require_drawing() -> None:
    """Checked first, because a matrix may take hours."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError(
            f"a picture of a matrix is drawn by matplotlib, which is not installed: {installing('releases')}"
        )


def draw_matrix(matrix: Matrix, suffix: str) -> bytes:
    """``suffix`` is ``.svg``, ``.png`` or ``.pdf``."""
    require_drawing()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    columns = max(1, math.ceil(math.sqrt(1.6 * len(matrix.programs))))
    rows = max(1, math.ceil(len(matrix.programs) / columns))
    wide = len(matrix.consumers) * (columns + _GAP)
    high = len(matrix.producers) * (rows + _GAP)
    # The same matrix gives the same bytes.
    with rc_context({"svg.hashsalt": "vhlo_tools", "font.size": 8, "svg.fonttype": "none"}):
        # The axes fill the figure, so that a square is a square; labels stand around it.
        figure = Figure(figsize=(wide * _INCHES, high * _INCHES))
        axes = figure.add_axes((0, 0, 1, 1))
        _fill(axes, matrix, columns, rows)
        _label(axes, matrix, columns, rows)
        drawn = io.BytesIO()
        kind = PurePath(f"x{suffix}").suffix[1:]
        metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
        figure.savefig(drawn, format=kind, dpi=150, metadata=metadata, bbox_inches="tight")
    return drawn.getvalue()


def _fill(axes: Axes, matrix: Matrix, columns: int, rows: int) -> None:
    """One image of all squares; those of which the specification was wrong are framed."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    colours = {outcome: to_rgb(_SHOWN[outcome][0]) for outcome in OUTCOMES}
    place = {name: number for number, name in enumerate(matrix.programs)}
    row_of = {each.name: number for number, each in enumerate(matrix.producers)}
    column_of = {each.name: number for number, each in enumerate(matrix.consumers)}
    width, height = len(column_of) * (columns + _GAP), len(row_of) * (rows + _GAP)
    image = [[(1.0, 1.0, 1.0)] * width for _ in range(height)]
    for cell in matrix.cells:
        down, across = divmod(place[cell.program], columns)
        y = row_of[cell.producer] * (rows + _GAP) + down
        x = column_of[cell.consumer] * (columns + _GAP) + across
        image[y][x] = colours[cell.outcome]
        if cell.confirmed is False:
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=_WRONG, linewidth=1.2))
    axes.imshow(image, interpolation="nearest")


def _label(axes: Axes, matrix: Matrix, columns: int, rows: int) -> None:
    from matplotlib.patches import Patch

    axes.set_yticks(
        [number * (rows + _GAP) + (rows - 1) / 2 for number in range(len(matrix.producers))],
        [_named(each) for each in matrix.producers],
    )
    axes.set_xticks(
        [number * (columns + _GAP) + (columns - 1) / 2 for number in range(len(matrix.consumers))],
        [_named(each) for each in matrix.consumers],
        rotation=45,
        ha="right",
    )
    axes.set_ylabel("written by")
    axes.set_xlabel("read by")
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    occurring = {cell.outcome for cell in matrix.cells}
    patches = [Patch(facecolor=_SHOWN[each][0], label=_SHOWN[each][1]) for each in OUTCOMES if each in occurring]
    if matrix.disagreements:
        patches.append(Patch(facecolor="none", edgecolor=_WRONG, label="the specification was wrong"))
    axes.legend(handles=patches, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)


def _named(release: ReleaseFacts) -> str:
    return f"{release.name.replace('==', ' ')} ({release.stablehlo or '?'})"
